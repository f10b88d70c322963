package core_test

import (
	"fmt"
	"log"
	"net/netip"

	"vendor.io/berth/core"
)

func Example() {
	instance, err := core.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer instance.Close()

	subnet := netip.MustParsePrefix("10.1.0.0/24")
	gateway := netip.MustParsePrefix("10.1.0.0/31")
	pool, err := instance.NewPool(core.RangesOf(subnet), core.RangesOf(gateway))
	if err != nil {
		log.Fatal(err)
	}
	first, _ := pool.Allocate(core.Ascending, 0)
	outcome, _ := pool.Claim(netip.MustParseAddr("10.1.0.2"))
	more, _ := pool.AppendAllocate(nil, 2, core.RoundRobin, 0)
	counts, _ := pool.Counts()
	fmt.Println(first, outcome, more, counts.Free, "free")
	// Output: 10.1.0.2 taken [10.1.0.3 10.1.0.4] 251 free
}
