// The allocator of github.com/k8snetworkplumbingwg/whereabouts, and a program that times it. Built by scripts/setup/allocators.mjs.
module berth.local/allocators/whereabouts

go 1.26.4

require (
	berth.local/allocators/contest v0.0.0
	github.com/k8snetworkplumbingwg/whereabouts v0.9.4
)

require (
	github.com/containernetworking/cni v1.3.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	k8s.io/utils v0.0.0-20250604170112-4c0f3b243397 // indirect
)

replace berth.local/allocators/contest => ../contest
