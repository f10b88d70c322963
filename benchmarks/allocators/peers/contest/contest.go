// Package contest measures an allocator of addresses on every pool of a folder that
// benchmarks/allocators/shapes.ts wrote, and prints a JSON line for each figure.
package contest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
)

// Pool is what an allocator begins with.
type Pool struct {
	Name string `json:"name"`
	// Ranges has the first and the last address of the only range, which is a prefix.
	Ranges [][2]netip.Addr `json:"ranges"`
	// UsedFile is packed: the used addresses in ascending order, 4 or 16 big-endian bytes each.
	UsedFile string `json:"used"`

	Prefix netip.Prefix `json:"-"`
	// Used has the used addresses in ascending order, without those that allocators keep to
	// themselves: the first, and of IPv4 the last.
	Used []netip.Addr `json:"-"`
}

// First is the first address that can be allocated.
func (p Pool) First() netip.Addr { return p.Ranges[0][0].Next() }

// Last is the last address that can be allocated.
func (p Pool) Last() netip.Addr {
	last := p.Ranges[0][1]
	if last.Is4() {
		return last.Prev()
	}
	return last
}

// Pair takes the next free address and gives it back.
type Pair func() error

// Peer is an allocator that takes part.
type Peer struct {
	Name string
	// Module is the path of its Go module, whose version is printed.
	Module string
	// Open makes an allocator of the pool in which the used addresses are used. What it returns
	// is all that is timed; an error is the peer's refusal.
	Open func(pool Pool) (Pair, error)
	// Remark says what a reader must know of this peer on this pool; it may be nil.
	Remark func(pool Pool) string
}

type line struct {
	Runtime string  `json:"runtime"`
	Shape   string  `json:"shape"`
	Form    string  `json:"form"`
	Ns      float64 `json:"ns,omitempty"`
	Samples int     `json:"samples,omitempty"`
	Text    string  `json:"text,omitempty"`
}

// Main plays every pool of the folder that the command line names.
func Main(peer Peer) {
	if err := play(peer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(peer Peer) error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s FOLDER", filepath.Base(os.Args[0]))
	}
	pools, err := readPools(os.Args[1])
	if err != nil {
		return err
	}
	output := json.NewEncoder(os.Stdout)
	say := func(l line) error {
		l.Runtime = peer.Name
		return output.Encode(l)
	}
	version := fmt.Sprintf("%s, %s", versionOf(peer.Module), runtime.Version())
	if err := say(line{Form: "version", Text: version}); err != nil {
		return err
	}
	for _, pool := range pools {
		l := line{Shape: pool.Name, Form: "one"}
		if l.Ns, l.Samples, err = measurePool(peer, pool); err != nil {
			l = line{Shape: pool.Name, Form: "refusal", Text: err.Error()}
		}
		if err := say(l); err != nil {
			return err
		}
		if peer.Remark == nil {
			continue
		}
		if text := peer.Remark(pool); text != "" {
			if err := say(line{Shape: pool.Name, Form: "remark", Text: text}); err != nil {
				return err
			}
		}
	}
	return nil
}

func measurePool(peer Peer, pool Pool) (ns float64, samples int, err error) {
	pair, err := peer.Open(pool)
	if err != nil {
		return 0, 0, err
	}
	return measure(pair)
}

func versionOf(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return dependency.Version
			}
		}
	}
	return "unknown"
}

func readPools(folder string) ([]Pool, error) {
	text, err := os.ReadFile(filepath.Join(folder, "shapes.json"))
	if err != nil {
		return nil, err
	}
	var pools []Pool
	if err := json.Unmarshal(text, &pools); err != nil {
		return nil, err
	}
	for i := range pools {
		if err := pools[i].read(folder); err != nil {
			return nil, err
		}
	}
	return pools, nil
}

func (p *Pool) read(folder string) error {
	if len(p.Ranges) != 1 {
		return fmt.Errorf("pool %q has %d ranges, wanted 1", p.Name, len(p.Ranges))
	}
	first, last := p.Ranges[0][0], p.Ranges[0][1]
	p.Prefix = netip.PrefixFrom(first, first.BitLen())
	for !p.Prefix.Contains(last) {
		p.Prefix = netip.PrefixFrom(first, p.Prefix.Bits()-1)
	}
	packed, err := os.ReadFile(filepath.Join(folder, p.UsedFile))
	if err != nil {
		return err
	}
	width := first.BitLen() / 8
	for at := 0; at+width <= len(packed); at += width {
		addr, _ := netip.AddrFromSlice(packed[at : at+width])
		if addr.Compare(p.First()) >= 0 && addr.Compare(p.Last()) <= 0 {
			p.Used = append(p.Used, addr)
		}
	}
	return nil
}
