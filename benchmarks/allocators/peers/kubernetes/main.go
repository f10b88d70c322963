// Kubernetes' bitmap allocator of service addresses, pkg/registry/core/service/ipallocator:
// a math/big.Int, searched bit by bit from a random one on.
//
// Timed: AllocateNext and Release, with its metrics off, as they are by default.
package main

import (
	"fmt"
	"net"

	"berth.local/allocators/contest"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
)

func main() {
	contest.Main(contest.Peer{Name: "kubernetes", Module: "k8s.io/kubernetes", Open: open, Remark: remark})
}

func newAllocator(pool contest.Pool) (*ipallocator.Range, error) {
	_, cidr, err := net.ParseCIDR(pool.Prefix.String())
	if err != nil {
		return nil, err
	}
	return ipallocator.NewInMemory(cidr)
}

func open(pool contest.Pool) (contest.Pair, error) {
	allocator, err := newAllocator(pool)
	if err != nil {
		return nil, err
	}
	for _, addr := range pool.Used {
		if err := allocator.Allocate(addr.AsSlice()); err != nil {
			return nil, fmt.Errorf("%s: %w", addr, err)
		}
	}
	return func() error {
		ip, err := allocator.AllocateNext()
		if err != nil {
			return err
		}
		return allocator.Release(ip)
	}, nil
}

func remark(pool contest.Pool) string {
	if allocator, err := newAllocator(pool); err == nil && pool.First().Is6() {
		return fmt.Sprintf("keeps the first %d addresses of the prefix only", allocator.Free())
	}
	return ""
}
