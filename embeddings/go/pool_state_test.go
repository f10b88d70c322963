package core

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math/big"
	"testing"
)

func TestCounts(t *testing.T) {
	core := open(t)
	pool := must(core.NewPool(RangesOf(prefix("2001:db8::/64")), RangesOf(prefix("2001:db8::/120"))))
	must(pool.Allocate(Ascending, 0))
	must(pool.Claim(addr("2001:db8::1")))
	must(pool.Claim(addr("2001:db8::1:0:0:0")))
	counts := must(pool.Counts())
	total := new(big.Int).Sub(bigPower(64), big.NewInt(256))
	check(t, "total", counts.Total.String(), total.String())
	check(t, "free", counts.Free.String(), total.Sub(total, big.NewInt(2)).String())
	check(t, "used", counts.Used, 3)
	check(t, "used and masked", counts.UsedMasked, 1)
	check(t, "window", counts.Window, MaxWindow)
	check(t, "beyond", counts.Beyond, 1)
	check(t, "digest", counts.Digest, must(newPool(t, core, "2001:db8::/64").Counts()).Digest)
	if counts.Digest == must(newPool(t, core, "2001:db8::/65").Counts()).Digest {
		t.Error("other ranges have the same digest")
	}
}

func TestFreePerBlock(t *testing.T) {
	pool := must(open(t).NewPool([]Range{span("10.0.0.0", "10.0.16.9")}, []Range{span("10.0.16.0", "10.0.16.1")}))
	must(pool.Allocate(Ascending, 0))
	checkText(t, "free", must(pool.FreePerBlock()), "[4095 8]")
}

func TestSetsOfAPool(t *testing.T) {
	pool := must(open(t).NewPool(RangesOf(prefix("10.0.0.0/24")), RangesOf(prefix("10.0.0.254/31"), prefix("10.9.0.0/16"))))
	must(pool.AppendAllocate(nil, 3, Ascending, 0))
	checkText(t, "ranges", must(must(pool.Ranges()).Prefixes()), "[10.0.0.0/24]")
	checkText(t, "masks", must(must(pool.Masks()).Ranges()), "[10.0.0.254-10.0.0.255]")
	checkText(t, "used", must(must(pool.Used()).Ranges()), "[10.0.0.0-10.0.0.2]")
}

func TestEditKeepsWhatStaysInside(t *testing.T) {
	core := open(t)
	pool := newPool(t, core, "10.0.0.0/24")
	must(pool.AppendAllocate(nil, 10, Ascending, 0))
	check(t, "edit", pool.Edit([]Range{span("10.0.0.5", "10.0.0.20")}, []Range{span("10.0.0.10", "10.0.0.11")}), nil)
	checkText(t, "used", must(must(pool.Used()).Ranges()), "[10.0.0.5-10.0.0.9]")
	check(t, "next", must(pool.Allocate(Ascending, 0)), addr("10.0.0.12"))
	checkErr(t, "another family", pool.Edit(RangesOf(prefix("::/64")), nil), ErrBadFamily)
	checkErr(t, "masks of another family", pool.Edit(nil, RangesOf(prefix("::/64"))), ErrBadFamily)
	checkErr(t, "the wrong way round", pool.Edit([]Range{span("10.0.0.2", "10.0.0.1")}, nil), ErrBadRange)
	check(t, "used after refusals", must(pool.Counts()).Used, 6)
	check(t, "live objects", must(core.LiveObjects()), 2) // the pool, and what Used has made
	check(t, "edit to nothing", pool.Edit(nil, nil), nil)
	checkText(t, "total", must(pool.Counts()).Total, "0")
}

func TestPoolRefusals(t *testing.T) {
	core := open(t)
	_, err := core.NewPool(RangesOf(prefix("10.0.0.0/24")), RangesOf(prefix("::/64")))
	checkErr(t, "masks of another family", err, ErrBadFamily)
	_, err = core.NewPool([]Range{{}}, nil)
	checkErr(t, "a range of nothing", err, ErrBadFamily)
	_, err = core.NewPool([]Range{span("fe80::1%eth0", "fe80::2%eth0")}, nil)
	checkErr(t, "zones", err, ErrBadFamily)
	empty := must(core.NewPool(nil, nil))
	check(t, "a pool of nothing", empty.Family(), IPv4)
	pool := newPool(t, core, "10.0.0.0/24")
	_, err = pool.Allocate(9, 0)
	checkErr(t, "no policy", err, ErrBadArgument)
	_, err = pool.Allocate(LeastRecentlyFreed, 0)
	checkErr(t, "a policy without tracking", err, ErrBadArgument)

	check(t, "drop", pool.Drop(), nil)
	checkErr(t, "drop again", pool.Drop(), ErrBadHandle)
	newPool(t, core, "10.0.0.0/24") // in the slot of the other
	_, err = pool.Allocate(Ascending, 0)
	checkErr(t, "allocate from a dropped pool", err, ErrBadHandle)
	_, err = pool.Release(addr("10.0.0.0"))
	checkErr(t, "release to a dropped pool", err, ErrBadHandle)
	_, err = pool.ClaimPacked([]byte{10, 0, 0, 0})
	checkErr(t, "claim many in a dropped pool", err, ErrBadHandle)
	_, err = pool.Used()
	checkErr(t, "used of a dropped pool", err, ErrBadHandle)
}

func TestSnapshots(t *testing.T) {
	core := open(t)
	pool := newPool(t, core, "10.0.0.0/16")
	must(pool.AppendAllocate(nil, 5000, Hashed, 60_000))
	must(pool.Allocate(RoundRobin, 0))
	snapshot := must(pool.Save())

	again := newPool(t, core, "10.0.0.0/16")
	check(t, "load", again.Load(snapshot), nil)
	if !bytes.Equal(must(again.Save()), snapshot) {
		t.Error("a loaded pool saves another snapshot")
	}
	check(t, "round robin goes on", must(again.Allocate(RoundRobin, 0)), must(pool.Allocate(RoundRobin, 0)))

	used := must(again.Counts()).Used
	for what, damage := range map[string]func(b []byte) []byte{
		"a bit":    func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut":      func(b []byte) []byte { return b[:len(b)-1] },
		"nothing":  func([]byte) []byte { return nil },
		"too long": func(b []byte) []byte { return append(b, 0) },
	} {
		checkErr(t, what, again.Load(damage(bytes.Clone(snapshot))), ErrBadSnapshot)
	}
	next := bytes.Clone(snapshot)
	next[4]++
	checkErr(t, "another version", again.Load(withChecksum(next)), ErrOtherVersion)
	checkErr(t, "another pool", again.Load(must(newPool(t, core, "10.1.0.0/16").Save())), ErrOtherPool)
	checkErr(t, "too large", again.Load(make([]byte, MaxExchange+1)), ErrOverCeiling)
	check(t, "used after refusals", must(again.Counts()).Used, used)
}

// withChecksum puts right what a snapshot ends with.
func withChecksum(snapshot []byte) []byte {
	body := snapshot[:len(snapshot)-8]
	hash := fnv.New64a()
	hash.Write(body)
	return binary.LittleEndian.AppendUint64(body, hash.Sum64())
}
