// Bench measures the ways to take an address and give it back, in each shape of a folder.
//
//	bench FOLDER
//
// FOLDER/shapes.json lists the shapes: ranges, and the snapshot of what is used. One JSON line per figure:
// nanoseconds for a call that does nothing, for a pair of taking and giving back, or for an address's share of one.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"vendor.io/berth/core"
)

const (
	warmUp  = 200 * time.Millisecond
	sample  = 30 * time.Millisecond
	samples = 9
)

type shape struct {
	Name     string
	Ranges   [][2]netip.Addr
	Snapshot string
	Batch    int
}

// figure is a line of the output.
type figure struct {
	Runtime string  `json:"runtime"`
	Shape   string  `json:"shape"`
	Form    string  `json:"form"`
	Ns      float64 `json:"ns,omitempty"`
	Text    string  `json:"text,omitempty"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("Usage: bench FOLDER")
	}
	folder := os.Args[1]
	text, err := os.ReadFile(filepath.Join(folder, "shapes.json"))
	require(err)
	var shapes []shape
	require(json.Unmarshal(text, &shapes))

	instance, err := core.Open()
	require(err)
	defer instance.Close()
	print(figure{Form: "version", Text: runtime.Version()})
	raw := instance.Raw()
	print(figure{Form: "call", Ns: measure(func(n int) (sum uint64) {
		for range n {
			sum += uint64(raw.LiveObjects())
		}
		return sum
	})})
	for _, s := range shapes {
		measureShape(instance, folder, s)
	}
}

func measureShape(instance *core.Core, folder string, s shape) {
	ranges := make([]core.Range, len(s.Ranges))
	for i, ends := range s.Ranges {
		ranges[i] = core.Range{First: ends[0], Last: ends[1]}
	}
	pool, err := instance.NewPool(ranges, nil)
	require(err)
	defer pool.Drop()
	snapshot, err := os.ReadFile(filepath.Join(folder, s.Snapshot))
	require(err)
	require(pool.Load(snapshot))
	before, err := pool.Save()
	require(err)

	raw, handle := instance.Raw(), pool.Handle()
	forms := []struct {
		name string
		run  func(n int) uint64
	}{
		{"one", func(n int) uint64 { return takeOne(pool, n) }},
		{"raw", func(n int) uint64 { return takeRaw(raw, handle, n) }},
		{"ordinal", func(n int) uint64 { return takeOrdinal(raw, handle, n) }},
		{"batch", func(n int) uint64 { return takeBatch(pool, n, s.Batch) }},
	}
	for _, form := range forms {
		print(figure{Shape: s.Name, Form: form.name, Ns: measure(form.run)})
	}
	requireUsedAsBefore(pool, before)
}

// takeOne runs n pairs of taking an address and giving it back, by the idiomatic API.
func takeOne(pool *core.Pool, n int) (sum uint64) {
	for range n {
		addr, err := pool.Allocate(core.RoundRobin, 0)
		require(err)
		outcome, err := pool.Release(addr)
		require(err)
		sum += uint64(outcome)
	}
	return sum
}

// takeRaw does the same in two calls: the address stays in the exchange buffer.
func takeRaw(raw *core.Raw, pool int32, n int) (sum uint64) {
	for range n {
		sum += uint64(raw.PoolAllocateMany(pool, int32(core.RoundRobin), 0, 1))
		sum += uint64(raw.PoolRelease(pool))
	}
	return sum
}

// takeOrdinal does the same without addresses.
func takeOrdinal(raw *core.Raw, pool int32, n int) (sum uint64) {
	for range n {
		ordinal := raw.PoolAllocate(pool, int32(core.RoundRobin), 0)
		sum += uint64(raw.PoolReleaseAt(pool, uint32(ordinal)))
	}
	return sum
}

var packed []byte

// takeBatch does the same for n addresses at least, so many at a time.
func takeBatch(pool *core.Pool, n, batch int) (sum uint64) {
	for done := 0; done < n; done += batch {
		var err error
		packed, err = pool.AppendAllocatePacked(packed[:0], batch, core.RoundRobin, 0)
		require(err)
		released, err := pool.ReleasePacked(packed)
		require(err)
		if released != batch {
			log.Fatalf("released %d of %d", released, batch)
		}
		sum += uint64(released)
	}
	return sum
}

// measure is the median of several samples, each of many runs: nanoseconds of one.
func measure(run func(n int) uint64) float64 {
	const atOnce = 1 << 10
	n, start := 0, time.Now()
	for time.Since(start) < warmUp {
		n += atOnce
		sink += run(atOnce)
	}
	n = int(int64(n)*int64(sample)/int64(time.Since(start))) + atOnce
	figures := make([]float64, samples)
	for i := range figures {
		figures[i] = float64(timed(run, n).Nanoseconds()) / float64(n)
	}
	slices.Sort(figures)
	return figures[samples/2]
}

// sink keeps what is measured from being optimised away.
var sink uint64

func timed(run func(n int) uint64, n int) time.Duration {
	start := time.Now()
	sink += run(n)
	return time.Since(start)
}

func requireUsedAsBefore(pool *core.Pool, before []byte) {
	used, err := pool.Used()
	require(err)
	defer used.Drop()
	ranges, err := used.Ranges()
	require(err)
	require(pool.Load(before))
	again, err := pool.Used()
	require(err)
	defer again.Drop()
	wanted, err := again.Ranges()
	require(err)
	if !slices.Equal(ranges, wanted) {
		log.Fatal("The pool is not as it was")
	}
}

func print(f figure) {
	f.Runtime = "go"
	line, err := json.Marshal(f)
	require(err)
	fmt.Println(string(line))
}

func require(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
