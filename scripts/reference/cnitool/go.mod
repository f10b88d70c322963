// cnitool, the reference library's command line, at the version that the tests and the demo call.
// Built by scripts/setup/reference.mjs into the user's cache; nothing of it enters the product.
module berth.local/reference/cnitool

go 1.24.0

require github.com/containernetworking/cni v1.3.0 // indirect

tool github.com/containernetworking/cni/cnitool
