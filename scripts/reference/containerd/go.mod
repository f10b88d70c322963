// containerd 2: the runtime that calls STATUS and GC of CNI 1.1, beside Debian's 1.6 on real nodes, for the long tests.
// It is built in a copy of its module, as CRI-O.
module berth.local/reference/containerd

go 1.26.6

tool (
	github.com/containerd/containerd/v2/cmd/containerd
	github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
	github.com/containerd/containerd/v2/cmd/ctr
)

require github.com/containerd/containerd/v2 v2.4.2
