// CoreDNS, for the long tests. It is built in a copy of its module, as CRI-O, with coredns.go in place of its own: that
// has only the plugins that the tests need.
module berth.local/reference/coredns

go 1.25.0

tool github.com/coredns/coredns

require github.com/coredns/coredns v1.13.2
