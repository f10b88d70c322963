package core

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero"
)

const (
	pageBytes          = 65536
	firstExchangeBytes = 4096
)

//go:embed berth-core.wasm
var embedded []byte

// Wasm is a copy of the module that [Open] instantiates.
func Wasm() []byte {
	return slices.Clone(embedded)
}

// Core is one instance of the core, in which pools and sets live. It belongs to one goroutine at a time.
type Core struct {
	raw     Raw
	program *program
}

// program is a compiled module. Nothing closes it: wazero frees the machine code with the last Core that refers to it.
type program struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

var compileEmbedded = sync.OnceValues(func() (*program, error) { return compile(embedded) })

// Open makes an instance of the module that this package embeds. The first call compiles it, which takes
// milliseconds; each further one takes microseconds. The caller closes the Core.
func Open() (*Core, error) {
	program, err := compileEmbedded()
	if err != nil {
		return nil, err
	}
	return program.open()
}

// OpenModule is [Open] for another build of the module. It refuses bytes that are no module, and a module whose ABI
// has another major version than [ABIMajor].
func OpenModule(wasm []byte) (*Core, error) {
	program, err := compile(wasm)
	if err != nil {
		return nil, err
	}
	return program.open()
}

func compile(wasm []byte) (*program, error) {
	runtime := wazero.NewRuntime(background)
	compiled, err := runtime.CompileModule(background, wasm)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("core: cannot compile the module: %w", err), runtime.Close(background))
	}
	return &program{runtime, compiled}, nil
}

// open makes an instance and holds it to what this package relies on.
func (p *program) open() (*Core, error) {
	core, err := p.instantiate()
	if err != nil {
		return nil, err
	}
	if err := core.verify(); err != nil {
		return nil, errors.Join(err, core.Close())
	}
	return core, nil
}

func (p *program) instantiate() (*Core, error) {
	// Without a name, so that there may be many.
	module, err := p.runtime.InstantiateModule(background, p.compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return nil, fmt.Errorf("core: cannot instantiate the module: %w", err)
	}
	return &Core{raw: Raw{module: module, memory: module.ExportedMemory("memory")}, program: p}, nil
}

func (c *Core) verify() error {
	if c.raw.memory == nil {
		return errors.New(`core: the module exports no memory "memory"`)
	}
	version, err := c.check("abi_version", c.raw.ABIVersion())
	if err != nil {
		return err
	}
	if version>>16 != ABIMajor {
		return fmt.Errorf("core: the module has ABI %d.%d, wanted %d", version>>16, version&0xffff, ABIMajor)
	}
	if _, err = c.check("exchange", c.raw.Exchange(firstExchangeBytes)); err != nil {
		return err
	}
	start, size := c.raw.Exchange(0), c.raw.ExchangeSize()
	memory, buffer := c.raw.Memory(), c.raw.Buffer()
	if len(buffer) != int(size) || &buffer[0] != &memory[start] {
		return errors.New("core: the header of the memory does not say where the exchange buffer is")
	}
	return nil
}

// Copy makes an equal instance, which goes its own way from here. [Pool.In] and [RangeSet.In] give the objects in it.
// The caller closes it.
func (c *Core) Copy() (*Core, error) {
	length, err := c.check("state_bytes", c.raw.StateBytes())
	if err != nil {
		return nil, err
	}
	state := c.raw.Memory()
	twin, err := c.program.instantiate()
	if err != nil {
		return nil, err
	}
	missing := len(state) - len(twin.raw.Memory())
	if _, ok := twin.raw.memory.Grow(uint32(max(missing, 0) / pageBytes)); !ok {
		return nil, errors.Join(refuse("memory.grow", ErrNoMemory, "%d bytes", len(state)), twin.Close())
	}
	copy(twin.raw.Memory(), state[:length])
	return twin, nil
}

// Close gives the instance's memory back. Whatever uses the Core, or what lived in it, later fails with [ErrClosed].
// A second Close does nothing.
func (c *Core) Close() error {
	return c.raw.close()
}

// Raw is the ABI of this instance, below the types of this package.
func (c *Core) Raw() *Raw {
	return &c.raw
}

// StateBytes is how much of the core's memory is in use.
func (c *Core) StateBytes() (int, error) {
	return c.number("state_bytes", c.raw.StateBytes())
}

// LiveObjects is the number of pools and sets that are not dropped, at most [MaxObjects].
func (c *Core) LiveObjects() (int, error) {
	return c.number("live_objects", c.raw.LiveObjects())
}

// reserve is the exchange buffer, of at least this length, for the input of an operation.
func (c *Core) reserve(operation string, bytes int) ([]byte, error) {
	if buffer := c.raw.Buffer(); bytes <= len(buffer) {
		return buffer, nil
	}
	if bytes > MaxExchange {
		return nil, refuse(operation, ErrOverCeiling, "%d bytes of input", bytes)
	}
	if _, err := c.check(operation, c.raw.Exchange(int32(bytes))); err != nil {
		return nil, err
	}
	return c.raw.Buffer(), nil
}

// check is the result of an operation that has succeeded, or the error.
func (c *Core) check(operation string, result int32) (int32, error) {
	if result >= 0 {
		return result, nil
	}
	if result == Failed {
		return 0, fmt.Errorf("core: %s: %w", operation, c.raw.failure)
	}
	return 0, &Error{Operation: operation, Status: Status(result)}
}

func (c *Core) number(operation string, result int32) (int, error) {
	number, err := c.check(operation, result)
	return int(number), err
}

func (c *Core) truth(operation string, result int32) (bool, error) {
	number, err := c.check(operation, result)
	return number == 1, err
}

// drop ends a set or pool.
func (c *Core) drop(handle int32) error {
	_, err := c.check("drop", c.raw.Drop(handle))
	return err
}

// countOf is a number as the ABI takes it; what does not fit becomes one that every operation refuses.
func countOf(n int) int32 {
	if n < 0 || n > math.MaxInt32 {
		return -1
	}
	return int32(n)
}
