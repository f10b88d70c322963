package core

import (
	"net/netip"
)

// Family is the family of all addresses of one pool or set.
type Family uint8

const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// familyOf is 0 for an address of neither family: the zero Addr, and one with a zone.
func familyOf(addr netip.Addr) Family {
	switch {
	case addr.Is4():
		return IPv4
	case addr.Is6() && addr.Zone() == "":
		return IPv6
	}
	return 0
}

// width is the bytes of an address in the exchange buffer.
func (f Family) width() int {
	if f == IPv4 {
		return 4
	}
	return 16
}

// put writes an address of the family to the start of the buffer.
func (f Family) put(buffer []byte, addr netip.Addr) {
	if f == IPv4 {
		bytes := addr.As4()
		copy(buffer, bytes[:])
	} else {
		bytes := addr.As16()
		copy(buffer, bytes[:])
	}
}

// get reads an address of the family from the start of the buffer.
func (f Family) get(buffer []byte) netip.Addr {
	if f == IPv4 {
		return netip.AddrFrom4([4]byte(buffer))
	}
	return netip.AddrFrom16([16]byte(buffer))
}

// Range is the addresses from First to Last, both included.
type Range struct {
	First, Last netip.Addr
}

// RangeOf is the addresses of a prefix, whose host bits do not matter. Of an invalid prefix it is the zero Range.
func RangeOf(prefix netip.Prefix) Range {
	if !prefix.IsValid() {
		return Range{}
	}
	first := prefix.Masked().Addr()
	last := first.AsSlice()
	for bit := prefix.Bits(); bit < first.BitLen(); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(last)
	return Range{first, addr}
}

// RangesOf is the addresses of prefixes, as a pool or set is made of.
func RangesOf(prefixes ...netip.Prefix) []Range {
	ranges := make([]Range, len(prefixes))
	for i, prefix := range prefixes {
		ranges[i] = RangeOf(prefix)
	}
	return ranges
}

// IsValid reports whether the range has two addresses of one family, without zones, in order.
func (r Range) IsValid() bool {
	family := familyOf(r.First)
	return family != 0 && family == familyOf(r.Last) && !r.Last.Less(r.First)
}

// String is the range as "10.0.0.1-10.0.0.9".
func (r Range) String() string {
	return r.First.String() + "-" + r.Last.String()
}

func getRanges(family Family, buffer []byte, count int) []Range {
	width := family.width()
	ranges := make([]Range, count)
	for i := range ranges {
		at := buffer[2*i*width:]
		ranges[i] = Range{family.get(at), family.get(at[width:])}
	}
	return ranges
}
