package core

import (
	"fmt"
	"math"
)

const firstExchangeBytes = 4096

// Core is one instance of the core, in which pools and sets live. It belongs to one goroutine at a time.
type Core struct {
	raw Raw
}

// Open makes an instance, in microseconds. The caller closes the Core.
func Open() (*Core, error) {
	core := &Core{Raw{module{make([]byte, firstPages*pageBytes)}}}
	if _, err := core.check("exchange", core.raw.Exchange(firstExchangeBytes)); err != nil {
		return nil, err
	}
	return core, nil
}

// Copy makes an equal instance, which goes its own way from here. [Pool.In] and [RangeSet.In] give the objects in it.
// The caller closes it.
func (c *Core) Copy() (*Core, error) {
	length, err := c.check("state_bytes", c.raw.StateBytes())
	if err != nil {
		return nil, err
	}
	state := c.raw.Memory()
	twin := make([]byte, len(state))
	copy(twin, state[:length])
	return &Core{Raw{module{twin}}}, nil
}

// Close gives the instance's memory back. Whatever uses the Core, or what lived in it, later fails with [ErrClosed].
// A second Close does nothing.
func (c *Core) Close() error {
	c.raw.memory = nil
	return nil
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
