package core

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"math"
	"sync"

	"github.com/tetratelabs/wazero"
)

const (
	pageBytes          = 65536
	firstExchangeBytes = 4096
)

//go:embed berth-core.wasm
var wasm []byte

// ModuleSHA256 is the sum of the berth-core.wasm in this package.
var ModuleSHA256 = fmt.Sprintf("%x", sha256.Sum256(wasm))

// program is the compiled module, for all instances.
type program struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

var compiled = sync.OnceValues(func() (program, error) {
	runtime := wazero.NewRuntime(background)
	module, err := runtime.CompileModule(background, wasm)
	return program{runtime, module}, err
})

// Core is one instance of the core, in which pools and sets live. It belongs to one goroutine at a time.
type Core struct {
	raw Raw
}

// Open makes an instance. The first one compiles the module, in some tens of milliseconds; each further one takes
// microseconds. The caller closes the Core.
func Open() (*Core, error) {
	core, err := instantiate()
	if err != nil {
		return nil, err
	}
	_, err = core.check("exchange", core.raw.Exchange(firstExchangeBytes))
	return core.orClose(err)
}

// Copy makes an equal instance, which goes its own way from here. [Pool.In] and [RangeSet.In] give the objects in it.
// The caller closes it.
func (c *Core) Copy() (*Core, error) {
	length, err := c.check("state_bytes", c.raw.StateBytes())
	if err != nil {
		return nil, err
	}
	twin, err := instantiate()
	if err != nil {
		return nil, err
	}
	state, memory := c.raw.Memory(), twin.raw.memory
	if _, ok := memory.Grow((uint32(len(state)) - memory.Size()) / pageBytes); !ok {
		return twin.orClose(refuse("copy", ErrNoMemory, "%d bytes", len(state)))
	}
	memory.Write(0, state[:length])
	return twin, nil
}

// instantiate makes an instance in which nothing has been called.
func instantiate() (*Core, error) {
	program, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("core: cannot compile the module: %w", err)
	}
	config := wazero.NewModuleConfig().WithName("") // without a name there may be many
	module, err := program.runtime.InstantiateModule(background, program.module, config)
	if err != nil {
		return nil, fmt.Errorf("core: cannot instantiate the module: %w", err)
	}
	return &Core{Raw{module: module, memory: module.Memory()}}, nil
}

// orClose is the instance, or the error, and then the instance is closed.
func (c *Core) orClose(err error) (*Core, error) {
	if err == nil {
		return c, nil
	}
	c.Close()
	return nil, err
}

// Close gives the instance's memory back. Whatever uses the Core, or what lived in it, later fails with [ErrClosed].
// A second Close does nothing.
func (c *Core) Close() error {
	module := c.raw.module
	if module == nil {
		return nil
	}
	c.raw = Raw{}
	return module.Close(background)
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
		return 0, fmt.Errorf("core: %s: %w", operation, ErrClosed)
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
