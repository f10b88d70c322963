package core

import (
	"encoding/binary"
)

const pageBytes = 65536

// module is an instance of the core: its memory, which is all its state. Its methods, in module.go, are the functions of
// berth-core.wasm translated to Go.
type module struct {
	memory []byte
}

// What Wasm reads and writes at an address and a constant offset. Beyond the memory it panics, as Wasm would trap: that
// is a bug of the core. One slice expression, since the processor then need not wait for the check of the bounds.

func load8(mem []byte, at uint32, offset uint64) uint8 {
	return mem[uint64(at)+offset]
}

func load16(mem []byte, at uint32, offset uint64) uint16 {
	i := uint64(at) + offset
	return binary.LittleEndian.Uint16(mem[i : i+2])
}

func load32(mem []byte, at uint32, offset uint64) uint32 {
	i := uint64(at) + offset
	return binary.LittleEndian.Uint32(mem[i : i+4])
}

func load64(mem []byte, at uint32, offset uint64) uint64 {
	i := uint64(at) + offset
	return binary.LittleEndian.Uint64(mem[i : i+8])
}

func store8(mem []byte, at uint32, offset uint64, value uint8) {
	mem[uint64(at)+offset] = value
}

func store16(mem []byte, at uint32, offset uint64, value uint16) {
	i := uint64(at) + offset
	binary.LittleEndian.PutUint16(mem[i:i+2], value)
}

func store32(mem []byte, at uint32, offset uint64, value uint32) {
	i := uint64(at) + offset
	binary.LittleEndian.PutUint32(mem[i:i+4], value)
}

func store64(mem []byte, at uint32, offset uint64, value uint64) {
	i := uint64(at) + offset
	binary.LittleEndian.PutUint64(mem[i:i+8], value)
}

// move is memory.copy.
func move(mem []byte, to, from, length uint32) {
	copy(mem[to:uint64(to)+uint64(length)], mem[from:uint64(from)+uint64(length)])
}

// fill is memory.fill.
func fill(mem []byte, at, value, length uint32) {
	part := mem[at : uint64(at)+uint64(length)]
	for i := range part {
		part[i] = byte(value)
	}
}

// word is the number that a comparison is in Wasm. The compiler makes one instruction of it.
func word(b bool) uint32 {
	var w uint32
	if b {
		w = 1
	}
	return w
}

// grow is memory.grow: the length before, in pages, or all ones when the memory cannot be so long. What is added is zero.
func (m *module) grow(pages uint32) uint32 {
	before := uint32(len(m.memory) / pageBytes)
	if pages > mostPages-before {
		return ^uint32(0)
	}
	length := len(m.memory) + int(pages)*pageBytes
	if length > cap(m.memory) {
		// Room to grow costs nothing until it is used.
		memory := make([]byte, len(m.memory), min(2*length, mostPages*pageBytes))
		copy(memory, m.memory)
		m.memory = memory
	}
	m.memory = m.memory[:length]
	return before
}
