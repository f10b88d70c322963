package core

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Failed is what a method of [Raw] answers when the Core is closed, which is no status of the ABI.
const Failed = math.MinInt32

// Where the header of the memory says where the exchange buffer is (docs/wasm-abi.md, Memory). Reading it costs less
// than asking exchange(0) and exchange_size().
const (
	headerBytes    = 64
	exchangeAt     = 16
	exchangeSizeAt = 20
)

// Raw is the ABI itself, a method for each export, for whoever wants ordinals and handles. A result below 0 is a
// [Status]. Input is written to [Raw.Buffer] before a call, output is read from it afterwards.
type Raw struct {
	module
}

// Call is the method of the export with this name in the ABI, for conformance tests. It fails when there is no such
// export, or when it has another number of parameters.
func (r *Raw) Call(name string, args ...int32) (int32, error) {
	for _, export := range exports {
		if export.name != name {
			continue
		}
		if len(args) != export.params {
			return 0, fmt.Errorf("core: %s has %d parameters, not %d", name, export.params, len(args))
		}
		result := export.call(r, args)
		if result == Failed {
			return 0, fmt.Errorf("core: %s: %w", name, ErrClosed)
		}
		return result, nil
	}
	return 0, fmt.Errorf("core: there is no export %q", name)
}

// Memory is the whole linear memory; nil when the Core is closed. The slice holds until the next call, which may grow
// the memory and move it.
func (r *Raw) Memory() []byte {
	return r.memory
}

// Buffer is the exchange buffer. The slice holds until the next call; [Raw.Exchange] makes the buffer longer.
func (r *Raw) Buffer() []byte {
	memory := r.memory
	if len(memory) < headerBytes {
		return nil
	}
	start := binary.LittleEndian.Uint32(memory[exchangeAt:])
	return memory[start : start+binary.LittleEndian.Uint32(memory[exchangeSizeAt:])]
}
