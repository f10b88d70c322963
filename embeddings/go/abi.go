// Code generated from assembly/abi.json. DO NOT EDIT.

package core

// Status is what an export answers below 0. As an error it is what [errors.Is] finds in every refusal of the core.
type Status int32

const (
	// StatusOK: Done; for operations without another result.
	StatusOK Status = 0
	// ErrBadHandle: No live object of the wanted kind has this handle.
	ErrBadHandle Status = -1
	// ErrBadFamily: A family other than 4 and 6, or two objects of different families.
	ErrBadFamily Status = -2
	// ErrBadRange: A range whose first address is above its last.
	ErrBadRange Status = -3
	// ErrBadArgument: A count, length, policy or alignment outside what the operation allows.
	ErrBadArgument Status = -4
	// ErrShortExchange: The exchange buffer is shorter than the input that the arguments promise, or than the
	// output.
	ErrShortExchange Status = -5
	// ErrNoMemory: Linear memory cannot grow any further. Nothing has changed.
	ErrNoMemory Status = -6
	// ErrOverCeiling: A ceiling, below, is reached. Nothing has changed.
	ErrOverCeiling Status = -7
	// ErrOutside: The address or ordinal lies outside the pool's ranges, or window.
	ErrOutside Status = -8
	// ErrNone: Nothing of the kind asked for is there.
	ErrNone Status = -9
	// ErrBadSnapshot: A snapshot that is damaged or cut short.
	ErrBadSnapshot Status = -10
	// ErrOtherVersion: A snapshot of another version of the format.
	ErrOtherVersion Status = -11
	// ErrOtherPool: A sound snapshot of a pool with other ranges.
	ErrOtherPool Status = -12
)

// By the code without its sign.
var statusNames = [...]string{
	0:  "OK",
	1:  "BAD_HANDLE",
	2:  "BAD_FAMILY",
	3:  "BAD_RANGE",
	4:  "BAD_ARGUMENT",
	5:  "SHORT_EXCHANGE",
	6:  "NO_MEMORY",
	7:  "OVER_CEILING",
	8:  "OUTSIDE",
	9:  "NONE",
	10: "BAD_SNAPSHOT",
	11: "OTHER_VERSION",
	12: "OTHER_POOL",
}

var statusTexts = [...]string{
	0:  "done; for operations without another result",
	1:  "no live object of the wanted kind has this handle",
	2:  "a family other than 4 and 6, or two objects of different families",
	3:  "a range whose first address is above its last",
	4:  "a count, length, policy or alignment outside what the operation allows",
	5:  "the exchange buffer is shorter than the input that the arguments promise, or than the output",
	6:  "linear memory cannot grow any further; nothing has changed",
	7:  "a ceiling, below, is reached; nothing has changed",
	8:  "the address or ordinal lies outside the pool's ranges, or window",
	9:  "nothing of the kind asked for is there",
	10: "a snapshot that is damaged or cut short",
	11: "a snapshot of another version of the format",
	12: "a sound snapshot of a pool with other ranges",
}

// The version of the ABI that this package speaks.
const (
	ABIMajor = 1
	ABIMinor = 0
)

// Policy says which free address of the window is next.
type Policy int32

const (
	// Ascending: The lowest free ordinal.
	Ascending Policy = 0
	// RoundRobin: The next free ordinal after the last one that this policy took.
	RoundRobin Policy = 1
	// Hashed: The first free ordinal at or after the argument modulo the window: sticky and spread out when it is a
	// hash.
	Hashed Policy = 2
	// LeastRecentlyFreed: Ordinals never freed since pool_track_freed, ascending; then those freed longest ago.
	LeastRecentlyFreed Policy = 3
)

// Ceilings of one [Core].
const (
	// MaxWindow: Ordinals in the bitmap of one pool; those beyond are claimed one by one into a sparse set.
	MaxWindow = 16777216
	// MaxSparse: Used addresses beyond the window, per pool.
	MaxSparse = 1048576
	// MaxRanges: Ranges in a set; also used runs for pool_used.
	MaxRanges = 1048576
	// MaxObjects: Live sets and pools.
	MaxObjects = 65536
	// MaxExchange: Bytes of the exchange buffer.
	MaxExchange = 268435456
)

// Where [Raw.PoolCounts] writes what.
const (
	// CountsAtSize: 17 bytes, big-endian: addresses in the ranges.
	CountsAtSize = 0
	// CountsAtMasked: 17 bytes, big-endian: of them, masked.
	CountsAtMasked = 17
	// CountsAtWindow: u32: ordinals in the bitmap.
	CountsAtWindow = 36
	// CountsAtUsed: u32: used addresses, masked or not, in the window or beyond.
	CountsAtUsed = 40
	// CountsAtUsedMasked: u32: of them, masked.
	CountsAtUsedMasked = 44
	// CountsAtBeyond: u32: used addresses beyond the window.
	CountsAtBeyond = 48
	// CountsAtFree: u32: ordinals of the window that are neither used nor masked.
	CountsAtFree = 52
	// CountsAtChunks: u32: bitmap chunks present, 1,032 bytes each.
	CountsAtChunks = 56
	// CountsAtRing: u32: entries in the order of release.
	CountsAtRing = 60
	// CountsAtDigest: u64: digest of the ranges, as snapshots bear it.
	CountsAtDigest = 64
)

// The index of each export in exports.
const (
	exportABIVersion = iota
	exportExchange
	exportExchangeSize
	exportDrop
	exportStateBytes
	exportLiveObjects
	exportPrefixFirst
	exportPrefixLast
	exportPrefixMask
	exportPrefixNext
	exportPrefixPart
	exportPrefixCommon
	exportSetCreate
	exportSetCreatePrefixes
	exportSetUnion
	exportSetIntersect
	exportSetSubtract
	exportSetOverlaps
	exportSetIncludes
	exportSetContains
	exportSetContainsMany
	exportSetCount
	exportSetSize
	exportSetRanges
	exportSetPrefixes
	exportPoolCreate
	exportPoolEdit
	exportPoolTrackFreed
	exportPoolCounts
	exportPoolBlocks
	exportPoolRanges
	exportPoolMasks
	exportPoolUsed
	exportPoolSave
	exportPoolLoad
	exportPoolContains
	exportPoolTest
	exportPoolClaim
	exportPoolRelease
	exportPoolContainsMany
	exportPoolTestMany
	exportPoolClaimMany
	exportPoolReleaseMany
	exportPoolTestAt
	exportPoolClaimAt
	exportPoolReleaseAt
	exportPoolTestAtMany
	exportPoolClaimAtMany
	exportPoolReleaseAtMany
	exportPoolClaimRun
	exportPoolReleaseRun
	exportPoolAddress
	exportPoolOrdinal
	exportPoolFind
	exportPoolAllocate
	exportPoolAllocateMany
	exportPoolFindRun
	exportPoolFindWide
)

// The exports' names and their numbers of parameters.
var exports = [...]struct {
	name   string
	params int
}{
	{"abi_version", 0},
	{"exchange", 1},
	{"exchange_size", 0},
	{"drop", 1},
	{"state_bytes", 0},
	{"live_objects", 0},
	{"prefix_first", 2},
	{"prefix_last", 2},
	{"prefix_mask", 2},
	{"prefix_next", 2},
	{"prefix_part", 4},
	{"prefix_common", 1},
	{"set_create", 2},
	{"set_create_prefixes", 2},
	{"set_union", 2},
	{"set_intersect", 2},
	{"set_subtract", 2},
	{"set_overlaps", 2},
	{"set_includes", 2},
	{"set_contains", 1},
	{"set_contains_many", 2},
	{"set_count", 1},
	{"set_size", 1},
	{"set_ranges", 1},
	{"set_prefixes", 1},
	{"pool_create", 2},
	{"pool_edit", 3},
	{"pool_track_freed", 1},
	{"pool_counts", 1},
	{"pool_blocks", 1},
	{"pool_ranges", 1},
	{"pool_masks", 1},
	{"pool_used", 1},
	{"pool_save", 1},
	{"pool_load", 2},
	{"pool_contains", 1},
	{"pool_test", 1},
	{"pool_claim", 1},
	{"pool_release", 1},
	{"pool_contains_many", 2},
	{"pool_test_many", 2},
	{"pool_claim_many", 2},
	{"pool_release_many", 2},
	{"pool_test_at", 2},
	{"pool_claim_at", 2},
	{"pool_release_at", 2},
	{"pool_test_at_many", 2},
	{"pool_claim_at_many", 2},
	{"pool_release_at_many", 2},
	{"pool_claim_run", 3},
	{"pool_release_run", 3},
	{"pool_address", 2},
	{"pool_ordinal", 1},
	{"pool_find", 2},
	{"pool_allocate", 3},
	{"pool_allocate_many", 4},
	{"pool_find_run", 4},
	{"pool_find_wide", 1},
}

// Words that hold the parameters, or the result, of any export.
const stackWords = 4

// ABIVersion calls abi_version. The version of this ABI.
//
//   - result: major << 16 | minor
func (r *Raw) ABIVersion() int32 {
	return r.call(exportABIVersion)
}

// Exchange calls exchange. Makes the exchange buffer at least so long. Its contents survive, it may move.
//
//   - bytes: least length in bytes; 0 only asks where it is
//   - result: address of the buffer; or BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
func (r *Raw) Exchange(bytes int32) int32 {
	r.stack[0] = uint64(uint32(bytes))
	return r.call(exportExchange)
}

// ExchangeSize calls exchange_size. The length of the exchange buffer.
//
//   - result: bytes, a power of two; 0 before the first exchange()
func (r *Raw) ExchangeSize() int32 {
	return r.call(exportExchangeSize)
}

// Drop calls drop. Ends a set or a pool and gives its memory back.
//
//   - handle: set or pool handle
//   - result: 0; or BAD_HANDLE
func (r *Raw) Drop(handle int32) int32 {
	r.stack[0] = uint64(uint32(handle))
	return r.call(exportDrop)
}

// StateBytes calls state_bytes. How much of the memory, from address 0, is in use. A copy of it in a fresh
// instance, grown to the same size, is an equal instance.
//
//   - result: bytes
func (r *Raw) StateBytes() int32 {
	return r.call(exportStateBytes)
}

// LiveObjects calls live_objects. Sets and pools that are not dropped.
//
//   - result: their number
func (r *Raw) LiveObjects() int32 {
	return r.call(exportLiveObjects)
}

// PrefixFirst calls prefix_first. The lowest address of the prefix that holds the address. With a shorter
// length: the supernet.
//
//   - family: 4 or 6
//   - length: prefix length, 0 to 32 or 128
//   - exchange before: 1 address
//   - exchange after: 1 address
//   - result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
func (r *Raw) PrefixFirst(family, length int32) int32 {
	r.stack[0] = uint64(uint32(family))
	r.stack[1] = uint64(uint32(length))
	return r.call(exportPrefixFirst)
}

// PrefixLast calls prefix_last. The highest address of the prefix that holds the address.
//
//   - family: 4 or 6
//   - length: prefix length, 0 to 32 or 128
//   - exchange before: 1 address
//   - exchange after: 1 address
//   - result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
func (r *Raw) PrefixLast(family, length int32) int32 {
	r.stack[0] = uint64(uint32(family))
	r.stack[1] = uint64(uint32(length))
	return r.call(exportPrefixLast)
}

// PrefixMask calls prefix_mask. The network mask of that length.
//
//   - family: 4 or 6
//   - length: prefix length, 0 to 32 or 128
//   - exchange after: 1 address
//   - result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
func (r *Raw) PrefixMask(family, length int32) int32 {
	r.stack[0] = uint64(uint32(family))
	r.stack[1] = uint64(uint32(length))
	return r.call(exportPrefixMask)
}

// PrefixNext calls prefix_next. The first address of the prefix after the one that holds the address.
//
//   - family: 4 or 6
//   - length: prefix length, 0 to 32 or 128
//   - exchange before: 1 address
//   - exchange after: 1 address
//   - result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, NONE
func (r *Raw) PrefixNext(family, length int32) int32 {
	r.stack[0] = uint64(uint32(family))
	r.stack[1] = uint64(uint32(length))
	return r.call(exportPrefixNext)
}

// PrefixPart calls prefix_part. The first address of one part of the prefix, when it is split into prefixes of a
// greater length.
//
//   - family: 4 or 6
//   - length: prefix length, 0 to 32 or 128
//   - partLength: length of the parts, at least `length`
//   - index: u32, which part, from 0
//   - exchange before: 1 address
//   - exchange after: 1 address
//   - result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, OUTSIDE
func (r *Raw) PrefixPart(family, length, partLength int32, index uint32) int32 {
	r.stack[0] = uint64(uint32(family))
	r.stack[1] = uint64(uint32(length))
	r.stack[2] = uint64(uint32(partLength))
	r.stack[3] = uint64(index)
	return r.call(exportPrefixPart)
}

// PrefixCommon calls prefix_common. The longest prefix that holds both addresses.
//
//   - family: 4 or 6
//   - exchange before: 2 addresses
//   - result: its length; or BAD_FAMILY, SHORT_EXCHANGE
func (r *Raw) PrefixCommon(family int32) int32 {
	r.stack[0] = uint64(uint32(family))
	return r.call(exportPrefixCommon)
}

// SetCreate calls set_create. A set of ranges, which may overlap and stand in any order.
//
//   - family: 4 or 6
//   - count: number of items in the exchange buffer
//   - exchange before: count × (first address, last address), inclusive
//   - result: set handle; or BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY, BAD_RANGE
func (r *Raw) SetCreate(family, count int32) int32 {
	r.stack[0] = uint64(uint32(family))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportSetCreate)
}

// SetCreatePrefixes calls set_create_prefixes. A set of prefixes, which may overlap and stand in any order. Host
// bits are ignored.
//
//   - family: 4 or 6
//   - count: number of items in the exchange buffer
//   - exchange before: count × (address, length u8)
//   - result: set handle; or BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY, BAD_ARGUMENT
func (r *Raw) SetCreatePrefixes(family, count int32) int32 {
	r.stack[0] = uint64(uint32(family))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportSetCreatePrefixes)
}

// SetUnion calls set_union. The addresses of either set.
//
//   - a: set handle
//   - b: set handle
//   - result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
func (r *Raw) SetUnion(a, b int32) int32 {
	r.stack[0] = uint64(uint32(a))
	r.stack[1] = uint64(uint32(b))
	return r.call(exportSetUnion)
}

// SetIntersect calls set_intersect. The addresses of both sets.
//
//   - a: set handle
//   - b: set handle
//   - result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
func (r *Raw) SetIntersect(a, b int32) int32 {
	r.stack[0] = uint64(uint32(a))
	r.stack[1] = uint64(uint32(b))
	return r.call(exportSetIntersect)
}

// SetSubtract calls set_subtract. The addresses of `a` that are not in `b`.
//
//   - a: set handle
//   - b: set handle
//   - result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
func (r *Raw) SetSubtract(a, b int32) int32 {
	r.stack[0] = uint64(uint32(a))
	r.stack[1] = uint64(uint32(b))
	return r.call(exportSetSubtract)
}

// SetOverlaps calls set_overlaps. Whether the sets share an address.
//
//   - a: set handle
//   - b: set handle
//   - result: 1 or 0; or BAD_HANDLE, BAD_FAMILY
func (r *Raw) SetOverlaps(a, b int32) int32 {
	r.stack[0] = uint64(uint32(a))
	r.stack[1] = uint64(uint32(b))
	return r.call(exportSetOverlaps)
}

// SetIncludes calls set_includes. Whether every address of `b` is in `a`.
//
//   - a: set handle
//   - b: set handle
//   - result: 1 or 0; or BAD_HANDLE, BAD_FAMILY
func (r *Raw) SetIncludes(a, b int32) int32 {
	r.stack[0] = uint64(uint32(a))
	r.stack[1] = uint64(uint32(b))
	return r.call(exportSetIncludes)
}

// SetContains calls set_contains. Whether the address is in the set.
//
//   - set: set handle
//   - exchange before: 1 address
//   - result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) SetContains(set int32) int32 {
	r.stack[0] = uint64(uint32(set))
	return r.call(exportSetContains)
}

// SetContainsMany calls set_contains_many. Which addresses are in the set.
//
//   - set: set handle
//   - count: number of items in the exchange buffer
//   - exchange before: count addresses
//   - exchange after: count × u8, 1 or 0
//   - result: how many are in the set; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) SetContainsMany(set, count int32) int32 {
	r.stack[0] = uint64(uint32(set))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportSetContainsMany)
}

// SetCount calls set_count. The fewest ranges that make up the set.
//
//   - set: set handle
//   - result: their number; or BAD_HANDLE
func (r *Raw) SetCount(set int32) int32 {
	r.stack[0] = uint64(uint32(set))
	return r.call(exportSetCount)
}

// SetSize calls set_size. The number of addresses.
//
//   - set: set handle
//   - exchange after: 17 bytes, big-endian
//   - result: 17; or BAD_HANDLE, NO_MEMORY
func (r *Raw) SetSize(set int32) int32 {
	r.stack[0] = uint64(uint32(set))
	return r.call(exportSetSize)
}

// SetRanges calls set_ranges. The ranges, ascending; no two overlap or touch.
//
//   - set: set handle
//   - exchange after: result × (first address, last address)
//   - result: number of ranges; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
func (r *Raw) SetRanges(set int32) int32 {
	r.stack[0] = uint64(uint32(set))
	return r.call(exportSetRanges)
}

// SetPrefixes calls set_prefixes. The fewest prefixes that cover exactly the set, ascending.
//
//   - set: set handle
//   - exchange after: result × (address, length u8)
//   - result: number of prefixes; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
func (r *Raw) SetPrefixes(set int32) int32 {
	r.stack[0] = uint64(uint32(set))
	return r.call(exportSetPrefixes)
}

// PoolCreate calls pool_create. A pool over the ranges with nothing used. The sets are copied. Masks outside the
// ranges do not matter.
//
//   - ranges: set handle
//   - masks: set handle, of the same family
//   - result: pool handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolCreate(ranges, masks int32) int32 {
	r.stack[0] = uint64(uint32(ranges))
	r.stack[1] = uint64(uint32(masks))
	return r.call(exportPoolCreate)
}

// PoolEdit calls pool_edit. Gives the pool another shape. What is used stays used wherever its address is in the
// new ranges, else it is forgotten. Order of release and round robin go on. On failure nothing changes.
//
//   - pool: pool handle
//   - ranges: set handle
//   - masks: set handle, of the same family
//   - result: 0; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolEdit(pool, ranges, masks int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(ranges))
	r.stack[2] = uint64(uint32(masks))
	return r.call(exportPoolEdit)
}

// PoolTrackFreed calls pool_track_freed. From now on remembers the order in which addresses of the window become
// free.
//
//   - pool: pool handle
//   - result: 0; or BAD_HANDLE, NO_MEMORY
func (r *Raw) PoolTrackFreed(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolTrackFreed)
}

// PoolCounts calls pool_counts. What the pool holds, in numbers.
//
//   - pool: pool handle
//   - exchange after: 72 bytes, below
//   - result: 72; or BAD_HANDLE, NO_MEMORY
func (r *Raw) PoolCounts(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolCounts)
}

// PoolBlocks calls pool_blocks. Free ordinals of each block of 4,096, the last one perhaps shorter.
//
//   - pool: pool handle
//   - exchange after: result × u16
//   - result: number of blocks; or BAD_HANDLE, NO_MEMORY
func (r *Raw) PoolBlocks(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolBlocks)
}

// PoolRanges calls pool_ranges. A copy of the pool's ranges.
//
//   - pool: pool handle
//   - result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolRanges(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolRanges)
}

// PoolMasks calls pool_masks. A copy of the pool's masks, as far as they lie in the ranges.
//
//   - pool: pool handle
//   - result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolMasks(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolMasks)
}

// PoolUsed calls pool_used. What is used, masked or not.
//
//   - pool: pool handle
//   - result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolUsed(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolUsed)
}

// PoolSave calls pool_save. A snapshot of what is used, and of the place of round robin.
//
//   - pool: pool handle
//   - exchange after: result bytes, format below
//   - result: length in bytes; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolSave(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolSave)
}

// PoolLoad calls pool_load. Replaces what is used by what a snapshot of a pool with the same ranges says. On
// failure nothing changes.
//
//   - pool: pool handle
//   - length: bytes of the snapshot
//   - exchange before: the snapshot
//   - result: 0; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, BAD_SNAPSHOT, OTHER_VERSION, OTHER_POOL
func (r *Raw) PoolLoad(pool, length int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(length))
	return r.call(exportPoolLoad)
}

// PoolContains calls pool_contains. Whether the address is in the ranges and not masked.
//
//   - pool: pool handle
//   - exchange before: 1 address
//   - result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) PoolContains(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolContains)
}

// PoolTest calls pool_test. Whether the address is used.
//
//   - pool: pool handle
//   - exchange before: 1 address
//   - result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
func (r *Raw) PoolTest(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolTest)
}

// PoolClaim calls pool_claim. Marks the address used; a masked one too.
//
//   - pool: pool handle
//   - exchange before: 1 address
//   - result: 1 newly marked, 0 it was used; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolClaim(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolClaim)
}

// PoolRelease calls pool_release. Marks the address not used.
//
//   - pool: pool handle
//   - exchange before: 1 address
//   - result: 1 it was used, 0 it was not; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
func (r *Raw) PoolRelease(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolRelease)
}

// PoolContainsMany calls pool_contains_many. pool_contains for each address. A failure ends the batch; those
// before it are done.
//
//   - pool: pool handle
//   - count: number of items in the exchange buffer
//   - exchange before: count addresses
//   - exchange after: count × i8: the result for each, or its status; from a failure on, that status
//   - result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) PoolContainsMany(pool, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportPoolContainsMany)
}

// PoolTestMany calls pool_test_many. pool_test for each address. A failure ends the batch; those before it are
// done.
//
//   - pool: pool handle
//   - count: number of items in the exchange buffer
//   - exchange before: count addresses
//   - exchange after: count × i8: the result for each, or its status; from a failure on, that status
//   - result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) PoolTestMany(pool, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportPoolTestMany)
}

// PoolClaimMany calls pool_claim_many. pool_claim for each address. A failure ends the batch; those before it
// are done.
//
//   - pool: pool handle
//   - count: number of items in the exchange buffer
//   - exchange before: count addresses
//   - exchange after: count × i8: the result for each, or its status; from a failure on, that status
//   - result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolClaimMany(pool, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportPoolClaimMany)
}

// PoolReleaseMany calls pool_release_many. pool_release for each address. A failure ends the batch; those before
// it are done.
//
//   - pool: pool handle
//   - count: number of items in the exchange buffer
//   - exchange before: count addresses
//   - exchange after: count × i8: the result for each, or its status; from a failure on, that status
//   - result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) PoolReleaseMany(pool, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportPoolReleaseMany)
}

// PoolTestAt calls pool_test_at. pool_test by ordinal, below the window.
//
//   - pool: pool handle
//   - ordinal: u32
//   - result: 1 or 0; or BAD_HANDLE, OUTSIDE
func (r *Raw) PoolTestAt(pool int32, ordinal uint32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(ordinal)
	return r.call(exportPoolTestAt)
}

// PoolClaimAt calls pool_claim_at. pool_claim by ordinal, below the window.
//
//   - pool: pool handle
//   - ordinal: u32
//   - result: 1 newly marked, 0 it was used; or BAD_HANDLE, OUTSIDE, NO_MEMORY
func (r *Raw) PoolClaimAt(pool int32, ordinal uint32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(ordinal)
	return r.call(exportPoolClaimAt)
}

// PoolReleaseAt calls pool_release_at. pool_release by ordinal, below the window.
//
//   - pool: pool handle
//   - ordinal: u32
//   - result: 1 it was used, 0 it was not; or BAD_HANDLE, OUTSIDE
func (r *Raw) PoolReleaseAt(pool int32, ordinal uint32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(ordinal)
	return r.call(exportPoolReleaseAt)
}

// PoolTestAtMany calls pool_test_at_many. pool_test_at for each ordinal. A failure ends the batch; those before
// it are done.
//
//   - pool: pool handle
//   - count: number of items in the exchange buffer
//   - exchange before: count × u32
//   - exchange after: count × i8: the result for each, or its status; from a failure on, that status
//   - result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) PoolTestAtMany(pool, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportPoolTestAtMany)
}

// PoolClaimAtMany calls pool_claim_at_many. pool_claim_at for each ordinal. A failure ends the batch; those
// before it are done.
//
//   - pool: pool handle
//   - count: number of items in the exchange buffer
//   - exchange before: count × u32
//   - exchange after: count × i8: the result for each, or its status; from a failure on, that status
//   - result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY
func (r *Raw) PoolClaimAtMany(pool, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportPoolClaimAtMany)
}

// PoolReleaseAtMany calls pool_release_at_many. pool_release_at for each ordinal. A failure ends the batch;
// those before it are done.
//
//   - pool: pool handle
//   - count: number of items in the exchange buffer
//   - exchange before: count × u32
//   - exchange after: count × i8: the result for each, or its status; from a failure on, that status
//   - result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
func (r *Raw) PoolReleaseAtMany(pool, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(count))
	return r.call(exportPoolReleaseAtMany)
}

// PoolClaimRun calls pool_claim_run. Marks consecutive ordinals used, all or none.
//
//   - pool: pool handle
//   - first: u32 ordinal
//   - count: 1 or more
//   - result: 1 done, 0 one of them is not free; or BAD_HANDLE, BAD_ARGUMENT, OUTSIDE, NO_MEMORY
func (r *Raw) PoolClaimRun(pool int32, first uint32, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(first)
	r.stack[2] = uint64(uint32(count))
	return r.call(exportPoolClaimRun)
}

// PoolReleaseRun calls pool_release_run. Marks consecutive ordinals not used.
//
//   - pool: pool handle
//   - first: u32 ordinal
//   - count: 1 or more
//   - result: how many were used; or BAD_HANDLE, BAD_ARGUMENT, OUTSIDE
func (r *Raw) PoolReleaseRun(pool int32, first uint32, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(first)
	r.stack[2] = uint64(uint32(count))
	return r.call(exportPoolReleaseRun)
}

// PoolAddress calls pool_address. The address of an ordinal below the window.
//
//   - pool: pool handle
//   - ordinal: u32
//   - exchange after: 1 address
//   - result: 0; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
func (r *Raw) PoolAddress(pool int32, ordinal uint32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(ordinal)
	return r.call(exportPoolAddress)
}

// PoolOrdinal calls pool_ordinal. The ordinal of the address; OUTSIDE for one beyond the window, too.
//
//   - pool: pool handle
//   - exchange before: 1 address
//   - result: ordinal; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
func (r *Raw) PoolOrdinal(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolOrdinal)
}

// PoolFind calls pool_find. The first free ordinal at or after `start` modulo the window, wrapping once. Marks
// nothing.
//
//   - pool: pool handle
//   - start: u32
//   - result: ordinal; or BAD_HANDLE, NONE
func (r *Raw) PoolFind(pool int32, start uint32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(start)
	return r.call(exportPoolFind)
}

// PoolAllocate calls pool_allocate. Finds a free ordinal by a policy and marks it used.
//
//   - pool: pool handle
//   - policy: a policy, below
//   - argument: u32; HASHED: the seed; else unused
//   - result: ordinal; or BAD_HANDLE, BAD_ARGUMENT, NONE, NO_MEMORY
func (r *Raw) PoolAllocate(pool, policy int32, argument uint32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(policy))
	r.stack[2] = uint64(argument)
	return r.call(exportPoolAllocate)
}

// PoolAllocateMany calls pool_allocate_many. pool_allocate so many times; HASHED goes on after the one before.
// Fewer when no more are free, or memory is out.
//
//   - pool: pool handle
//   - policy: a policy, below
//   - argument: u32; HASHED: the seed; else unused
//   - count: how many, 0 or more
//   - exchange after: result addresses
//   - result: how many are allocated; or BAD_HANDLE, BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
func (r *Raw) PoolAllocateMany(pool, policy int32, argument uint32, count int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(uint32(policy))
	r.stack[2] = uint64(argument)
	r.stack[3] = uint64(uint32(count))
	return r.call(exportPoolAllocateMany)
}

// PoolFindRun calls pool_find_run. The first of `count` free ordinals whose addresses follow one another, the
// first a multiple of 2^align_bits; from `start` modulo the window on, wrapping once. Marks nothing.
//
//   - pool: pool handle
//   - start: u32
//   - count: 1 or more
//   - alignBits: 0 to 24
//   - result: ordinal; or BAD_HANDLE, BAD_ARGUMENT, NONE
func (r *Raw) PoolFindRun(pool int32, start uint32, count, alignBits int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	r.stack[1] = uint64(start)
	r.stack[2] = uint64(uint32(count))
	r.stack[3] = uint64(uint32(alignBits))
	return r.call(exportPoolFindRun)
}

// PoolFindWide calls pool_find_wide. The first free address in hashed order over all ordinals, those beyond the
// window too. Starts at the seed's low bits, as many as the largest ordinal has, less the size when that is too
// large; wraps once. Marks nothing.
//
//   - pool: pool handle
//   - exchange before: 16 bytes, big-endian: the seed
//   - exchange after: 1 address
//   - result: 0; or BAD_HANDLE, SHORT_EXCHANGE, NONE
func (r *Raw) PoolFindWide(pool int32) int32 {
	r.stack[0] = uint64(uint32(pool))
	return r.call(exportPoolFindWide)
}
