// The allocator of github.com/cilium/cilium, and a program that times it. Built by scripts/setup/allocators.mjs.
module berth.local/allocators/cilium

go 1.26.4

require (
	berth.local/allocators/contest v0.0.0
	github.com/cilium/cilium v1.20.2
)

require (
	github.com/petermattis/goid v0.0.0-20250813065127-a731cc31b4fe // indirect
	github.com/sasha-s/go-deadlock v0.3.9 // indirect
	golang.org/x/sync v0.21.0 // indirect
)

replace berth.local/allocators/contest => ../contest
