// host-local's iterator, plugins/ipam/host-local/backend/allocator: from the address last
// reserved on, each is offered to the store until the store takes one.
//
// Timed: Get and Release of the allocator over the store in store.go, which is in memory. The
// plugin's own store is a folder with a file for each address, which Release reads through.
package main

import (
	"fmt"
	"net"

	"berth.local/allocators/contest"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"
)

const interfaceName = "eth0"

func main() {
	contest.Main(contest.Peer{Name: "host-local", Module: "github.com/containernetworking/plugins", Open: open})
}

func open(pool contest.Pool) (contest.Pair, error) {
	_, subnet, err := net.ParseCIDR(pool.Prefix.String())
	if err != nil {
		return nil, err
	}
	ranges := allocator.RangeSet{{Subnet: types.IPNet(*subnet), RangeEnd: pool.Last().AsSlice()}}
	if err := ranges.Canonicalize(); err != nil {
		return nil, err
	}
	store := newStore()
	for i, addr := range pool.Used {
		store.owners[addr] = fmt.Sprintf("container-%d", i)
	}
	addresses := allocator.NewIPAllocator(&ranges, store, 0)
	return func() error {
		const container = "container"
		if _, err := addresses.Get(container, interfaceName, nil); err != nil {
			return err
		}
		return addresses.Release(container, interfaceName)
	}, nil
}
