// Spiderpool: an IPAM that the tests of migration and the benchmark of peers run beside Berth. It is built in a copy of
// its module, as CRI-O.
module berth.local/reference/spiderpool

go 1.25.0

tool (
	github.com/spidernet-io/spiderpool/cmd/coordinator
	github.com/spidernet-io/spiderpool/cmd/spiderpool
	github.com/spidernet-io/spiderpool/cmd/spiderpool-agent
	github.com/spidernet-io/spiderpool/cmd/spiderpool-controller
)

require github.com/spidernet-io/spiderpool v1.2.2
