// Cilium's allocator of service addresses, pkg/ipam/service/ipallocator: a bitmap in a
// math/big.Int, searched bit by bit from a random one on.
//
// Timed: AllocateNext and Release.
package main

import (
	"fmt"

	"berth.local/allocators/contest"
	"github.com/cilium/cilium/pkg/ipam/service/ipallocator"
)

func main() {
	contest.Main(contest.Peer{Name: "cilium", Module: "github.com/cilium/cilium", Open: open, Remark: remark})
}

func open(pool contest.Pool) (contest.Pair, error) {
	allocator := ipallocator.NewCIDRRange(pool.Prefix)
	for _, addr := range pool.Used {
		if err := allocator.Allocate(addr); err != nil {
			return nil, fmt.Errorf("%s: %w", addr, err)
		}
	}
	return func() error {
		addr, err := allocator.AllocateNext()
		if err != nil {
			return err
		}
		allocator.Release(addr)
		return nil
	}, nil
}

func remark(pool contest.Pool) string {
	allocator := ipallocator.NewCIDRRange(pool.Prefix)
	if pool.First().Is6() {
		return fmt.Sprintf("keeps the first %d addresses of the prefix only", allocator.Free())
	}
	return ""
}
