// Podman 5, the runtime of hosts whose network backend executes drivers in place of CNI plugins, for the long tests. It
// is built in a copy of its module, as CRI-O.
module berth.local/reference/podman

go 1.25.0

tool github.com/containers/podman/v5/cmd/podman

require github.com/containers/podman/v5 v5.6.2
