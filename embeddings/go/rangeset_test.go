package core

import (
	"net/netip"
	"testing"
)

func newSet(t testing.TB, core *Core, ranges ...Range) *RangeSet {
	t.Helper()
	family := IPv4
	if len(ranges) > 0 && !ranges[0].First.Is4() {
		family = IPv6
	}
	return must(core.NewRangeSet(family, ranges))
}

func TestSetAlgebra(t *testing.T) {
	core := open(t)
	a := newSet(t, core, span("10.0.0.0", "10.0.0.9"), span("10.0.0.20", "10.0.0.29"))
	b := newSet(t, core, span("10.0.0.5", "10.0.0.24"))
	rows := []struct {
		what   string
		set    *RangeSet
		wanted string
	}{
		{"union", must(a.Union(b)), "[10.0.0.0-10.0.0.29]"},
		{"intersect", must(a.Intersect(b)), "[10.0.0.5-10.0.0.9 10.0.0.20-10.0.0.24]"},
		{"subtract", must(a.Subtract(b)), "[10.0.0.0-10.0.0.4 10.0.0.25-10.0.0.29]"},
		{"subtract itself", must(a.Subtract(a)), "[]"},
	}
	for _, row := range rows {
		checkText(t, row.what, must(row.set.Ranges()), row.wanted)
	}
	check(t, "overlaps", must(a.Overlaps(b)), true)
	check(t, "does not overlap", must(rows[2].set.Overlaps(b)), false)
	check(t, "includes", must(rows[0].set.Includes(b)), true)
	check(t, "does not include", must(a.Includes(b)), false)
	check(t, "count", must(a.Count()), 2)
	checkText(t, "size", must(a.Size()), "20")
	check(t, "family", a.Family(), IPv4)
}

func TestSetOfPrefixes(t *testing.T) {
	core := open(t)
	set := must(core.NewPrefixSet(IPv4, []netip.Prefix{prefix("10.0.0.77/25"), prefix("10.0.0.128/25"), prefix("10.0.1.0/32")}))
	checkText(t, "ranges", must(set.Ranges()), "[10.0.0.0-10.0.1.0]")
	checkText(t, "prefixes", must(set.Prefixes()), "[10.0.0.0/24 10.0.1.0/32]")
	for _, wrong := range []netip.Prefix{prefix("::/0"), {}} {
		_, err := core.NewPrefixSet(IPv4, []netip.Prefix{wrong})
		checkErr(t, wrong.String(), err, ErrBadFamily)
	}
}

func TestSetOfAllAddresses(t *testing.T) {
	all := newSet(t, open(t), RangeOf(prefix("::/0")))
	if size := must(all.Size()); size.Cmp(bigPower(128)) != 0 {
		t.Errorf("size %v, wanted 2^128", size)
	}
	checkText(t, "prefixes", must(all.Prefixes()), "[::/0]")
}

func TestSetContains(t *testing.T) {
	core := open(t)
	four := newSet(t, core, RangeOf(prefix("10.0.0.0/24")))
	six := newSet(t, core, RangeOf(prefix("::ffff:0:0/96")), RangeOf(prefix("fe80::/64")))
	rows := []struct {
		addr          netip.Addr
		inFour, inSix bool
	}{
		{addr("10.0.0.255"), true, false},
		{addr("10.0.1.0"), false, false},
		{addr("::ffff:10.0.0.1"), false, true},
		{addr("fe80::1"), false, true},
		{addr("fe80::1%eth0"), false, false},
		{netip.Addr{}, false, false},
	}
	var addrs []netip.Addr
	for _, row := range rows {
		check(t, row.addr.String()+" in IPv4", must(four.Contains(row.addr)), row.inFour)
		check(t, row.addr.String()+" in IPv6", must(six.Contains(row.addr)), row.inSix)
		addrs = append(addrs, row.addr)
	}
	checkText(t, "many in IPv4", must(four.AppendContains(nil, addrs)), "[true false false false false false]")
	checkText(t, "many in IPv6", must(six.AppendContains([]bool{true}, addrs)), "[true false false true true false false]")
	check(t, "packed", must(four.ContainsPacked([]byte{10, 0, 0, 7, 10, 0, 1, 7, 10, 0, 0, 8})), 2)
	_, err := four.ContainsPacked([]byte{10, 0, 0})
	checkErr(t, "half an address", err, ErrBadArgument)
}

func TestSetRefusals(t *testing.T) {
	core := open(t)
	for what, wrong := range map[string]Range{
		"another family": span("::1", "::2"),
		"two families":   span("10.0.0.1", "::2"),
		"nothing":        {},
	} {
		_, err := core.NewRangeSet(IPv4, []Range{wrong})
		checkErr(t, what, err, ErrBadFamily)
	}
	_, err := core.NewRangeSet(IPv6, []Range{span("fe80::1%eth0", "fe80::2%eth0")})
	checkErr(t, "zones", err, ErrBadFamily)
	for _, family := range []Family{0, 5} {
		_, err = core.NewRangeSet(family, []Range{{}})
		checkErr(t, "no family", err, ErrBadFamily)
		_, err = core.NewPrefixSet(family, []netip.Prefix{{}})
		checkErr(t, "no family", err, ErrBadFamily)
	}

	four, six := newSet(t, core, span("10.0.0.1", "10.0.0.2")), newSet(t, core, span("::1", "::2"))
	_, err = four.Union(six)
	checkErr(t, "union of two families", err, ErrBadFamily)
	_, err = four.Includes(newSet(t, open(t), span("10.0.0.1", "10.0.0.2")))
	checkErr(t, "a set of another core", err, ErrBadHandle)

	check(t, "drop", four.Drop(), nil)
	checkErr(t, "drop again", four.Drop(), ErrBadHandle)
	_, err = four.Ranges()
	checkErr(t, "ranges of a dropped set", err, ErrBadHandle)
	_, err = (&Pool{core, IPv6, six.Handle()}).Test(addr("::1"))
	checkErr(t, "a set taken for a pool", err, ErrBadHandle)
}

func TestSetLargerThanTheExchangeBuffer(t *testing.T) {
	core := open(t)
	ranges := make([]Range, 100_000)
	for i := range ranges {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 15), byte(i >> 7), byte(i << 1)})
		ranges[i] = Range{a, a}
	}
	set := must(core.NewRangeSet(IPv4, ranges))
	found := must(set.Ranges())
	check(t, "ranges", len(found), len(ranges))
	check(t, "last", found[len(found)-1], ranges[len(ranges)-1])
}
