package core

import (
	"errors"
	"net/netip"
)

type batchCall = func(r *Raw, handle, count int32) int32

// batch is an operation that runs on many addresses in one call into the core.
type batch struct {
	core      *Core
	family    Family
	handle    int32
	operation string
	call      batchCall
}

// packed runs the batch on addresses of the family as they stand in the exchange buffer: how many answered 1.
func (b batch) packed(addrs []byte) (int, error) {
	if len(addrs)%b.family.width() != 0 {
		return 0, refuse(b.operation, ErrBadArgument, "%d bytes, no multiple of %d", len(addrs), b.family.width())
	}
	buffer, err := b.core.reserve(b.operation, len(addrs))
	if err != nil {
		return 0, err
	}
	copy(buffer, addrs)
	return b.core.number(b.operation, b.call(&b.core.raw, b.handle, countOf(len(addrs)/b.family.width())))
}

// appendBatch runs the batch on addresses of any family and appends the outcome of each to dst. When the core fails
// midway, there is an error, and dst has the outcomes of those that are done.
func appendBatch[T any](b batch, dst []T, addrs []netip.Addr, outcomeOf func(result int32) T) ([]T, error) {
	width := b.family.width()
	buffer, err := b.core.reserve(b.operation, len(addrs)*width)
	if err != nil {
		return dst, err
	}
	count := 0
	for _, addr := range addrs {
		if familyOf(addr) == b.family {
			b.family.put(buffer[count*width:], addr)
			count++
		}
	}
	_, err = b.core.check(b.operation, b.call(&b.core.raw, b.handle, countOf(count)))
	if err != nil && !errors.Is(err, ErrNoMemory) && !errors.Is(err, ErrOverCeiling) {
		return dst, err // and nothing is done
	}
	results := b.core.raw.Buffer()
	for _, addr := range addrs {
		result := outside
		if familyOf(addr) == b.family {
			result, results = int32(int8(results[0])), results[1:]
		}
		if result < 0 && result != outside {
			break
		}
		dst = append(dst, outcomeOf(result))
	}
	return dst, err
}

// isYes is the answer to a question; of what is outside it is no.
func isYes(result int32) bool {
	return result == 1
}
