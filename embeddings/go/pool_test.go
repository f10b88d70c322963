package core

import (
	"net/netip"
	"testing"
)

func TestAllocateByPolicy(t *testing.T) {
	core := open(t)
	pool := must(core.NewPool(RangesOf(prefix("10.0.0.0/29")), []Range{span("10.0.0.0", "10.0.0.1")}))
	check(t, "track", pool.TrackFreed(), nil)
	rows := []struct {
		policy Policy
		seed   uint32
		wanted string
	}{
		{Ascending, 0, "10.0.0.2"},
		{Hashed, 6, "10.0.0.6"},
		{Hashed, 0xffffffff, "10.0.0.7"},
		{RoundRobin, 0, "10.0.0.3"},
		{RoundRobin, 0, "10.0.0.4"},
		{LeastRecentlyFreed, 0, "10.0.0.5"},
	}
	for _, row := range rows {
		check(t, "address", must(pool.Allocate(row.policy, row.seed)), addr(row.wanted))
	}
	check(t, "full", must(pool.Allocate(Ascending, 0)), netip.Addr{})
	check(t, "find in a full pool", must(pool.FindFree(3)), netip.Addr{})
	check(t, "find wide in a full pool", must(pool.FindFreeWide([16]byte{})), netip.Addr{})
	check(t, "find a run in a full pool", must(pool.FindFreeRun(1, 0, 0)), Range{})
	for _, freed := range []string{"10.0.0.7", "10.0.0.4"} {
		check(t, "release", must(pool.Release(addr(freed))), Released)
	}
	check(t, "freed longest ago", must(pool.Allocate(LeastRecentlyFreed, 0)), addr("10.0.0.7"))
	check(t, "find", must(pool.FindFree(0)), addr("10.0.0.4"))
	check(t, "found is still free", must(pool.Test(addr("10.0.0.4"))), false)
}

func TestClaimAndRelease(t *testing.T) {
	core := open(t)
	four := must(core.NewPool(RangesOf(prefix("10.0.0.0/24")), RangesOf(prefix("10.0.0.0/32"))))
	six := newPool(t, core, "fe80::/64")
	rows := []struct {
		pool     *Pool
		addr     netip.Addr
		contains bool
		claim    Outcome
		again    Outcome
		release  Outcome
	}{
		{four, addr("10.0.0.9"), true, Claimed, Taken, Released},
		{four, addr("10.0.0.0"), false, Claimed, Taken, Released}, // masked
		{four, addr("10.0.1.0"), false, Outside, Outside, Outside},
		{four, addr("::ffff:10.0.0.9"), false, Outside, Outside, Outside},
		{four, netip.Addr{}, false, Outside, Outside, Outside},
		{six, addr("fe80::9"), true, Claimed, Taken, Released},
		{six, addr("fe80::1:0:0:9"), true, Claimed, Taken, Released}, // beyond the window
		{six, addr("fe80::9%eth0"), false, Outside, Outside, Outside},
		{six, addr("10.0.0.9"), false, Outside, Outside, Outside},
	}
	for _, row := range rows {
		what, list := row.addr.String(), []netip.Addr{row.addr}
		check(t, what+" contained", must(row.pool.Contains(row.addr)), row.contains)
		check(t, what+" contained, many", must(row.pool.AppendContains(nil, list))[0], row.contains)
		check(t, what+" claimed", must(row.pool.Claim(row.addr)), row.claim)
		check(t, what+" claimed, many", must(row.pool.AppendClaim(nil, list))[0], row.again)
		check(t, what+" used", must(row.pool.Test(row.addr)), row.claim == Claimed)
		check(t, what+" used, many", must(row.pool.AppendTest(nil, list))[0], row.claim == Claimed)
		check(t, what+" released", must(row.pool.Release(row.addr)), row.release)
		free := Free
		if row.release == Outside {
			free = Outside
		}
		check(t, what+" released, many", must(row.pool.AppendRelease(nil, list))[0], free)
	}
	checkText(t, "outcomes", []Outcome{Outside, Claimed, Taken, Released, Free, 9}, "[outside claimed taken released free unknown]")
}

func TestBatches(t *testing.T) {
	core := open(t)
	pool := newPool(t, core, "10.0.0.0/30")
	addrs := []netip.Addr{addr("10.0.0.1"), addr("::1"), addr("10.0.0.1"), addr("10.0.0.4"), addr("10.0.0.2")}
	checkText(t, "claim", must(pool.AppendClaim(nil, addrs)), "[claimed outside taken outside claimed]")
	checkText(t, "test", must(pool.AppendTest(nil, addrs)), "[true false true false true]")
	checkText(t, "allocate", must(pool.AppendAllocate(addrs[:1], 9, Ascending, 0)), "[10.0.0.1 10.0.0.0 10.0.0.3]")
	checkText(t, "none left", must(pool.AppendAllocate(nil, 9, Ascending, 0)), "[]")
	checkText(t, "release", must(pool.AppendRelease(nil, []netip.Addr{addr("10.0.0.1"), addr("10.0.0.1")})), "[released free]")

	packed := must(pool.AppendAllocatePacked([]byte{1}, 9, Ascending, 0))
	checkText(t, "packed", packed, "[1 10 0 0 1]")
	check(t, "release packed", must(pool.ReleasePacked(append(packed[1:], 10, 9, 9, 9))), 1)
	check(t, "claim packed", must(pool.ClaimPacked([]byte{10, 0, 0, 1, 10, 0, 0, 2})), 1)
	check(t, "test packed", must(pool.TestPacked([]byte{10, 0, 0, 1, 10, 0, 0, 2})), 2)
	check(t, "contains packed", must(pool.ContainsPacked([]byte{10, 0, 0, 1, 10, 0, 0, 9})), 1)
	_, err := pool.ClaimPacked([]byte{10, 0, 0})
	checkErr(t, "half an address", err, ErrBadArgument)
	_, err = pool.AppendAllocate(nil, -1, Ascending, 0)
	checkErr(t, "fewer than none", err, ErrBadArgument)
	_, err = pool.ClaimPacked(make([]byte, MaxExchange+4))
	checkErr(t, "more than the buffer may hold", err, ErrOverCeiling)
}

// The exchange buffer moves and the memory grows while a batch runs: what it answers stands in the new place.
func TestBatchesThatGrowTheMemory(t *testing.T) {
	core := open(t)
	pool := newPool(t, core, "2001:db8::/64")
	first := len(core.Raw().Memory())
	addrs := must(pool.AppendAllocate(nil, 300_000, Ascending, 0))
	check(t, "allocated", len(addrs), 300_000)
	check(t, "last", addrs[299_999], addr("2001:db8::4:93df"))
	if len(core.Raw().Memory()) == first {
		t.Error("the memory has not grown")
	}
	var beyond []netip.Addr
	for i := range 50_000 {
		beyond = append(beyond, netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 9: 1, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}))
	}
	for i, outcome := range must(pool.AppendClaim(nil, beyond)) {
		if outcome != Claimed {
			t.Fatalf("%v is %v", beyond[i], outcome)
		}
	}
	check(t, "beyond", must(pool.Counts()).Beyond, 50_000)
}

func TestBatchThatReachesACeiling(t *testing.T) {
	pool := newPool(t, open(t), "2001:db8::/64")
	addrs := make([]netip.Addr, MaxSparse+2)
	for i := range addrs {
		addrs[i] = netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, 9: 1, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
	}
	outcomes, err := pool.AppendClaim(nil, addrs)
	checkErr(t, "error", err, ErrOverCeiling)
	check(t, "outcomes", len(outcomes), MaxSparse)
	check(t, "the last outcome", outcomes[len(outcomes)-1], Claimed)
	check(t, "beyond", must(pool.Counts()).Beyond, MaxSparse)
}

func TestRuns(t *testing.T) {
	core := open(t)
	pool := must(core.NewPool([]Range{span("10.0.0.0", "10.0.0.99"), span("10.0.1.0", "10.0.1.99")}, nil))
	run := must(pool.FindFreeRun(8, 3, 3))
	check(t, "found", run, span("10.0.0.8", "10.0.0.15"))
	check(t, "claimed", must(pool.ClaimRun(run)), Claimed)
	check(t, "claimed again", must(pool.ClaimRun(run)), Taken)
	check(t, "used", must(pool.Counts()).Used, 8)
	check(t, "the next one", must(pool.FindFreeRun(8, 3, 8)), span("10.0.0.16", "10.0.0.23"))
	check(t, "released", must(pool.ReleaseRun(run)), Released)
	check(t, "released again", must(pool.ReleaseRun(run)), Free)
	for what, outside := range map[string]Range{
		"across a gap":      span("10.0.0.98", "10.0.1.1"),
		"the wrong way":     span("10.0.0.9", "10.0.0.8"),
		"half outside":      span("10.0.1.99", "10.0.1.100"),
		"of another family": span("::1", "::2"),
		"nothing":           {},
	} {
		check(t, what, must(pool.ClaimRun(outside)), Outside)
		check(t, what, must(pool.ReleaseRun(outside)), Outside)
	}
	check(t, "too long", must(pool.FindFreeRun(101, 0, 0)), Range{})
	_, err := pool.FindFreeRun(0, 0, 0)
	checkErr(t, "no count", err, ErrBadArgument)
	_, err = pool.FindFreeRun(1, 25, 0)
	checkErr(t, "too much alignment", err, ErrBadArgument)
}

func TestWide(t *testing.T) {
	pool := newPool(t, open(t), "2001:db8::/64")
	found := must(pool.FindFreeWide([16]byte{8: 0xab, 15: 0xcd}))
	check(t, "found", found, addr("2001:db8::ab00:0:0:cd"))
	check(t, "claimed", must(pool.Claim(found)), Claimed)
	check(t, "the next one", must(pool.FindFreeWide([16]byte{8: 0xab, 15: 0xcd})), addr("2001:db8::ab00:0:0:ce"))
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	pool := newPool(t, open(t), "10.0.0.0/16")
	var err error
	addrs, packed, outcomes := make([]netip.Addr, 0, 256), make([]byte, 0, 1024), make([]Outcome, 0, 256)
	for what, run := range map[string]func(){
		"one": func() {
			var one netip.Addr
			one, err = pool.Allocate(RoundRobin, 0)
			must(one, err)
			must(pool.Release(one))
		},
		"many": func() {
			addrs = must(pool.AppendAllocate(addrs[:0], 256, RoundRobin, 0))
			outcomes = must(pool.AppendRelease(outcomes[:0], addrs))
		},
		"packed": func() {
			packed = must(pool.AppendAllocatePacked(packed[:0], 256, RoundRobin, 0))
			must(pool.ReleasePacked(packed))
		},
	} {
		check(t, what, testing.AllocsPerRun(100, run), 0)
	}
	check(t, "used", must(pool.Counts()).Used, 0)
}
