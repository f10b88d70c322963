package main

import (
	"context"
	"net"

	spiderpool "github.com/spidernet-io/spiderpool/pkg/k8s/apis/spiderpool.spidernet.io/v2beta1"
	"github.com/spidernet-io/spiderpool/pkg/reservedipmanager"
	"github.com/spidernet-io/spiderpool/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// api answers as the Kubernetes API would that had one pool, without encoding it. Whatever the
// allocation does not call is missing.
type api struct {
	client.Client
	pool *spiderpool.SpiderIPPool
}

func (a *api) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	*object.(*spiderpool.SpiderIPPool) = *a.pool
	return nil
}

func (a *api) Status() client.SubResourceWriter { return status{api: a} }

type status struct {
	client.SubResourceWriter
	api *api
}

func (s status) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	updated := *object.(*spiderpool.SpiderIPPool)
	s.api.pool = &updated
	return nil
}

// noReservedIPs is a cluster in which no address is reserved.
type noReservedIPs struct {
	reservedipmanager.ReservedIPManager
}

func (noReservedIPs) AssembleReservedIPs(context.Context, types.IPVersion) ([]net.IP, error) {
	return nil, nil
}
