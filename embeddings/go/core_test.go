package core

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"testing"
)

func open(t testing.TB) *Core {
	t.Helper()
	core := must(Open())
	t.Cleanup(func() { core.Close() })
	return core
}

// must is for what a test takes for granted.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check[T comparable](t *testing.T, what string, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Errorf("%s: %v, wanted %v", what, found, wanted)
	}
}

// checkErr wants an error of this status.
func checkErr(t *testing.T, what string, err error, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Errorf("%s: error %v, wanted %v", what, err, wanted)
	}
}

// checkText compares values as they print.
func checkText(t *testing.T, what string, found any, wanted string) {
	t.Helper()
	check(t, what, fmt.Sprint(found), wanted)
}

var (
	addr   = netip.MustParseAddr
	prefix = netip.MustParsePrefix
)

// span is the range "10.0.0.1-10.0.0.9".
func span(first, last string) Range {
	return Range{addr(first), addr(last)}
}

func newPool(t testing.TB, core *Core, text string) *Pool {
	t.Helper()
	return must(core.NewPool(RangesOf(prefix(text)), nil))
}

func TestBufferIsWhereTheABISaysItIs(t *testing.T) {
	raw := open(t).Raw()
	for _, length := range []int32{0, 5000, 300_000, 1 << 24} {
		start := raw.Exchange(length)
		buffer := raw.Buffer()
		check(t, "length", len(buffer), int(raw.ExchangeSize()))
		check(t, "start", &buffer[0], &raw.Memory()[start])
		if len(buffer) < int(length) {
			t.Errorf("%d bytes, wanted %d", len(buffer), length)
		}
	}
}

func TestRawAnswersStatuses(t *testing.T) {
	raw := open(t).Raw()
	check(t, "a handle of nothing", Status(raw.PoolTest(77)), ErrBadHandle)
	check(t, "another family", Status(raw.SetCreate(5, 0)), ErrBadFamily)
	check(t, "u32 above 2^31", Status(raw.PoolFind(77, 0xffffffff)), ErrBadHandle)
	_, err := raw.Call("pool_tset", 1)
	checkText(t, "an unknown export", err, `core: there is no export "pool_tset"`)
	_, err = raw.Call("pool_test")
	checkText(t, "too few arguments", err, "core: pool_test has 1 parameters, not 0")
}

func TestErrorsSayWhatWhereAndWhy(t *testing.T) {
	core := open(t)
	_, err := core.NewRangeSet(IPv4, []Range{span("10.0.0.9", "10.0.0.1")})
	checkText(t, "text", err, "core: set_create: BAD_RANGE (-3): a range whose first address is above its last")
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("%T, wanted *Error", err)
	}
	check(t, "operation", refusal.Operation, "set_create")
	check(t, "status", refusal.Status, ErrBadRange)
	check(t, "no status", Status(-99).Error(), "unknown status -99")
}

func TestCopyIsEqualAndGoesItsOwnWay(t *testing.T) {
	core := open(t)
	pool := newPool(t, core, "10.0.0.0/8")
	must(pool.AppendAllocate(nil, 200_000, Hashed, 4_000_000_000)) // makes the memory grow
	set := must(core.NewPrefixSet(IPv6, []netip.Prefix{prefix("2001:db8::/64")}))
	twin := must(core.Copy())
	defer twin.Close()
	check(t, "bytes in use", must(twin.StateBytes()), must(core.StateBytes()))
	check(t, "bytes of memory", len(twin.Raw().Memory()), len(core.Raw().Memory()))
	if length := must(core.StateBytes()); !bytes.Equal(twin.Raw().Memory()[:length], core.Raw().Memory()[:length]) {
		t.Error("the memories differ")
	}
	check(t, "next address", must(pool.In(twin).Allocate(Ascending, 0)), must(pool.Allocate(Ascending, 0)))
	must(pool.In(twin).Allocate(Ascending, 0))
	check(t, "used in the copy", must(pool.In(twin).Counts()).Used, 200_002)
	check(t, "used", must(pool.Counts()).Used, 200_001)
	checkText(t, "the set in the copy", must(set.In(twin).Prefixes()), "[2001:db8::/64]")
}

func TestClosedCoreRefusesEverything(t *testing.T) {
	core := must(Open())
	pool := newPool(t, core, "10.0.0.0/24")
	set := must(pool.Ranges())
	must(pool.Allocate(RoundRobin, 0))
	check(t, "close", core.Close(), nil)
	check(t, "close again", core.Close(), nil)

	_, err := pool.Allocate(RoundRobin, 0)
	checkErr(t, "allocate", err, ErrClosed)
	_, err = pool.Claim(addr("10.0.0.1"))
	checkErr(t, "claim", err, ErrClosed)
	_, err = pool.AppendClaim(nil, []netip.Addr{addr("10.0.0.1")})
	checkErr(t, "claim many", err, ErrClosed)
	_, err = pool.AppendClaim(nil, nil)
	checkErr(t, "claim none", err, ErrClosed)
	checkErr(t, "load", pool.Load(nil), ErrClosed)
	_, err = set.Size()
	checkErr(t, "size", err, ErrClosed)
	_, err = core.NewPool(nil, nil)
	checkErr(t, "create", err, ErrClosed)
	_, err = core.Copy()
	checkErr(t, "copy", err, ErrClosed)
	check(t, "raw", core.Raw().LiveObjects(), Failed)
	_, err = core.Raw().Call("live_objects")
	checkErr(t, "raw, by name", err, ErrClosed)
	check(t, "buffer", len(core.Raw().Buffer()), 0)
	check(t, "memory", len(core.Raw().Memory()), 0)
}

func TestPoolsComeAndGo(t *testing.T) {
	core := open(t)
	ranges := RangesOf(prefix("10.0.0.0/16"))
	before := must(core.StateBytes())
	for range 100_000 {
		pool := must(core.NewPool(ranges, nil))
		must(pool.Allocate(Ascending, 0))
		if err := pool.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "live objects", must(core.LiveObjects()), 0)
	if grown := must(core.StateBytes()) - before; grown > 16384 {
		t.Errorf("%d bytes more in use", grown)
	}
}

func TestObjectsHaveACeiling(t *testing.T) {
	core := open(t)
	var err error
	for err == nil {
		_, err = core.NewRangeSet(IPv4, nil)
	}
	checkErr(t, "one too many", err, ErrOverCeiling)
	check(t, "live objects", must(core.LiveObjects()), MaxObjects)
}

func TestInstancesAreApart(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, open(t), "10.0.0.0/20")
			for count := range 4096 {
				if !must(pool.Allocate(Hashed, uint32(count*2_654_435_761))).IsValid() {
					t.Fatalf("full after %d", count)
				}
			}
			check(t, "one more", must(pool.Allocate(Hashed, 0)), netip.Addr{})
		})
	}
}

func TestPrefixArithmetic(t *testing.T) {
	core := open(t)
	check(t, "first", must(core.PrefixFirst(prefix("10.1.2.3/22"))), addr("10.1.0.0"))
	check(t, "last", must(core.PrefixLast(prefix("2001:db8::1/64"))), addr("2001:db8::ffff:ffff:ffff:ffff"))
	check(t, "mask", must(core.PrefixMask(IPv4, 22)), addr("255.255.252.0"))
	check(t, "mask of IPv6", must(core.PrefixMask(IPv6, 9)), addr("ff80::"))
	check(t, "next", must(core.PrefixNext(prefix("10.0.255.0/24"))), prefix("10.1.0.0/24"))
	check(t, "next of the last", must(core.PrefixNext(prefix("255.0.0.0/8"))), netip.Prefix{})
	check(t, "part", must(core.PrefixPart(prefix("10.0.0.0/8"), 24, 65535)), prefix("10.255.255.0/24"))
	check(t, "part after the last", must(core.PrefixPart(prefix("10.0.0.0/8"), 24, 65536)), netip.Prefix{})
	check(t, "common", must(core.PrefixCommon(addr("10.0.0.1"), addr("10.0.0.6"))), prefix("10.0.0.0/29"))

	_, err := core.PrefixPart(prefix("10.0.0.0/8"), 7, 0)
	checkErr(t, "a part larger than the whole", err, ErrBadArgument)
	_, err = core.PrefixCommon(addr("10.0.0.1"), addr("::1"))
	checkErr(t, "two families", err, ErrBadFamily)
	_, err = core.PrefixFirst(netip.Prefix{})
	checkErr(t, "no prefix", err, ErrBadFamily)
	_, err = core.PrefixMask(7, 8)
	checkErr(t, "no family", err, ErrBadFamily)
	_, err = core.PrefixMask(IPv4, 33)
	checkErr(t, "too long", err, ErrBadArgument)
}

func TestRangeOf(t *testing.T) {
	check(t, "IPv4", RangeOf(prefix("10.1.2.3/22")), span("10.1.0.0", "10.1.3.255"))
	check(t, "one address", RangeOf(prefix("10.1.2.3/32")), span("10.1.2.3", "10.1.2.3"))
	check(t, "IPv6", RangeOf(prefix("2001:db8::/61")), span("2001:db8::", "2001:db8:0:7:ffff:ffff:ffff:ffff"))
	check(t, "all", RangeOf(prefix("::/0")), span("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"))
	check(t, "mapped", RangeOf(prefix("::ffff:10.0.0.0/120")), span("::ffff:10.0.0.0", "::ffff:10.0.0.255"))
	check(t, "none", RangeOf(netip.Prefix{}), Range{})
	check(t, "valid", span("10.0.0.1", "10.0.0.1").IsValid(), true)
	check(t, "the wrong way round", span("10.0.0.2", "10.0.0.1").IsValid(), false)
	check(t, "two families", span("10.0.0.2", "::ffff").IsValid(), false)
	check(t, "zones", span("fe80::1%a", "fe80::2%a").IsValid(), false)
	check(t, "zero", Range{}.IsValid(), false)
}

func bigPower(bits uint) *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), bits)
}
