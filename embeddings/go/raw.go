package core

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// Failed is what a method of [Raw] answers when the call has not taken place or not ended: the Core is closed, or the
// module has trapped, which is a bug. [Raw.Failure] tells which. It is no status of the ABI.
const Failed = math.MinInt32

// Where the header of the memory says where the exchange buffer is (docs/wasm-abi.md, Memory). Reading it costs a
// tenth of asking exchange(0) and exchange_size().
const (
	headerBytes    = 64
	exchangeAt     = 16
	exchangeSizeAt = 20
)

// A call of the core ends within microseconds and waits for nothing: there is nothing to cancel.
var background = context.Background()

// Raw is the ABI itself, a method for each export, for whoever wants ordinals and handles. A result below 0 is a
// [Status]. Input is written to [Raw.Buffer] before a call, output is read from it afterwards.
type Raw struct {
	module    api.Module
	memory    api.Memory
	functions [len(exports)]api.Function // each looked up when it is first called: it has a stack of 10 KiB
	stack     [stackWords]uint64
	view      []byte
	failure   error
}

// Call is the method of the export with this name in the ABI, for conformance tests. It fails when there is no such
// export, or when it has another number of parameters.
func (r *Raw) Call(name string, args ...int32) (int32, error) {
	for index, export := range exports {
		if export.name != name {
			continue
		}
		if len(args) != export.params {
			return 0, fmt.Errorf("core: %s has %d parameters, not %d", name, export.params, len(args))
		}
		for i, arg := range args {
			r.stack[i] = uint64(uint32(arg))
		}
		result := r.call(index)
		if result == Failed {
			return 0, fmt.Errorf("core: %s: %w", name, r.failure)
		}
		return result, nil
	}
	return 0, fmt.Errorf("core: there is no export %q", name)
}

// Memory is the whole linear memory. The slice holds until the next call, which may grow the memory and move it.
func (r *Raw) Memory() []byte {
	if r.memory == nil {
		return nil
	}
	if size := r.memory.Size(); size != uint32(len(r.view)) {
		r.view, _ = r.memory.Read(0, size)
	}
	return r.view
}

// Buffer is the exchange buffer. The slice holds until the next call; [Raw.Exchange] makes the buffer longer.
func (r *Raw) Buffer() []byte {
	memory := r.Memory()
	if len(memory) < headerBytes {
		return nil
	}
	start := binary.LittleEndian.Uint32(memory[exchangeAt:])
	return memory[start : start+binary.LittleEndian.Uint32(memory[exchangeSizeAt:])]
}

// Failure is why a call has answered [Failed]: [ErrClosed], or the trap.
func (r *Raw) Failure() error {
	return r.failure
}

// call runs the export whose arguments are on the stack.
func (r *Raw) call(index int) int32 {
	function := r.functions[index]
	if function == nil {
		if function = r.find(index); function == nil {
			return Failed
		}
	}
	if err := function.CallWithStack(background, r.stack[:]); err != nil {
		r.failure = err
		return Failed
	}
	return int32(uint32(r.stack[0]))
}

func (r *Raw) find(index int) api.Function {
	if r.module == nil {
		r.failure = ErrClosed
		return nil
	}
	name := exports[index].name
	function := r.module.ExportedFunction(name)
	if function == nil {
		r.failure = fmt.Errorf("the module has no export %q", name)
		return nil
	}
	definition := function.Definition()
	if len(definition.ParamTypes()) != exports[index].params || len(definition.ResultTypes()) != 1 {
		r.failure = fmt.Errorf("the module's %s has another signature", name)
		return nil
	}
	r.functions[index] = function
	return function
}

func (r *Raw) close() error {
	if r.module == nil {
		return nil
	}
	err := r.module.Close(background)
	*r = Raw{}
	return err
}
