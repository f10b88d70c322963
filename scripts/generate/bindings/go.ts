/** The raw layer of the Go embedding: the module in wazero, its constants, and a method for each export. */
import type { GeneratedText } from "../generated-text.ts";
import { type Binding, type Call, type Constant, camelCase, pascalCase, prefixed } from "./binding.ts";

export function renderGoBindings({ version, statuses, policies, ceilings, counts, calls }: Binding): GeneratedText {
  const text = `
package core

import (
	"context"
	_ "embed"
	"fmt"
	"math/big"
	"net/netip"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

//go:embed berth-core.wasm
var wasm []byte

// A call of the core waits for nothing, so there is nothing to cancel.
var background = context.Background()

var runtime = sync.OnceValue(func() wazero.Runtime { return wazero.NewRuntime(background) })

// compile makes the module once, for all instances.
var compile = sync.OnceValues(func() (wazero.CompiledModule, error) { return runtime().CompileModule(background, wasm) })

// instantiate is an instance with room for the addresses that operations write.
func instantiate() (Raw, error) {
	compiled, err := compile()
	if err != nil {
		return Raw{}, err
	}
	config := wazero.NewModuleConfig().WithName("") // without a name there may be many
	module, err := runtime().InstantiateModule(background, compiled, config)
	raw := Raw{module: module}
	if err == nil {
		err = raw.Write(make([]byte, 64))
	}
	return raw, err
}

// The version of the ABI that this package speaks.
const (
	ABIMajor = ${version.major}
	ABIMinor = ${version.minor}
)

// Status is the result of an export below 0; as an error [errors.Is] finds it in an [*Error].
type Status int32

${constants(statuses, " Status", (name) => (name === "OK" ? "StatusOK" : `Err${pascalCase(name)}`))}
var statusTexts = map[Status][2]string{
${statuses.map(({ name, value, doc }) => `\t${value}: {"${name}", ${JSON.stringify(doc)}},\n`).join("")}}

// String is the name of the status in the ABI, such as "BAD_HANDLE".
func (s Status) String() string { return statusTexts[s][0] }
func (s Status) Error() string  { return fmt.Sprintf("%s (%d): %s", s.String(), int32(s), statusTexts[s][1]) }

// Error is a refusal of the core: the export, such as "pool_edit", and why.
type Error struct {
	Operation string
	Status    Status
}

func (e *Error) Error() string { return "core: " + e.Operation + ": " + e.Status.Error() }
func (e *Error) Unwrap() error { return e.Status }

// Policy says which free address of the window is next.
type Policy int32

${constants(policies, " Policy", pascalCase)}
// Ceilings of one [Core].
${constants(ceilings, "", pascalCase)}
// Places of the counts of [Raw.PoolCounts].
${constants(counts, "", (name) => `CountsAt${pascalCase(name)}`)}
// Raw is the ABI itself, a method for each export, on handles and ordinals.
type Raw struct {
	module    api.Module
	functions [${calls.length}]api.Function // each looked up by its first call: it has a stack of 10 KiB
	stack     [${Math.max(...calls.map(({ params }) => params.length))}]uint64
}

// invoke runs an export. A trap, which would be a bug of the core, panics, and so does a call after [Core.Close].
func (r *Raw) invoke(index int, name string, args ...uint32) (int32, error) {
	if r.functions[index] == nil {
		r.functions[index] = r.module.ExportedFunction(name)
	}
	for i, arg := range args {
		r.stack[i] = uint64(arg)
	}
	if err := r.functions[index].CallWithStack(background, r.stack[:]); err != nil {
		panic(fmt.Errorf("core: %s: %w", name, err))
	}
	result := int32(uint32(r.stack[0]))
	if result < 0 {
		return result, &Error{name, Status(result)}
	}
	return result, nil
}

// Memory is the whole linear memory, up to the next call, which may move it.
func (r *Raw) Memory() []byte {
	memory, _ := r.module.Memory().Read(0, r.module.Memory().Size())
	return memory
}

// Write puts the input of the next call into the exchange buffer.
func (r *Raw) Write(input []byte) error {
	at, err := r.Exchange(int32(min(len(input), MaxExchange+1)))
	if err == nil {
		copy(r.Memory()[at:], input)
	}
	return err
}

// Output is the memory from the exchange buffer on: the output of the last call.
func (r *Raw) Output() []byte {
	at, _ := r.Exchange(0)
	return r.Memory()[at:]
}

func decode(bytes []byte, width int) netip.Addr {
	addr, _ := netip.AddrFromSlice(bytes[:width])
	return addr
}

// pass writes addresses that have so many bytes, and no zone.
func (r *Raw) pass(width int, addrs ...netip.Addr) error {
	input := make([]byte, 0, len(addrs)*width)
	for _, addr := range addrs {
		if !addr.IsValid() || addr.BitLen() != 8*width || addr.Zone() != "" {
			return &Error{"exchange", ErrBadFamily}
		}
		input = append(input, addr.AsSlice()...)
	}
	return r.Write(input)
}

func family(width int) int32 { return 4 + int32(width/16)*2 }

func number(bytes []byte) *big.Int { return new(big.Int).SetBytes(bytes[:17]) }

// address is the output of an operation: the zero Addr when there is none.
func (r *Raw) address(width int, result int32, err error) (netip.Addr, error) {
	if status := Status(result); status == ErrNone || status == ErrOutside {
		return netip.Addr{}, nil
	}
	if err != nil {
		return netip.Addr{}, err
	}
	return decode(r.Output(), width), nil
}
${calls.map(method).join("")}
// Call is the method of the export with that name. It panics if there is none, or if arguments are missing.
func (r *Raw) Call(name string, args ...int32) (int32, error) {
	switch name {
${calls.map(dispatch).join("")}	}
	panic("core: there is no export " + name)
}
`;
  return { path: "embeddings/go/raw.go", text };
}

function constants(items: readonly Constant[], type: string, nameOf: (name: string) => string): string {
  const rows = items.map(({ name, value, doc }) => `\t// ${doc}\n\t${nameOf(name)}${type} = ${value}\n`);
  return `const (\n${rows.join("")})\n`;
}

const typeOf = ({ isUnsigned }: Call["params"][number]) => (isUnsigned ? "uint32" : "int32");

function method({ name, index, doc, facts, params }: Call): string {
  const list = params.map((param) => `${camelCase(param.name)} ${typeOf(param)}`).join(", ");
  const args = [index, `"${name}"`, ...params.map((param) => `uint32(${camelCase(param.name)})`)].join(", ");
  return `
// ${pascalCase(name)} calls ${name}.
${prefixed("// ", [doc, ...facts])}func (r *Raw) ${pascalCase(name)}(${list}) (int32, error) { return r.invoke(${args}) }
`;
}

function dispatch({ name, params }: Call): string {
  const args = params.map((param, at) => `${typeOf(param)}(args[${at}])`).join(", ");
  return `	case "${name}":
		return r.${pascalCase(name)}(${args})
`;
}
