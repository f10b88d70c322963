package core

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// Failed is what a method of [Raw] answers when the Core is closed, which is no status of the ABI.
const Failed = math.MinInt32

// Where the header of the memory says where the exchange buffer is (docs/develop/wasm-abi.md, Memory). Reading it costs less
// than asking exchange(0) and exchange_size().
const (
	headerBytes    = 64
	exchangeAt     = 16
	exchangeSizeAt = 20
)

// A call of the core waits for nothing, so there is nothing to cancel.
var background = context.Background()

// Raw is the ABI itself, a method for each export, for whoever wants ordinals and handles. A result below 0 is a
// [Status]. Input is written to [Raw.Buffer] before a call, output is read from it afterwards.
type Raw struct {
	module    api.Module
	memory    api.Memory
	functions [len(exports)]api.Function // each looked up by its first call: it has a stack of 10 KiB
	stack     [stackWords]uint64
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
			return 0, fmt.Errorf("core: %s: %w", name, ErrClosed)
		}
		return result, nil
	}
	return 0, fmt.Errorf("core: there is no export %q", name)
}

// Memory is the whole linear memory; nil when the Core is closed. The slice holds until the next call, which may grow
// the memory and move it.
func (r *Raw) Memory() []byte {
	if r.memory == nil {
		return nil
	}
	memory, _ := r.memory.Read(0, r.memory.Size())
	return memory
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

// call runs the export whose arguments are on the stack. A trap is a bug of the core, and panics.
func (r *Raw) call(index int) int32 {
	function := r.functions[index]
	if function == nil {
		if r.module == nil {
			return Failed
		}
		function = r.module.ExportedFunction(exports[index].name)
		r.functions[index] = function
	}
	if err := function.CallWithStack(background, r.stack[:]); err != nil {
		panic(fmt.Errorf("core: %s: %w", exports[index].name, err))
	}
	return int32(uint32(r.stack[0]))
}
