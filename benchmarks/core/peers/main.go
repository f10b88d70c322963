// The peers of the benchmark "core": the allocators of Cilium and host-local without what is around them. It reads
// pools from its standard input, and prints for each what it costs to take an address and give it back.
//
// 	allocators cilium|host-local
package main

import (
	"encoding/json"
	"log"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

const (
	warmUpTime = 200 * time.Millisecond
	sampleTime = 30 * time.Millisecond
	samples    = 9
)

// pool is an IPv4 prefix whose network and broadcast address are not among the used ones: allocators keep them.
type pool struct {
	Name   string       `json:"name"`
	Prefix netip.Prefix `json:"prefix"`
	Used   []netip.Addr `json:"used"`
}

// peer is an allocator; open fills one, and returns what is timed.
type peer struct {
	module string
	open   func(pool) (pair func() error, err error)
}

var peers = map[string]peer{
	"cilium":     {"github.com/cilium/cilium", openCilium},
	"host-local": {"github.com/containernetworking/plugins", openHostLocal},
}

type figure struct {
	Name string  `json:"name"`
	Ns   float64 `json:"ns"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 || peers[os.Args[1]].open == nil {
		log.Fatal("Usage: allocators cilium|host-local")
	}
	peer := peers[os.Args[1]]
	var pools []pool
	require(json.NewDecoder(os.Stdin).Decode(&pools))
	var figures []figure
	for _, pool := range pools {
		pair, err := peer.open(pool)
		require(err)
		figures = append(figures, figure{pool.Name, measure(pair)})
	}
	require(json.NewEncoder(os.Stdout).Encode(map[string]any{"version": versionOf(peer.module), "pools": figures}))
}

// measure gives the median of the samples: nanoseconds per pair.
func measure(pair func() error) float64 {
	runtime.GC()
	sample(pair, warmUpTime)
	all := make([]float64, samples)
	for i := range all {
		all[i] = sample(pair, sampleTime)
	}
	slices.Sort(all)
	return all[samples/2]
}

// sample reads the clock after 1, 2, 4, 8 ... further pairs.
func sample(pair func() error, least time.Duration) float64 {
	start := time.Now()
	for more, total := 1, 0; ; more *= 2 {
		for range more {
			require(pair())
		}
		total += more
		if elapsed := time.Since(start); elapsed >= least {
			return float64(elapsed.Nanoseconds()) / float64(total)
		}
	}
}

func versionOf(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return dependency.Version[1:]
			}
		}
	}
	return "unknown"
}

func require(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
