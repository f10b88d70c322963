package core

import (
	"encoding/binary"
	"math/big"
	"slices"
)

// Counts is what a pool holds, in numbers of addresses.
type Counts struct {
	Total      *big.Int // allocatable: in the ranges and not masked
	Free       *big.Int // of Total, not used
	Used       int      // used, masked or not, in the window or beyond
	UsedMasked int      // of Used, masked
	Window     int      // in the window, at most MaxWindow
	Beyond     int      // of Used, beyond the window
	Digest     uint64   // names the ranges: pools with the same digest take each other's snapshots
}

// Counts is what the pool holds, in numbers.
func (p *Pool) Counts() (Counts, error) {
	if _, err := p.core.check("pool_counts", p.core.raw.PoolCounts(p.handle)); err != nil {
		return Counts{}, err
	}
	buffer := p.core.raw.Buffer()
	number := func(at int) int { return int(binary.LittleEndian.Uint32(buffer[at:])) }
	used, usedMasked := number(CountsAtUsed), number(CountsAtUsedMasked)
	total := getSize(buffer[CountsAtSize:])
	total.Sub(total, getSize(buffer[CountsAtMasked:]))
	return Counts{
		Total:      total,
		Free:       new(big.Int).Sub(total, big.NewInt(int64(used-usedMasked))),
		Used:       used,
		UsedMasked: usedMasked,
		Window:     number(CountsAtWindow),
		Beyond:     number(CountsAtBeyond),
		Digest:     binary.LittleEndian.Uint64(buffer[CountsAtDigest:]),
	}, nil
}

// FreePerBlock is the number of free addresses in each block of 4,096 addresses of the window; the last block may be
// shorter.
func (p *Pool) FreePerBlock() ([]uint16, error) {
	count, err := p.core.number("pool_blocks", p.core.raw.PoolBlocks(p.handle))
	if err != nil {
		return nil, err
	}
	buffer := p.core.raw.Buffer()
	free := make([]uint16, count)
	for i := range free {
		free[i] = binary.LittleEndian.Uint16(buffer[2*i:])
	}
	return free, nil
}

// Used makes a set of the used addresses, masked or not, which the caller drops. More than [MaxRanges] runs of them are
// [ErrOverCeiling].
func (p *Pool) Used() (*RangeSet, error) {
	return p.core.adopt("pool_used", p.family, p.core.raw.PoolUsed(p.handle))
}

// Ranges makes a set of the pool's ranges, which the caller drops.
func (p *Pool) Ranges() (*RangeSet, error) {
	return p.core.adopt("pool_ranges", p.family, p.core.raw.PoolRanges(p.handle))
}

// Masks makes a set of the pool's masks, as far as they lie in its ranges, which the caller drops.
func (p *Pool) Masks() (*RangeSet, error) {
	return p.core.adopt("pool_masks", p.family, p.core.raw.PoolMasks(p.handle))
}

// Save is what is used, and the place of [RoundRobin], as bytes for [Pool.Load] of a pool with the same ranges. Masks
// and the order of release are not in it.
func (p *Pool) Save() ([]byte, error) {
	length, err := p.core.number("pool_save", p.core.raw.PoolSave(p.handle))
	if err != nil {
		return nil, err
	}
	return slices.Clone(p.core.raw.Buffer()[:length]), nil
}

// Load replaces what is used by what a snapshot says. It refuses one that is damaged or cut short ([ErrBadSnapshot]),
// of another version of the format ([ErrOtherVersion]), and of a pool with other ranges ([ErrOtherPool]); then, as on
// every error, the pool is as before.
func (p *Pool) Load(snapshot []byte) error {
	buffer, err := p.core.reserve("pool_load", len(snapshot))
	if err != nil {
		return err
	}
	copy(buffer, snapshot)
	_, err = p.core.check("pool_load", p.core.raw.PoolLoad(p.handle, countOf(len(snapshot))))
	return err
}
