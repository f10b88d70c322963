package main

import (
	"net"

	"github.com/cilium/cilium/pkg/ipam/service/ipallocator"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/plugins/plugins/ipam/host-local/backend/allocator"
)

// openCilium is the allocator of service addresses: a bitmap in a math/big.Int.
func openCilium(pool pool) (func() error, error) {
	addresses := ipallocator.NewCIDRRange(pool.Prefix)
	for _, addr := range pool.Used {
		if err := addresses.Allocate(addr); err != nil {
			return nil, err
		}
	}
	return func() error {
		addr, err := addresses.AllocateNext()
		if err != nil {
			return err
		}
		addresses.Release(addr)
		return nil
	}, nil
}

// openHostLocal is the plugin's iterator: from the address last reserved on, each is offered to the store until it
// takes one. The plugin's own store is a folder with a file for each address; the one in store.go is in memory.
func openHostLocal(pool pool) (func() error, error) {
	_, subnet, err := net.ParseCIDR(pool.Prefix.String())
	if err != nil {
		return nil, err
	}
	ranges := allocator.RangeSet{{Subnet: types.IPNet(*subnet)}}
	if err := ranges.Canonicalize(); err != nil {
		return nil, err
	}
	store := newStore()
	for _, addr := range pool.Used {
		store.owners[addr] = "another"
	}
	addresses := allocator.NewIPAllocator(&ranges, store, 0)
	return func() error {
		const container, interfaceName = "container", "eth0"
		if _, err := addresses.Get(container, interfaceName, nil); err != nil {
			return err
		}
		return addresses.Release(container, interfaceName)
	}, nil
}
