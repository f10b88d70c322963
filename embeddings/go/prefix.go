package core

import (
	"net/netip"
)

// PrefixFirst is the lowest address of the prefix.
func (c *Core) PrefixFirst(prefix netip.Prefix) (netip.Addr, error) {
	return c.prefixAddr("prefix_first", c.raw.PrefixFirst, prefix)
}

// PrefixLast is the highest address of the prefix.
func (c *Core) PrefixLast(prefix netip.Prefix) (netip.Addr, error) {
	return c.prefixAddr("prefix_last", c.raw.PrefixLast, prefix)
}

// PrefixMask is the network mask of a length, such as 255.255.255.0 for 24.
func (c *Core) PrefixMask(family Family, bits int) (netip.Addr, error) {
	return c.addr("prefix_mask", family, c.raw.PrefixMask(int32(family), countOf(bits)))
}

// PrefixNext is the prefix of the same length after this one: the zero Prefix after the last one.
func (c *Core) PrefixNext(prefix netip.Prefix) (netip.Prefix, error) {
	first, err := c.prefixAddr("prefix_next", c.raw.PrefixNext, prefix)
	return prefixOrNone(first, prefix.Bits(), err)
}

// PrefixPart is part number index, from 0, of the prefix when it is split into prefixes of that length: the zero Prefix
// when there are not so many. A length below the prefix's own is [ErrBadArgument].
func (c *Core) PrefixPart(prefix netip.Prefix, bits int, index uint32) (netip.Prefix, error) {
	part := func(family, length int32) int32 { return c.raw.PrefixPart(family, length, countOf(bits), index) }
	first, err := c.prefixAddr("prefix_part", part, prefix)
	return prefixOrNone(first, bits, err)
}

// PrefixCommon is the longest prefix that holds both addresses, which are of one family.
func (c *Core) PrefixCommon(a, b netip.Addr) (netip.Prefix, error) {
	const operation = "prefix_common"
	family := familyOf(a)
	if family == 0 || family != familyOf(b) {
		return netip.Prefix{}, refuse(operation, ErrBadFamily, "%v and %v", a, b)
	}
	width := family.width()
	buffer, err := c.reserve(operation, 2*width)
	if err != nil {
		return netip.Prefix{}, err
	}
	family.put(buffer, a)
	family.put(buffer[width:], b)
	bits, err := c.number(operation, c.raw.PrefixCommon(int32(family)))
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, bits).Masked(), nil
}

// prefixAddr is the address that an operation makes of a prefix.
func (c *Core) prefixAddr(operation string, call func(family, length int32) int32, prefix netip.Prefix) (netip.Addr, error) {
	family := familyOf(prefix.Addr())
	if !prefix.IsValid() || family == 0 {
		return netip.Addr{}, refuse(operation, ErrBadFamily, "%v", prefix)
	}
	buffer, err := c.reserve(operation, family.width())
	if err != nil {
		return netip.Addr{}, err
	}
	family.put(buffer, prefix.Addr())
	return c.addr(operation, family, call(int32(family), int32(prefix.Bits())))
}

// addr is the address that an operation has written: the zero Addr when there is none.
func (c *Core) addr(operation string, family Family, result int32) (netip.Addr, error) {
	if status := Status(result); status == ErrNone || status == ErrOutside {
		return netip.Addr{}, nil
	}
	if _, err := c.check(operation, result); err != nil {
		return netip.Addr{}, err
	}
	return family.get(c.raw.Buffer()), nil
}

func prefixOrNone(first netip.Addr, bits int, err error) (netip.Prefix, error) {
	if err != nil || !first.IsValid() {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(first, bits), nil
}
