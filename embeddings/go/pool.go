package core

import (
	"net/netip"
)

// Pool is which addresses of some ranges are used, and which is free next. It lives in the core until it is dropped.
//
// The first [MaxWindow] addresses of the ranges are its window, in which free ones are found by [Policy]. Those beyond
// can be claimed, and found by [Pool.FindFreeWide].
type Pool struct {
	core   *Core
	family Family
	handle int32
}

// Outcome is what became of an address.
type Outcome int8

const (
	Outside  Outcome = iota // it is not in the pool's ranges, or of another family
	Claimed                 // it was not used and is now
	Taken                   // it was used already
	Released                // it was used and is no longer
	Free                    // it was not used
)

// String is the outcome as a word.
func (o Outcome) String() string {
	if o < Outside || o > Free {
		return "unknown"
	}
	return [...]string{"outside", "claimed", "taken", "released", "free"}[o]
}

// NewPool makes a pool over the ranges with nothing used. Masked addresses (excluded, reserved, gateways) are never
// found free, but may be claimed. Ranges and masks are of one family; they may overlap and stand in any order, and
// masks outside the ranges do not matter. It refuses what [Core.NewRangeSet] does. The caller drops the pool.
func (c *Core) NewPool(ranges, masks []Range) (*Pool, error) {
	family := IPv4
	if isIPv6(ranges) || isIPv6(masks) {
		family = IPv6
	}
	handle, err := c.withSets("pool_create", family, ranges, masks, c.raw.PoolCreate)
	if err != nil {
		return nil, err
	}
	return &Pool{c, family, handle}, nil
}

// isIPv6 looks at the first range only: it is for the core's sets to refuse two families.
func isIPv6(ranges []Range) bool {
	return len(ranges) > 0 && !ranges[0].First.Is4()
}

// withSets calls an operation with the handles of two sets, which end with it.
func (c *Core) withSets(
	operation string, family Family, ranges, masks []Range, call func(ranges, masks int32) int32,
) (int32, error) {
	rangeSet, err := c.newSet(family, ranges)
	if err != nil {
		return 0, err
	}
	defer c.raw.Drop(rangeSet)
	maskSet, err := c.newSet(family, masks)
	if err != nil {
		return 0, err
	}
	defer c.raw.Drop(maskSet)
	return c.check(operation, call(rangeSet, maskSet))
}

// Edit gives the pool other ranges and masks of its family. What is used stays used wherever its address is in the new
// ranges, and else is forgotten. On an error the pool is as before.
func (p *Pool) Edit(ranges, masks []Range) error {
	edit := func(ranges, masks int32) int32 { return p.core.raw.PoolEdit(p.handle, ranges, masks) }
	_, err := p.core.withSets("pool_edit", p.family, ranges, masks, edit)
	return err
}

// Family is the family of the pool's addresses; of a pool without any, IPv4.
func (p *Pool) Family() Family { return p.family }

// Handle is the pool in the calls of [Raw].
func (p *Pool) Handle() int32 { return p.handle }

// In is the same pool in a copy of its Core.
func (p *Pool) In(twin *Core) *Pool {
	return &Pool{twin, p.family, p.handle}
}

// Drop gives the memory back; every later use fails with [ErrBadHandle].
func (p *Pool) Drop() error {
	return p.core.drop(p.handle)
}

// Allocate claims the next free address of the window by the policy: the zero Addr when none is free. The seed is for
// [Hashed]. [LeastRecentlyFreed] wants [Pool.TrackFreed] first, else it is [ErrBadArgument].
func (p *Pool) Allocate(policy Policy, seed uint32) (netip.Addr, error) {
	raw := &p.core.raw
	if raw.PoolAllocateMany(p.handle, int32(policy), seed, 1) == 1 { // it gives the address itself, in one call
		return p.family.get(raw.Buffer()), nil
	}
	// It does not tell whether addresses or memory ran out.
	return p.addressOf("pool_allocate", raw.PoolAllocate(p.handle, int32(policy), seed))
}

// TrackFreed remembers from now on in which order addresses of the window become free.
func (p *Pool) TrackFreed() error {
	_, err := p.core.check("pool_track_freed", p.core.raw.PoolTrackFreed(p.handle))
	return err
}

// FindFree is the first free address at or after ordinal seed modulo the window, wrapping once: the zero Addr when none
// is free. It claims nothing.
func (p *Pool) FindFree(seed uint32) (netip.Addr, error) {
	return p.addressOf("pool_find", p.core.raw.PoolFind(p.handle, seed))
}

// FindFreeWide is the first free address in hashed order over all addresses, those beyond the window too: the zero Addr
// when none is free. The search starts at the low bits of the seed, a big-endian number. It claims nothing.
func (p *Pool) FindFreeWide(seed [16]byte) (netip.Addr, error) {
	buffer, err := p.core.reserve("pool_find_wide", len(seed))
	if err != nil {
		return netip.Addr{}, err
	}
	copy(buffer, seed[:])
	result := p.core.raw.PoolFindWide(p.handle)
	if Status(result) == ErrNone {
		return netip.Addr{}, nil
	}
	if _, err := p.core.check("pool_find_wide", result); err != nil {
		return netip.Addr{}, err
	}
	return p.family.get(p.core.raw.Buffer()), nil
}

// FindFreeRun is so many free addresses of the window that follow one another, the first a multiple of 2^alignBits, at
// or after ordinal seed modulo the window, wrapping once: the zero Range when there are none. It claims nothing. A
// count below 1 and alignBits beyond 0 to 24 are [ErrBadArgument].
func (p *Pool) FindFreeRun(count, alignBits int, seed uint32) (Range, error) {
	ordinal := p.core.raw.PoolFindRun(p.handle, seed, countOf(count), countOf(alignBits))
	first, err := p.addressOf("pool_find_run", ordinal)
	if err != nil || !first.IsValid() {
		return Range{}, err
	}
	last, err := p.addressOf("pool_find_run", ordinal+int32(count)-1)
	return Range{first, last}, err
}

// addressOf is the address of the ordinal that an operation has found, or the zero Addr when it has found none.
func (p *Pool) addressOf(operation string, ordinal int32) (netip.Addr, error) {
	if Status(ordinal) == ErrNone {
		return netip.Addr{}, nil
	}
	if _, err := p.core.check(operation, ordinal); err != nil {
		return netip.Addr{}, err
	}
	if _, err := p.core.check("pool_address", p.core.raw.PoolAddress(p.handle, uint32(ordinal))); err != nil {
		return netip.Addr{}, err
	}
	return p.family.get(p.core.raw.Buffer()), nil
}

// Contains reports whether the address may be allocated: it is in the ranges and not masked.
func (p *Pool) Contains(addr netip.Addr) (bool, error) {
	if !p.place(addr) {
		return false, nil
	}
	result, err := p.answer("pool_contains", p.core.raw.PoolContains(p.handle))
	return result == 1, err
}

// Test reports whether the address is used.
func (p *Pool) Test(addr netip.Addr) (bool, error) {
	if !p.place(addr) {
		return false, nil
	}
	result, err := p.answer("pool_test", p.core.raw.PoolTest(p.handle))
	return result == 1, err
}

// Claim marks the address used, a masked one too: [Claimed], [Taken] or [Outside]. Beyond the window, [ErrOverCeiling]
// is [MaxSparse] addresses used there.
func (p *Pool) Claim(addr netip.Addr) (Outcome, error) {
	if !p.place(addr) {
		return Outside, nil
	}
	result, err := p.answer("pool_claim", p.core.raw.PoolClaim(p.handle))
	return outcomeOfClaim(result), err
}

// Release marks the address not used: [Released], [Free] or [Outside].
func (p *Pool) Release(addr netip.Addr) (Outcome, error) {
	if !p.place(addr) {
		return Outside, nil
	}
	result, err := p.answer("pool_release", p.core.raw.PoolRelease(p.handle))
	return outcomeOfRelease(result), err
}

// ordinal is the ordinal of an address, or outside.
func (p *Pool) ordinal(addr netip.Addr) (int32, error) {
	if !p.place(addr) {
		return outside, nil
	}
	return p.answer("pool_ordinal", p.core.raw.PoolOrdinal(p.handle))
}

// place writes an address to the exchange buffer, which has room for one: false when it is of another family. A closed
// core has no buffer; the call that follows says so.
func (p *Pool) place(addr netip.Addr) bool {
	if familyOf(addr) != p.family {
		return false
	}
	if buffer := p.core.raw.Buffer(); len(buffer) != 0 {
		p.family.put(buffer, addr)
	}
	return true
}

// answer is the result of an operation on one address, or outside, which it is after an error, too.
func (p *Pool) answer(operation string, result int32) (int32, error) {
	if result >= 0 || result == outside {
		return result, nil
	}
	_, err := p.core.check(operation, result)
	return outside, err
}

// outside is the result of an operation on an address that is not in the pool.
const outside = int32(ErrOutside)

func outcomeOfClaim(result int32) Outcome {
	switch result {
	case 0:
		return Taken
	case 1:
		return Claimed
	}
	return Outside
}

func outcomeOfRelease(result int32) Outcome {
	switch result {
	case 0:
		return Free
	case 1:
		return Released
	}
	return Outside
}
