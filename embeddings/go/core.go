// Package core allocates IP addresses: pools of them, and the algebra of address ranges.
//
// A [Core] is one instance of berth-core.wasm, for one goroutine at a time; [Pool] and [RangeSet] live in it until they are
// dropped or it is closed, and meet only what lives in the same one. "None free", "taken" and "outside" are results. Misuse,
// ceilings and refused snapshots are an [*Error], in which [errors.Is] finds a [Status] such as [ErrBadHandle].
//
// An IPv4-mapped address is an IPv6 address: Unmap it where IPv4 is meant. One with a zone is of neither family, and
// outside everything. [Raw] has every call of the ABI, for what the types leave out, such as batches.
package core

import (
	"encoding/binary"
	"math/big"
	"net/netip"
	"slices"
)

// Core is one instance of the core, in which pools and sets live.
type Core struct{ raw Raw }

// Open makes an instance. The first one compiles the module, in some tens of milliseconds. The caller closes it.
func Open() (*Core, error) {
	raw, err := instantiate()
	return &Core{raw}, err
}

// Close gives the instance's memory back.
func (c *Core) Close() error { return c.raw.module.Close(background) }

// Raw is the ABI of this instance, below the types of this package.
func (c *Core) Raw() *Raw { return &c.raw }

// Range is the addresses from First to Last, both included.
type Range struct{ First, Last netip.Addr }

// String is the range as "10.0.0.1-10.0.0.9".
func (r Range) String() string { return r.First.String() + "-" + r.Last.String() }

// RangesOf is the addresses of prefixes, whose host bits do not matter.
func RangesOf(prefixes ...netip.Prefix) []Range {
	ranges := make([]Range, len(prefixes))
	for i, prefix := range prefixes {
		last := prefix.Masked().Addr().AsSlice()
		for bit := prefix.Bits(); bit < 8*len(last); bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		ranges[i] = Range{prefix.Masked().Addr(), decode(last, len(last))}
	}
	return ranges
}

// widthOf is the bytes of an address; without any, of an IPv4 address.
func widthOf(ranges []Range) int {
	if len(ranges) > 0 && !ranges[0].First.Is4() {
		return 16
	}
	return 4
}

// unless calls where there is no error yet.
func unless(err error, call func() (int32, error)) (int32, error) {
	if err != nil {
		return 0, err
	}
	return call()
}

func errorOf(_ int32, err error) error { return err }

func isTrue(result int32, err error) (bool, error) { return result == 1, err }

// object is a pool or a set, of addresses of so many bytes.
type object struct {
	raw    *Raw
	width  int
	handle int32
}

// Handle names it in the calls of [Raw].
func (o object) Handle() int32 { return o.handle }

// Drop gives the memory back; every later use is [ErrBadHandle].
func (o object) Drop() error { return errorOf(o.raw.Drop(o.handle)) }

// ask is the answer of an operation to an address. One of another family is outside.
func (o object) ask(call func(r *Raw, handle int32) (int32, error), addr netip.Addr) (int32, error) {
	if o.raw.pass(o.width, addr) != nil {
		return int32(ErrOutside), nil
	}
	result, err := call(o.raw, o.handle)
	if Status(result) == ErrOutside {
		return result, nil
	}
	return result, err
}

// adopt is the set that an operation has made.
func (o object) adopt(handle int32, err error) (*RangeSet, error) {
	return &RangeSet{object{o.raw, o.width, handle}}, err
}

// RangeSet is a set of addresses of one family.
type RangeSet struct{ object }

// NewRangeSet makes a set of ranges of one family, which may overlap and stand in any order. The caller drops it.
func (c *Core) NewRangeSet(ranges ...Range) (*RangeSet, error) {
	return c.raw.newSet(widthOf(ranges), ranges)
}

func (r *Raw) newSet(width int, ranges []Range) (*RangeSet, error) {
	ends := make([]netip.Addr, 0, 2*len(ranges))
	for _, span := range ranges {
		ends = append(ends, span.First, span.Last)
	}
	if err := r.pass(width, ends...); err != nil {
		return nil, err
	}
	return object{raw: r, width: width}.adopt(r.SetCreate(family(width), int32(len(ranges))))
}

// Union makes a set of the addresses of either set, which the caller drops, as with the next two.
func (s *RangeSet) Union(o *RangeSet) (*RangeSet, error) {
	return s.adopt(s.raw.SetUnion(s.handle, o.handle))
}

// Intersect makes a set of the addresses of both sets.
func (s *RangeSet) Intersect(o *RangeSet) (*RangeSet, error) {
	return s.adopt(s.raw.SetIntersect(s.handle, o.handle))
}

// Subtract makes a set of the addresses of this set that are not in the other.
func (s *RangeSet) Subtract(o *RangeSet) (*RangeSet, error) {
	return s.adopt(s.raw.SetSubtract(s.handle, o.handle))
}

// Overlaps reports whether the sets share an address.
func (s *RangeSet) Overlaps(o *RangeSet) (bool, error) {
	return isTrue(s.raw.SetOverlaps(s.handle, o.handle))
}

// Includes reports whether every address of the other set is in this one.
func (s *RangeSet) Includes(o *RangeSet) (bool, error) {
	return isTrue(s.raw.SetIncludes(s.handle, o.handle))
}

// Contains reports whether the address is in the set.
func (s *RangeSet) Contains(addr netip.Addr) (bool, error) {
	return isTrue(s.ask((*Raw).SetContains, addr))
}

// Size is the number of addresses, at most 2^128.
func (s *RangeSet) Size() (*big.Int, error) {
	_, err := s.raw.SetSize(s.handle)
	return number(s.raw.Output()), err
}

// Ranges is the fewest ranges that make up the set, ascending.
func (s *RangeSet) Ranges() ([]Range, error) {
	count, err := s.raw.SetRanges(s.handle)
	output, ranges := s.raw.Output(), make([]Range, max(count, 0))
	for i := range ranges {
		item := output[2*i*s.width:]
		ranges[i] = Range{decode(item, s.width), decode(item[s.width:], s.width)}
	}
	return ranges, err
}

// Prefixes is the fewest prefixes that cover exactly the set, ascending.
func (s *RangeSet) Prefixes() ([]netip.Prefix, error) {
	count, err := s.raw.SetPrefixes(s.handle)
	output, prefixes := s.raw.Output(), make([]netip.Prefix, max(count, 0))
	for i := range prefixes {
		item := output[i*(s.width+1):]
		prefixes[i] = netip.PrefixFrom(decode(item, s.width), int(item[s.width]))
	}
	return prefixes, err
}

// Pool is which addresses of some ranges are used, and which is free next. The first [MaxWindow] are its window, in which
// free ones are found by [Policy]; those beyond can be claimed, and found by [Pool.FindFreeWide].
type Pool struct{ object }

// NewPool makes a pool with nothing used. Masked addresses (reserved, gateways) are never found free, but may be claimed.
// Ranges and masks are of one family and may overlap. The caller drops the pool.
func (c *Core) NewPool(ranges, masks []Range) (*Pool, error) {
	width := widthOf(slices.Concat(ranges, masks))
	handle, err := c.raw.withSets(width, ranges, masks, c.raw.PoolCreate)
	return &Pool{object{&c.raw, width, handle}}, err
}

func (r *Raw) withSets(width int, ranges, masks []Range, call func(a, b int32) (int32, error)) (int32, error) {
	a, err := r.newSet(width, ranges)
	if err != nil {
		return 0, err
	}
	defer a.Drop()
	b, err := r.newSet(width, masks)
	if err != nil {
		return 0, err
	}
	defer b.Drop()
	return call(a.handle, b.handle)
}

// Edit gives the pool other ranges and masks. What is used stays used wherever its address is in the new ranges.
func (p *Pool) Edit(ranges, masks []Range) error {
	edit := func(a, b int32) (int32, error) { return p.raw.PoolEdit(p.handle, a, b) }
	return errorOf(p.raw.withSets(p.width, ranges, masks, edit))
}

// at is the address of the ordinal that an operation has found.
func (p *Pool) at(ordinal int32, err error) (netip.Addr, error) {
	if err == nil {
		_, err = p.raw.PoolAddress(p.handle, uint32(ordinal))
	}
	return p.raw.address(p.width, ordinal, err)
}

// Allocate claims the next free address of the window: the zero Addr when none is free. The seed is for [Hashed].
func (p *Pool) Allocate(policy Policy, seed uint32) (netip.Addr, error) {
	return p.at(p.raw.PoolAllocate(p.handle, int32(policy), seed))
}

// TrackFreed remembers from now on in which order addresses become free, for [LeastRecentlyFreed].
func (p *Pool) TrackFreed() error { return errorOf(p.raw.PoolTrackFreed(p.handle)) }

// FindFree is the first free address at or after ordinal seed modulo the window, wrapping once. It claims nothing, as
// FindFreeWide, and both give the zero Addr when nothing is free.
func (p *Pool) FindFree(seed uint32) (netip.Addr, error) { return p.at(p.raw.PoolFind(p.handle, seed)) }

// FindFreeWide is the first free address in hashed order over all addresses, from the low bits of the seed on, a
// big-endian number.
func (p *Pool) FindFreeWide(seed [16]byte) (netip.Addr, error) {
	result, err := unless(p.raw.Write(seed[:]), func() (int32, error) { return p.raw.PoolFindWide(p.handle) })
	return p.raw.address(p.width, result, err)
}

// Contains reports whether the address may be allocated: it is in the ranges and not masked.
func (p *Pool) Contains(addr netip.Addr) (bool, error) {
	return isTrue(p.ask((*Raw).PoolContains, addr))
}

// Test reports whether the address is used.
func (p *Pool) Test(addr netip.Addr) (bool, error) { return isTrue(p.ask((*Raw).PoolTest, addr)) }

// Outcome is what became of an address. Claimed and Released are changes, Taken and Free say that it was so before.
type Outcome string

const (
	Claimed, Taken, Outside Outcome = "claimed", "taken", "outside"
	Released, Free          Outcome = "released", "free"
)

// Claim marks the address used, a masked one too: [Claimed], [Taken] or [Outside].
func (p *Pool) Claim(addr netip.Addr) (Outcome, error) {
	result, err := p.ask((*Raw).PoolClaim, addr)
	return map[int32]Outcome{1: Claimed, 0: Taken, int32(ErrOutside): Outside}[result], err
}

// Release marks the address not used: [Released], [Free] or [Outside].
func (p *Pool) Release(addr netip.Addr) (Outcome, error) {
	result, err := p.ask((*Raw).PoolRelease, addr)
	return map[int32]Outcome{1: Released, 0: Free, int32(ErrOutside): Outside}[result], err
}

// Counts is what a pool holds, in numbers of addresses.
type Counts struct {
	Total, Free      *big.Int // in the ranges and not masked; of those, not used
	Used, UsedMasked uint32   // masked or not, in the window or beyond; of those, masked
	Window, Beyond   uint32   // in the window; used beyond it
}

// Counts is what the pool holds.
func (p *Pool) Counts() (Counts, error) {
	_, err := p.raw.PoolCounts(p.handle)
	output := p.raw.Output()
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(output[at:]) }
	used, masked := word(CountsAtUsed), word(CountsAtUsedMasked)
	total := number(output[CountsAtSize:])
	total.Sub(total, number(output[CountsAtMasked:]))
	free := new(big.Int).Sub(total, big.NewInt(int64(used-masked)))
	return Counts{total, free, used, masked, word(CountsAtWindow), word(CountsAtBeyond)}, err
}

// Used makes a set of the used addresses, masked or not, which the caller drops.
func (p *Pool) Used() (*RangeSet, error) { return p.adopt(p.raw.PoolUsed(p.handle)) }

// Save is what is used, for [Pool.Load] of a pool with the same ranges. Masks and the order of release are not in it.
func (p *Pool) Save() ([]byte, error) {
	length, err := p.raw.PoolSave(p.handle)
	return slices.Clone(p.raw.Output()[:max(length, 0)]), err
}

// Load replaces what is used by what a snapshot says: [ErrBadSnapshot], [ErrOtherVersion], [ErrOtherPool] are refusals.
func (p *Pool) Load(snapshot []byte) error {
	load := func() (int32, error) { return p.raw.PoolLoad(p.handle, int32(len(snapshot))) }
	return errorOf(unless(p.raw.Write(snapshot), load))
}

// prefix is the address that an operation makes of a prefix: the zero Addr when there is none.
func (c *Core) prefix(call func(family, length int32) (int32, error), prefix netip.Prefix) (netip.Addr, error) {
	width := prefix.Addr().BitLen() / 8
	result, err := unless(c.raw.pass(width, prefix.Addr()), func() (int32, error) {
		return call(family(width), int32(prefix.Bits()))
	})
	return c.raw.address(width, result, err)
}

// PrefixFirst is the lowest address of the prefix.
func (c *Core) PrefixFirst(p netip.Prefix) (netip.Addr, error) { return c.prefix(c.raw.PrefixFirst, p) }

// PrefixLast is the highest address of the prefix.
func (c *Core) PrefixLast(p netip.Prefix) (netip.Addr, error) { return c.prefix(c.raw.PrefixLast, p) }

// PrefixMask is the network mask, such as 255.255.255.0 for a length of 24.
func (c *Core) PrefixMask(p netip.Prefix) (netip.Addr, error) { return c.prefix(c.raw.PrefixMask, p) }

// PrefixNext is the prefix of the same length after this one: an invalid one after the last.
func (c *Core) PrefixNext(p netip.Prefix) (netip.Prefix, error) {
	first, err := c.prefix(c.raw.PrefixNext, p)
	return netip.PrefixFrom(first, p.Bits()), err
}

// PrefixPart is part number index, from 0, of the prefix when it is split into prefixes of that length: an invalid one
// when there are not so many.
func (c *Core) PrefixPart(p netip.Prefix, bits int, index uint32) (netip.Prefix, error) {
	part := func(family, length int32) (int32, error) { return c.raw.PrefixPart(family, length, int32(bits), index) }
	first, err := c.prefix(part, p)
	return netip.PrefixFrom(first, bits), err
}

// PrefixCommon is the longest prefix that holds both addresses, which are of one family.
func (c *Core) PrefixCommon(a, b netip.Addr) (netip.Prefix, error) {
	width := a.BitLen() / 8
	common := func() (int32, error) { return c.raw.PrefixCommon(family(width)) }
	bits, err := unless(c.raw.pass(width, a, b), common)
	return netip.PrefixFrom(a, int(bits)).Masked(), err
}
