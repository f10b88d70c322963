// Kube-OVN's list of ranges, pkg/ipam: the free addresses as sorted ranges, the lowest first.
//
// Timed: Allocate from one list, and Add of the same address to it. A subnet of Kube-OVN keeps
// six such lists, several maps and a log beside; none of that is counted here.
package main

import (
	"fmt"

	"berth.local/allocators/contest"
	"github.com/kubeovn/kube-ovn/pkg/ipam"
)

func main() {
	contest.Main(contest.Peer{Name: "kube-ovn", Module: "github.com/kubeovn/kube-ovn", Open: open})
}

func open(pool contest.Pool) (contest.Pair, error) {
	free, err := ipam.NewIPRangeListFrom(fmt.Sprintf("%s..%s", pool.First(), pool.Last()))
	if err != nil {
		return nil, err
	}
	for _, addr := range pool.Used {
		if !free.Remove(ipam.IP(addr.AsSlice())) {
			return nil, fmt.Errorf("%s is not free", addr)
		}
	}
	return func() error {
		ip := free.Allocate(nil)
		if ip == nil {
			return ipam.ErrNoAvailable
		}
		if !free.Add(ip) {
			return fmt.Errorf("%s was free already", ip)
		}
		return nil
	}, nil
}
