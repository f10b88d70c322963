// Spiderpool's allocation, pkg/ippoolmanager with pkg/ip: all records of the pool decoded from
// JSON, made into addresses and a map, the ranges walked from the first address on, and all
// records encoded again.
//
// Timed: AllocateIP and ReleaseIP of its pool manager over the API of api.go, which only hands
// one object out and in. What the API server and the agent do is not counted.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"berth.local/allocators/contest"
	"github.com/spidernet-io/spiderpool/pkg/ippoolmanager"
	spiderpool "github.com/spidernet-io/spiderpool/pkg/k8s/apis/spiderpool.spidernet.io/v2beta1"
	"github.com/spidernet-io/spiderpool/pkg/logutils"
	"github.com/spidernet-io/spiderpool/pkg/types"
	"go.uber.org/zap"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	contest.Main(contest.Peer{
		Name:   "spiderpool",
		Module: "github.com/spidernet-io/spiderpool",
		Open:   open,
		Remark: remark,
	})
}

// open lifts the ceiling of 5,000 records per pool, which is a setting.
func open(pool contest.Pool) (contest.Pair, error) {
	most := math.MaxInt
	return openWith(pool, ippoolmanager.IPPoolManagerConfig{MaxAllocatedIPs: &most})
}

// remark tells what the allocation says with the ceiling as it is by default, up to the number,
// in whose place Spiderpool prints the address of a pointer.
func remark(pool contest.Pool) string {
	pair, err := openWith(pool, ippoolmanager.IPPoolManagerConfig{})
	if err == nil {
		err = pair()
	}
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "(<=")
	return fmt.Sprintf("the ceiling on records is lifted here; as it is by default: %q", text)
}

func openWith(pool contest.Pool, configuration ippoolmanager.IPPoolManagerConfig) (contest.Pair, error) {
	object, err := newObject(pool)
	if err != nil {
		return nil, err
	}
	api := &api{pool: object}
	manager, err := ippoolmanager.NewIPPoolManager(configuration, api, api, noReservedIPs{})
	if err != nil {
		return nil, err
	}
	ctx := logutils.IntoContext(context.Background(), zap.NewNop())
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: "pod", UID: "uid"}}
	return func() error {
		answer, err := manager.AllocateIP(ctx, object.Name, "eth0", pod, types.PodTopController{})
		if err != nil {
			return err
		}
		ip, _, _ := strings.Cut(*answer.Address, "/")
		return manager.ReleaseIP(ctx, object.Name, []types.IPAndUID{{IP: ip, UID: string(pod.UID)}})
	}, nil
}

func newObject(pool contest.Pool) (*spiderpool.SpiderIPPool, error) {
	version := int64(4)
	if pool.First().Is6() {
		version = 6
	}
	records := make(spiderpool.PoolIPAllocations, len(pool.Used))
	for i, addr := range pool.Used {
		records[addr.String()] = spiderpool.PoolIPAllocation{
			NamespacedName: fmt.Sprintf("default/pod-%d", i),
			PodUID:         fmt.Sprintf("uid-%d", i),
		}
	}
	object := &spiderpool.SpiderIPPool{
		ObjectMeta: meta.ObjectMeta{Name: "pool"},
		Spec: spiderpool.IPPoolSpec{
			IPVersion: &version,
			Subnet:    pool.Prefix.String(),
			IPs:       []string{fmt.Sprintf("%s-%s", pool.First(), pool.Last())},
		},
	}
	if len(records) == 0 {
		return object, nil
	}
	encoded, err := json.Marshal(records)
	if err != nil {
		return nil, err
	}
	text, count := string(encoded), int64(len(records))
	object.Status = spiderpool.IPPoolStatus{AllocatedIPs: &text, AllocatedIPCount: &count}
	return object, nil
}
