// Whereabouts' allocation, pkg/allocate: a list of all reservations, made into a map for every
// address, and the range walked from its first address on.
//
// Timed: AssignIP and DeallocateIP on the list in memory. Reading and writing the IPPool object,
// where the list is kept, and the lease are not counted; its log is off.
package main

import (
	"fmt"

	"berth.local/allocators/contest"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/allocate"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/logging"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/types"
)

const interfaceName = "net1"

func main() {
	logging.SetLogStderr(false)
	logging.SetLogLevel("panic")
	contest.Main(contest.Peer{
		Name:   "whereabouts",
		Module: "github.com/k8snetworkplumbingwg/whereabouts",
		Open:   open,
	})
}

func open(pool contest.Pool) (contest.Pair, error) {
	configuration := types.RangeConfiguration{Range: pool.Prefix.String()}
	reservations := make([]types.IPReservation, len(pool.Used))
	for i, addr := range pool.Used {
		reservations[i] = types.IPReservation{
			IP:          addr.AsSlice(),
			ContainerID: fmt.Sprintf("container-%d", i),
			PodRef:      fmt.Sprintf("default/pod-%d", i),
			IfName:      interfaceName,
		}
	}
	return func() error {
		const container, pod = "container", "default/pod"
		_, updated, err := allocate.AssignIP(configuration, reservations, container, pod, interfaceName)
		if err != nil {
			return err
		}
		rest, ip := allocate.DeallocateIP(updated, container, interfaceName)
		if ip == nil {
			return fmt.Errorf("%s has no address", pod)
		}
		reservations = rest
		return nil
	}, nil
}
