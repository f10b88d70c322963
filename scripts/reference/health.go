// Says of objects on standard input what GitOps tools conclude from them: one JSON object on a line for each.
// Without an argument by kstatus, which Flux and kpt use; with the file of a health check in Lua as Argo CD does.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type conclusion struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	conclude := byKstatus
	if len(arguments) > 0 {
		script, err := os.ReadFile(arguments[0])
		if err != nil {
			return err
		}
		conclude = func(object map[string]any) (conclusion, error) { return byLua(string(script), object) }
	}
	decoder := json.NewDecoder(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	for {
		var object map[string]any
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		found, err := conclude(object)
		if err != nil {
			return err
		}
		if err := encoder.Encode(found); err != nil {
			return err
		}
	}
}

func byKstatus(object map[string]any) (conclusion, error) {
	// JSON numbers are int64 in client-go.
	text, err := json.Marshal(object)
	if err != nil {
		return conclusion{}, err
	}
	item := &unstructured.Unstructured{}
	if err := item.UnmarshalJSON(text); err != nil {
		return conclusion{}, err
	}
	result, err := status.Compute(item)
	if err != nil {
		return conclusion{}, err
	}
	return conclusion{string(result.Status), result.Message}, nil
}

// As util/lua of Argo CD: the object is the global obj, and the script returns a table. It has no libraries but these.
func byLua(script string, object map[string]any) (conclusion, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", valueOf(state, object))
	if err := state.DoString(script); err != nil {
		return conclusion{}, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return conclusion{}, fmt.Errorf("the health check returned %s, want a table", state.Get(-1).Type())
	}
	return conclusion{lua.LVAsString(table.RawGetString("status")), lua.LVAsString(table.RawGetString("message"))}, nil
}

func valueOf(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case string:
		return lua.LString(typed)
	case float64:
		return lua.LNumber(typed)
	case bool:
		return lua.LBool(typed)
	case []any:
		table := state.NewTable()
		for _, each := range typed {
			table.Append(valueOf(state, each))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, each := range typed {
			table.RawSetString(key, valueOf(state, each))
		}
		return table
	default:
		return lua.LNil
	}
}
