//! Every call, status and constant of the core. Written from assembly/abi.json, never by hand.

use super::macros::{exports, policies, statuses};
use crate::Error;
use wasmtime::{Instance, Memory, Module, Store, TypedFunc};

/// Major and minor version of the ABI that this file describes.
pub const ABI_VERSION: (u16, u16) = (1, 0);

/// Ordinals in the bitmap of one pool; those beyond are claimed one by one into a sparse set.
pub const MAX_WINDOW: u32 = 16_777_216;

/// Used addresses beyond the window, per pool.
pub const MAX_SPARSE: u32 = 1_048_576;

/// Ranges in a set; also used runs for pool_used.
pub const MAX_RANGES: u32 = 1_048_576;

/// Live sets and pools.
pub const MAX_OBJECTS: u32 = 65_536;

/// Bytes of the exchange buffer.
pub const MAX_EXCHANGE: u32 = 268_435_456;

/// Where each number stands in what `pool_counts` writes: bytes from the start of the exchange buffer.
pub mod counts {
    /// Addresses in the ranges: 17 bytes, big-endian.
    pub const SIZE: usize = 0;

    /// Of them, masked: 17 bytes, big-endian.
    pub const MASKED: usize = 17;

    /// Ordinals in the bitmap: u32.
    pub const WINDOW: usize = 36;

    /// Used addresses, masked or not, in the window or beyond: u32.
    pub const USED: usize = 40;

    /// Of them, masked: u32.
    pub const USED_MASKED: usize = 44;

    /// Used addresses beyond the window: u32.
    pub const BEYOND: usize = 48;

    /// Ordinals of the window that are neither used nor masked: u32.
    pub const FREE: usize = 52;

    /// Bitmap chunks present, 1,032 bytes each: u32.
    pub const CHUNKS: usize = 56;

    /// Entries in the order of release: u32.
    pub const RING: usize = 60;

    /// Digest of the ranges, as snapshots bear it: u64.
    pub const DIGEST: usize = 64;
}

statuses! {
    Ok = 0, "OK", "Done; for operations without another result.";
    BadHandle = -1, "BAD_HANDLE", "No live object of the wanted kind has this handle.";
    BadFamily = -2, "BAD_FAMILY", "A family other than 4 and 6, or two objects of different families.";
    BadRange = -3, "BAD_RANGE", "A range whose first address is above its last.";
    BadArgument = -4, "BAD_ARGUMENT", "A count, length, policy or alignment outside what the operation allows.";
    ShortExchange = -5, "SHORT_EXCHANGE", "The exchange buffer is shorter than the input that the arguments promise, or than the output.";
    NoMemory = -6, "NO_MEMORY", "Linear memory cannot grow any further. Nothing has changed.";
    OverCeiling = -7, "OVER_CEILING", "A ceiling, below, is reached. Nothing has changed.";
    Outside = -8, "OUTSIDE", "The address or ordinal lies outside the pool's ranges, or window.";
    None = -9, "NONE", "Nothing of the kind asked for is there.";
    BadSnapshot = -10, "BAD_SNAPSHOT", "A snapshot that is damaged or cut short.";
    OtherVersion = -11, "OTHER_VERSION", "A snapshot of another version of the format.";
    OtherPool = -12, "OTHER_POOL", "A sound snapshot of a pool with other ranges.";
}

policies! {
    Ascending = 0, "The lowest free ordinal.";
    RoundRobin = 1, "The next free ordinal after the last one that this policy took.";
    Hashed = 2, "The first free ordinal at or after the argument modulo the window: sticky and spread out when it is a hash.";
    LeastRecentlyFreed = 3, "Ordinals never freed since pool_track_freed, ascending; then those freed longest ago.";
}

exports! {
    /// The version of this ABI.
    ///
    /// * result: major << 16 | minor
    fn abi_version();

    /// Makes the exchange buffer at least so long. Its contents survive, it may move.
    ///
    /// * `bytes`: least length in bytes; 0 only asks where it is
    /// * result: address of the buffer
    /// * errors: BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
    fn exchange(bytes: i32);

    /// The length of the exchange buffer.
    ///
    /// * result: bytes, a power of two; 0 before the first exchange()
    fn exchange_size();

    /// Ends a set or a pool and gives its memory back.
    ///
    /// * `handle`: set or pool handle
    /// * result: 0
    /// * errors: BAD_HANDLE
    fn drop(handle: i32);

    /// How much of the memory, from address 0, is in use. A copy of it in a fresh instance, grown
    /// to the same size, is an equal instance.
    ///
    /// * result: bytes
    fn state_bytes();

    /// Sets and pools that are not dropped.
    ///
    /// * result: their number
    fn live_objects();

    /// The lowest address of the prefix that holds the address. With a shorter length: the
    /// supernet.
    ///
    /// * `family`: 4 or 6
    /// * `length`: prefix length, 0 to 32 or 128
    /// * exchange before: 1 address
    /// * exchange after: 1 address
    /// * result: 0
    /// * errors: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
    fn prefix_first(family: i32, length: i32);

    /// The highest address of the prefix that holds the address.
    ///
    /// * `family`: 4 or 6
    /// * `length`: prefix length, 0 to 32 or 128
    /// * exchange before: 1 address
    /// * exchange after: 1 address
    /// * result: 0
    /// * errors: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
    fn prefix_last(family: i32, length: i32);

    /// The network mask of that length.
    ///
    /// * `family`: 4 or 6
    /// * `length`: prefix length, 0 to 32 or 128
    /// * exchange after: 1 address
    /// * result: 0
    /// * errors: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
    fn prefix_mask(family: i32, length: i32);

    /// The first address of the prefix after the one that holds the address.
    ///
    /// * `family`: 4 or 6
    /// * `length`: prefix length, 0 to 32 or 128
    /// * exchange before: 1 address
    /// * exchange after: 1 address
    /// * result: 0
    /// * errors: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, NONE
    fn prefix_next(family: i32, length: i32);

    /// The first address of one part of the prefix, when it is split into prefixes of a greater
    /// length.
    ///
    /// * `family`: 4 or 6
    /// * `length`: prefix length, 0 to 32 or 128
    /// * `part_length`: length of the parts, at least `length`
    /// * `index`: u32, which part, from 0
    /// * exchange before: 1 address
    /// * exchange after: 1 address
    /// * result: 0
    /// * errors: BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, OUTSIDE
    fn prefix_part(family: i32, length: i32, part_length: i32, index: u32);

    /// The longest prefix that holds both addresses.
    ///
    /// * `family`: 4 or 6
    /// * exchange before: 2 addresses
    /// * result: its length
    /// * errors: BAD_FAMILY, SHORT_EXCHANGE
    fn prefix_common(family: i32);

    /// A set of ranges, which may overlap and stand in any order.
    ///
    /// * `family`: 4 or 6
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count × (first address, last address), inclusive
    /// * result: set handle
    /// * errors: BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY, BAD_RANGE
    fn set_create(family: i32, count: i32);

    /// A set of prefixes, which may overlap and stand in any order. Host bits are ignored.
    ///
    /// * `family`: 4 or 6
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count × (address, length u8)
    /// * result: set handle
    /// * errors: BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY, BAD_ARGUMENT
    fn set_create_prefixes(family: i32, count: i32);

    /// The addresses of either set.
    ///
    /// * `a`: set handle
    /// * `b`: set handle
    /// * result: set handle
    /// * errors: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
    fn set_union(a: i32, b: i32);

    /// The addresses of both sets.
    ///
    /// * `a`: set handle
    /// * `b`: set handle
    /// * result: set handle
    /// * errors: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
    fn set_intersect(a: i32, b: i32);

    /// The addresses of `a` that are not in `b`.
    ///
    /// * `a`: set handle
    /// * `b`: set handle
    /// * result: set handle
    /// * errors: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
    fn set_subtract(a: i32, b: i32);

    /// Whether the sets share an address.
    ///
    /// * `a`: set handle
    /// * `b`: set handle
    /// * result: 1 or 0
    /// * errors: BAD_HANDLE, BAD_FAMILY
    fn set_overlaps(a: i32, b: i32);

    /// Whether every address of `b` is in `a`.
    ///
    /// * `a`: set handle
    /// * `b`: set handle
    /// * result: 1 or 0
    /// * errors: BAD_HANDLE, BAD_FAMILY
    fn set_includes(a: i32, b: i32);

    /// Whether the address is in the set.
    ///
    /// * `set`: set handle
    /// * exchange before: 1 address
    /// * result: 1 or 0
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn set_contains(set: i32);

    /// Which addresses are in the set.
    ///
    /// * `set`: set handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count addresses
    /// * exchange after: count × u8, 1 or 0
    /// * result: how many are in the set
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn set_contains_many(set: i32, count: i32);

    /// The fewest ranges that make up the set.
    ///
    /// * `set`: set handle
    /// * result: their number
    /// * errors: BAD_HANDLE
    fn set_count(set: i32);

    /// The number of addresses.
    ///
    /// * `set`: set handle
    /// * exchange after: 17 bytes, big-endian
    /// * result: 17
    /// * errors: BAD_HANDLE, NO_MEMORY
    fn set_size(set: i32);

    /// The ranges, ascending; no two overlap or touch.
    ///
    /// * `set`: set handle
    /// * exchange after: result × (first address, last address)
    /// * result: number of ranges
    /// * errors: BAD_HANDLE, NO_MEMORY, OVER_CEILING
    fn set_ranges(set: i32);

    /// The fewest prefixes that cover exactly the set, ascending.
    ///
    /// * `set`: set handle
    /// * exchange after: result × (address, length u8)
    /// * result: number of prefixes
    /// * errors: BAD_HANDLE, NO_MEMORY, OVER_CEILING
    fn set_prefixes(set: i32);

    /// A pool over the ranges with nothing used. The sets are copied. Masks outside the ranges do
    /// not matter.
    ///
    /// * `ranges`: set handle
    /// * `masks`: set handle, of the same family
    /// * result: pool handle
    /// * errors: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
    fn pool_create(ranges: i32, masks: i32);

    /// Gives the pool another shape. What is used stays used wherever its address is in the new
    /// ranges, else it is forgotten. Order of release and round robin go on. On failure nothing
    /// changes.
    ///
    /// * `pool`: pool handle
    /// * `ranges`: set handle
    /// * `masks`: set handle, of the same family
    /// * result: 0
    /// * errors: BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
    fn pool_edit(pool: i32, ranges: i32, masks: i32);

    /// From now on remembers the order in which addresses of the window become free.
    ///
    /// * `pool`: pool handle
    /// * result: 0
    /// * errors: BAD_HANDLE, NO_MEMORY
    fn pool_track_freed(pool: i32);

    /// What the pool holds, in numbers.
    ///
    /// * `pool`: pool handle
    /// * exchange after: 72 bytes, below
    /// * result: 72
    /// * errors: BAD_HANDLE, NO_MEMORY
    fn pool_counts(pool: i32);

    /// Free ordinals of each block of 4,096, the last one perhaps shorter.
    ///
    /// * `pool`: pool handle
    /// * exchange after: result × u16
    /// * result: number of blocks
    /// * errors: BAD_HANDLE, NO_MEMORY
    fn pool_blocks(pool: i32);

    /// A copy of the pool's ranges.
    ///
    /// * `pool`: pool handle
    /// * result: set handle
    /// * errors: BAD_HANDLE, NO_MEMORY, OVER_CEILING
    fn pool_ranges(pool: i32);

    /// A copy of the pool's masks, as far as they lie in the ranges.
    ///
    /// * `pool`: pool handle
    /// * result: set handle
    /// * errors: BAD_HANDLE, NO_MEMORY, OVER_CEILING
    fn pool_masks(pool: i32);

    /// What is used, masked or not.
    ///
    /// * `pool`: pool handle
    /// * result: set handle
    /// * errors: BAD_HANDLE, NO_MEMORY, OVER_CEILING
    fn pool_used(pool: i32);

    /// A snapshot of what is used, and of the place of round robin.
    ///
    /// * `pool`: pool handle
    /// * exchange after: result bytes, format below
    /// * result: length in bytes
    /// * errors: BAD_HANDLE, NO_MEMORY, OVER_CEILING
    fn pool_save(pool: i32);

    /// Replaces what is used by what a snapshot of a pool with the same ranges says. On failure
    /// nothing changes.
    ///
    /// * `pool`: pool handle
    /// * `length`: bytes of the snapshot
    /// * exchange before: the snapshot
    /// * result: 0
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, BAD_SNAPSHOT, OTHER_VERSION, OTHER_POOL
    fn pool_load(pool: i32, length: i32);

    /// Whether the address is in the ranges and not masked.
    ///
    /// * `pool`: pool handle
    /// * exchange before: 1 address
    /// * result: 1 or 0
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn pool_contains(pool: i32);

    /// Whether the address is used.
    ///
    /// * `pool`: pool handle
    /// * exchange before: 1 address
    /// * result: 1 or 0
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
    fn pool_test(pool: i32);

    /// Marks the address used; a masked one too.
    ///
    /// * `pool`: pool handle
    /// * exchange before: 1 address
    /// * result: 1 newly marked, 0 it was used
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE, NO_MEMORY, OVER_CEILING
    fn pool_claim(pool: i32);

    /// Marks the address not used.
    ///
    /// * `pool`: pool handle
    /// * exchange before: 1 address
    /// * result: 1 it was used, 0 it was not
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
    fn pool_release(pool: i32);

    /// pool_contains for each address. A failure ends the batch; those before it are done.
    ///
    /// * `pool`: pool handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count addresses
    /// * exchange after: count × i8: the result for each, or its status; from a failure on, that
    ///   status
    /// * result: how many gave 1
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn pool_contains_many(pool: i32, count: i32);

    /// pool_test for each address. A failure ends the batch; those before it are done.
    ///
    /// * `pool`: pool handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count addresses
    /// * exchange after: count × i8: the result for each, or its status; from a failure on, that
    ///   status
    /// * result: how many gave 1
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn pool_test_many(pool: i32, count: i32);

    /// pool_claim for each address. A failure ends the batch; those before it are done.
    ///
    /// * `pool`: pool handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count addresses
    /// * exchange after: count × i8: the result for each, or its status; from a failure on, that
    ///   status
    /// * result: how many gave 1
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, OVER_CEILING
    fn pool_claim_many(pool: i32, count: i32);

    /// pool_release for each address. A failure ends the batch; those before it are done.
    ///
    /// * `pool`: pool handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count addresses
    /// * exchange after: count × i8: the result for each, or its status; from a failure on, that
    ///   status
    /// * result: how many gave 1
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn pool_release_many(pool: i32, count: i32);

    /// pool_test by ordinal, below the window.
    ///
    /// * `pool`: pool handle
    /// * `ordinal`: u32
    /// * result: 1 or 0
    /// * errors: BAD_HANDLE, OUTSIDE
    fn pool_test_at(pool: i32, ordinal: u32);

    /// pool_claim by ordinal, below the window.
    ///
    /// * `pool`: pool handle
    /// * `ordinal`: u32
    /// * result: 1 newly marked, 0 it was used
    /// * errors: BAD_HANDLE, OUTSIDE, NO_MEMORY
    fn pool_claim_at(pool: i32, ordinal: u32);

    /// pool_release by ordinal, below the window.
    ///
    /// * `pool`: pool handle
    /// * `ordinal`: u32
    /// * result: 1 it was used, 0 it was not
    /// * errors: BAD_HANDLE, OUTSIDE
    fn pool_release_at(pool: i32, ordinal: u32);

    /// pool_test_at for each ordinal. A failure ends the batch; those before it are done.
    ///
    /// * `pool`: pool handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count × u32
    /// * exchange after: count × i8: the result for each, or its status; from a failure on, that
    ///   status
    /// * result: how many gave 1
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn pool_test_at_many(pool: i32, count: i32);

    /// pool_claim_at for each ordinal. A failure ends the batch; those before it are done.
    ///
    /// * `pool`: pool handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count × u32
    /// * exchange after: count × i8: the result for each, or its status; from a failure on, that
    ///   status
    /// * result: how many gave 1
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY
    fn pool_claim_at_many(pool: i32, count: i32);

    /// pool_release_at for each ordinal. A failure ends the batch; those before it are done.
    ///
    /// * `pool`: pool handle
    /// * `count`: number of items in the exchange buffer
    /// * exchange before: count × u32
    /// * exchange after: count × i8: the result for each, or its status; from a failure on, that
    ///   status
    /// * result: how many gave 1
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE
    fn pool_release_at_many(pool: i32, count: i32);

    /// Marks consecutive ordinals used, all or none.
    ///
    /// * `pool`: pool handle
    /// * `first`: u32 ordinal
    /// * `count`: 1 or more
    /// * result: 1 done, 0 one of them is not free
    /// * errors: BAD_HANDLE, BAD_ARGUMENT, OUTSIDE, NO_MEMORY
    fn pool_claim_run(pool: i32, first: u32, count: i32);

    /// Marks consecutive ordinals not used.
    ///
    /// * `pool`: pool handle
    /// * `first`: u32 ordinal
    /// * `count`: 1 or more
    /// * result: how many were used
    /// * errors: BAD_HANDLE, BAD_ARGUMENT, OUTSIDE
    fn pool_release_run(pool: i32, first: u32, count: i32);

    /// The address of an ordinal below the window.
    ///
    /// * `pool`: pool handle
    /// * `ordinal`: u32
    /// * exchange after: 1 address
    /// * result: 0
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
    fn pool_address(pool: i32, ordinal: u32);

    /// The ordinal of the address; OUTSIDE for one beyond the window, too.
    ///
    /// * `pool`: pool handle
    /// * exchange before: 1 address
    /// * result: ordinal
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
    fn pool_ordinal(pool: i32);

    /// The first free ordinal at or after `start` modulo the window, wrapping once. Marks nothing.
    ///
    /// * `pool`: pool handle
    /// * `start`: u32
    /// * result: ordinal
    /// * errors: BAD_HANDLE, NONE
    fn pool_find(pool: i32, start: u32);

    /// Finds a free ordinal by a policy and marks it used.
    ///
    /// * `pool`: pool handle
    /// * `policy`: a policy, below
    /// * `argument`: u32; HASHED: the seed; else unused
    /// * result: ordinal
    /// * errors: BAD_HANDLE, BAD_ARGUMENT, NONE, NO_MEMORY
    fn pool_allocate(pool: i32, policy: i32, argument: u32);

    /// pool_allocate so many times; HASHED goes on after the one before. Fewer when no more are
    /// free, or memory is out.
    ///
    /// * `pool`: pool handle
    /// * `policy`: a policy, below
    /// * `argument`: u32; HASHED: the seed; else unused
    /// * `count`: how many, 0 or more
    /// * exchange after: result addresses
    /// * result: how many are allocated
    /// * errors: BAD_HANDLE, BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
    fn pool_allocate_many(pool: i32, policy: i32, argument: u32, count: i32);

    /// The first of `count` free ordinals whose addresses follow one another, the first a multiple
    /// of 2^align_bits; from `start` modulo the window on, wrapping once. Marks nothing.
    ///
    /// * `pool`: pool handle
    /// * `start`: u32
    /// * `count`: 1 or more
    /// * `align_bits`: 0 to 24
    /// * result: ordinal
    /// * errors: BAD_HANDLE, BAD_ARGUMENT, NONE
    fn pool_find_run(pool: i32, start: u32, count: i32, align_bits: i32);

    /// The first free address in hashed order over all ordinals, those beyond the window too.
    /// Starts at the seed's low bits, as many as the largest ordinal has, less the size when that
    /// is too large; wraps once. Marks nothing.
    ///
    /// * `pool`: pool handle
    /// * exchange before: 16 bytes, big-endian: the seed
    /// * exchange after: 1 address
    /// * result: 0
    /// * errors: BAD_HANDLE, SHORT_EXCHANGE, NONE
    fn pool_find_wide(pool: i32);
}
