// The allocators of Cilium and host-local, and a program that times them. Built by scripts/setup.mjs.
module berth.local/allocators

go 1.26.4

require (
	github.com/cilium/cilium v1.20.2
	github.com/containernetworking/cni v1.3.0
	github.com/containernetworking/plugins v1.9.1
)

require (
	github.com/coreos/go-iptables v0.8.0 // indirect
	github.com/petermattis/goid v0.0.0-20250813065127-a731cc31b4fe // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/safchain/ethtool v0.6.2 // indirect
	github.com/sasha-s/go-deadlock v0.3.9 // indirect
	github.com/vishvananda/netlink v1.3.2-0.20260624190457-bab08b3566fc // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
	golang.org/x/sync v0.21.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
	sigs.k8s.io/knftables v0.0.18 // indirect
)
