// Package core allocates IP addresses: pools of them, and the algebra of address ranges.
//
// It is the Go face of berth-core.wasm, the allocator that Berth ships as one artefact for every language. The module
// is in the package and runs in wazero, a runtime in Go: there is no cgo and nothing to install. The same calls give
// the same results, and the same memory byte for byte, in every language.
//
// A [Core] is one instance of the module. [Pool] and [RangeSet] live in its memory until they are dropped or the Core
// is closed; they are no garbage of Go's. A Core with all that lives in it belongs to one goroutine at a time: callers
// lock it, or give each goroutine its own, of which [Core.Copy] makes an equal one.
//
// "None free", "taken" and "outside" are results. Misuse and ceilings are errors of type [*Error], in which [errors.Is]
// finds a [Status] such as [ErrBadHandle].
//
// An IPv4-mapped IPv6 address (::ffff:10.0.0.1) is an IPv6 address: Unmap it where IPv4 is meant. An address with a
// zone (fe80::1%eth0) is of neither family: nothing contains it, and no range may have it.
//
// Methods whose names begin with Append write to the caller's slice, and those that end in Packed take or give 4 or
// 16 bytes per address, big-endian, one after another: they are the fast ones.
package core
