// CRI-O: the other runtime of real nodes, which calls STATUS and GC of CNI 1.1; copyimg puts images into its store. For
// the long tests. It is built in a copy of its module, whose go.mod and go.sum name what it needs.
module berth.local/reference/crio

go 1.25.0

tool (
	github.com/cri-o/cri-o/cmd/crio
	github.com/cri-o/cri-o/test/copyimg
)

require github.com/cri-o/cri-o v1.34.0
