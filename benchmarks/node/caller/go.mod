// The caller of the benchmark `node`: libcni as a container runtime has it, at the version of scripts/reference.
// Built by scripts/setup.mjs into dist/bench; nothing of it enters the product.
module berth.local/benchmarks/node/caller

go 1.24.0

require github.com/containernetworking/cni v1.3.0
