package core

import (
	"math/big"
	"net/netip"
)

// RangeSet is a set of addresses of one family, kept in the core until it is dropped.
type RangeSet struct {
	core   *Core
	family Family
	handle int32
}

// NewRangeSet makes a set of the addresses of the ranges, which may overlap and stand in any order. It refuses ranges
// of another family ([ErrBadFamily]) and the wrong way round ([ErrBadRange]), and more than [MaxRanges]
// ([ErrOverCeiling]). The caller drops the set.
func (c *Core) NewRangeSet(family Family, ranges []Range) (*RangeSet, error) {
	handle, err := c.newSet(family, ranges)
	if err != nil {
		return nil, err
	}
	return &RangeSet{c, family, handle}, nil
}

// NewPrefixSet is [Core.NewRangeSet] for prefixes, whose host bits do not matter.
func (c *Core) NewPrefixSet(family Family, prefixes []netip.Prefix) (*RangeSet, error) {
	const operation = "set_create_prefixes"
	item := family.width() + 1
	buffer, err := c.reserve(operation, len(prefixes)*item)
	if err != nil {
		return nil, err
	}
	for i, prefix := range prefixes {
		if !prefix.IsValid() || familyOf(prefix.Addr()) != family {
			return nil, refuse(operation, ErrBadFamily, "%v in a set of IPv%d without zones", prefix, family)
		}
		family.put(buffer[i*item:], prefix.Addr())
		buffer[i*item+item-1] = byte(prefix.Bits())
	}
	return c.adopt(operation, family, c.raw.SetCreatePrefixes(int32(family), countOf(len(prefixes))))
}

func (c *Core) newSet(family Family, ranges []Range) (int32, error) {
	const operation = "set_create"
	if family != IPv4 && family != IPv6 {
		return 0, refuse(operation, ErrBadFamily, "IPv%d", family)
	}
	width := family.width()
	buffer, err := c.reserve(operation, len(ranges)*2*width)
	if err != nil {
		return 0, err
	}
	for i, r := range ranges {
		if familyOf(r.First) != family || familyOf(r.Last) != family {
			return 0, refuse(operation, ErrBadFamily, "%v in a set of IPv%d without zones", r, family)
		}
		family.put(buffer[2*i*width:], r.First)
		family.put(buffer[(2*i+1)*width:], r.Last)
	}
	return c.check(operation, c.raw.SetCreate(int32(family), countOf(len(ranges))))
}

// adopt is the set that an operation has made.
func (c *Core) adopt(operation string, family Family, handle int32) (*RangeSet, error) {
	if _, err := c.check(operation, handle); err != nil {
		return nil, err
	}
	return &RangeSet{c, family, handle}, nil
}

// Family is the family of the set's addresses.
func (s *RangeSet) Family() Family { return s.family }

// Handle is the set in the calls of [Raw].
func (s *RangeSet) Handle() int32 { return s.handle }

// In is the same set in a copy of its Core.
func (s *RangeSet) In(twin *Core) *RangeSet {
	return &RangeSet{twin, s.family, s.handle}
}

// Drop gives the memory back; every later use fails with [ErrBadHandle].
func (s *RangeSet) Drop() error {
	return s.core.drop(s.handle)
}

// Union makes a set of the addresses of either set. As with [RangeSet.Intersect] and [RangeSet.Subtract], both are of
// one family and live in one Core, and the caller drops the result.
func (s *RangeSet) Union(other *RangeSet) (*RangeSet, error) {
	return s.derive("set_union", (*Raw).SetUnion, other)
}

// Intersect makes a set of the addresses of both sets.
func (s *RangeSet) Intersect(other *RangeSet) (*RangeSet, error) {
	return s.derive("set_intersect", (*Raw).SetIntersect, other)
}

// Subtract makes a set of the addresses of this set that are not in the other.
func (s *RangeSet) Subtract(other *RangeSet) (*RangeSet, error) {
	return s.derive("set_subtract", (*Raw).SetSubtract, other)
}

// Overlaps reports whether the sets share an address.
func (s *RangeSet) Overlaps(other *RangeSet) (bool, error) {
	return s.compare("set_overlaps", (*Raw).SetOverlaps, other)
}

// Includes reports whether every address of the other set is in this one.
func (s *RangeSet) Includes(other *RangeSet) (bool, error) {
	return s.compare("set_includes", (*Raw).SetIncludes, other)
}

type pairCall = func(r *Raw, a, b int32) int32

func (s *RangeSet) derive(operation string, call pairCall, other *RangeSet) (*RangeSet, error) {
	if err := s.requireNeighbour(operation, other); err != nil {
		return nil, err
	}
	return s.core.adopt(operation, s.family, call(&s.core.raw, s.handle, other.handle))
}

func (s *RangeSet) compare(operation string, call pairCall, other *RangeSet) (bool, error) {
	if err := s.requireNeighbour(operation, other); err != nil {
		return false, err
	}
	return s.core.truth(operation, call(&s.core.raw, s.handle, other.handle))
}

// A handle means nothing, or something else, in another instance.
func (s *RangeSet) requireNeighbour(operation string, other *RangeSet) error {
	if s.core == other.core {
		return nil
	}
	return refuse(operation, ErrBadHandle, "a set of another Core")
}

// Contains reports whether the address is in the set. One of another family is not.
func (s *RangeSet) Contains(addr netip.Addr) (bool, error) {
	if familyOf(addr) != s.family {
		return false, nil
	}
	buffer, err := s.core.reserve("set_contains", s.family.width())
	if err != nil {
		return false, err
	}
	s.family.put(buffer, addr)
	return s.core.truth("set_contains", s.core.raw.SetContains(s.handle))
}

// AppendContains appends [RangeSet.Contains] for each address to dst, in one call into the core.
func (s *RangeSet) AppendContains(dst []bool, addrs []netip.Addr) ([]bool, error) {
	return appendBatch(s.batch("set_contains_many", (*Raw).SetContainsMany), dst, addrs, isYes)
}

// ContainsPacked is how many of the packed addresses are in the set.
func (s *RangeSet) ContainsPacked(addrs []byte) (int, error) {
	return s.batch("set_contains_many", (*Raw).SetContainsMany).packed(addrs)
}

func (s *RangeSet) batch(operation string, call batchCall) batch {
	return batch{s.core, s.family, s.handle, operation, call}
}

// Count is the fewest ranges that make up the set.
func (s *RangeSet) Count() (int, error) {
	return s.core.number("set_count", s.core.raw.SetCount(s.handle))
}

// Size is the number of addresses, at most 2^128.
func (s *RangeSet) Size() (*big.Int, error) {
	if _, err := s.core.check("set_size", s.core.raw.SetSize(s.handle)); err != nil {
		return nil, err
	}
	return getSize(s.core.raw.Buffer()), nil
}

// Ranges is the fewest ranges that make up the set, ascending.
func (s *RangeSet) Ranges() ([]Range, error) {
	count, err := s.core.number("set_ranges", s.core.raw.SetRanges(s.handle))
	if err != nil {
		return nil, err
	}
	return getRanges(s.family, s.core.raw.Buffer(), count), nil
}

// Prefixes is the fewest prefixes that cover exactly the set, ascending.
func (s *RangeSet) Prefixes() ([]netip.Prefix, error) {
	count, err := s.core.number("set_prefixes", s.core.raw.SetPrefixes(s.handle))
	if err != nil {
		return nil, err
	}
	buffer, item := s.core.raw.Buffer(), s.family.width()+1
	prefixes := make([]netip.Prefix, count)
	for i := range prefixes {
		at := buffer[i*item:]
		prefixes[i] = netip.PrefixFrom(s.family.get(at), int(at[item-1]))
	}
	return prefixes, nil
}

// getSize reads the 17 bytes of a number of addresses.
func getSize(buffer []byte) *big.Int {
	return new(big.Int).SetBytes(buffer[:17])
}
