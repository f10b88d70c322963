"""The ABI of the core. Written from assembly/abi.json; do not edit.

values: All parameters and results are i32; u32 means that all 32 bits count. A result
    below 0 is a status.
exchange: Input is read from the start of the exchange buffer and output is written
    there, so output replaces input. Any call may move the buffer, one that fails too:
    ask exchange(0) again before reading or writing, and derive views of the memory
    again.
addresses: 4 or 16 bytes by the family of the object, big-endian. All other numbers in
    the buffer are little-endian unless stated.
handles: Opaque and above 0. A handle is refused once its object is dropped, until its
    slot has been reused 32,767 times.
memory: One exported memory of 1 to 32,768 pages, no imports, no start function, no
    table, no mutable globals. Same calls, same memory, byte for byte.
"""

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import Final

# Major and minor version of the ABI that this module describes.
ABI_VERSION: Final = (1, 0)

# Ordinals in the bitmap of one pool; those beyond are claimed one by one into a sparse
# set.
MAX_WINDOW: Final = 16_777_216

# Used addresses beyond the window, per pool.
MAX_SPARSE: Final = 1_048_576

# Ranges in a set; also used runs for pool_used.
MAX_RANGES: Final = 1_048_576

# Live sets and pools.
MAX_OBJECTS: Final = 65_536

# Bytes of the exchange buffer.
MAX_EXCHANGE: Final = 268_435_456


class Status(IntEnum):
    """What the core answers when it is not a result."""

    # Done; for operations without another result.
    OK = 0

    # No live object of the wanted kind has this handle.
    BAD_HANDLE = -1

    # A family other than 4 and 6, or two objects of different families.
    BAD_FAMILY = -2

    # A range whose first address is above its last.
    BAD_RANGE = -3

    # A count, length, policy or alignment outside what the operation allows.
    BAD_ARGUMENT = -4

    # The exchange buffer is shorter than the input that the arguments promise, or than
    # the output.
    SHORT_EXCHANGE = -5

    # Linear memory cannot grow any further. Nothing has changed.
    NO_MEMORY = -6

    # A ceiling, below, is reached. Nothing has changed.
    OVER_CEILING = -7

    # The address or ordinal lies outside the pool's ranges, or window.
    OUTSIDE = -8

    # Nothing of the kind asked for is there.
    NONE = -9

    # A snapshot that is damaged or cut short.
    BAD_SNAPSHOT = -10

    # A snapshot of another version of the format.
    OTHER_VERSION = -11

    # A sound snapshot of a pool with other ranges.
    OTHER_POOL = -12


class Policy(IntEnum):
    """In which order free addresses of the window are taken."""

    # The lowest free ordinal.
    ASCENDING = 0

    # The next free ordinal after the last one that this policy took.
    ROUND_ROBIN = 1

    # The first free ordinal at or after the argument modulo the window: sticky and
    # spread out when it is a hash.
    HASHED = 2

    # Ordinals never freed since pool_track_freed, ascending; then those freed longest
    # ago.
    LEAST_RECENTLY_FREED = 3


# What each status means.
STATUS_TEXTS: Final[dict[Status, str]] = {
    Status.OK: "Done; for operations without another result.",
    Status.BAD_HANDLE: "No live object of the wanted kind has this handle.",
    Status.BAD_FAMILY: (
        "A family other than 4 and 6, or two objects of different families."
    ),
    Status.BAD_RANGE: "A range whose first address is above its last.",
    Status.BAD_ARGUMENT: (
        "A count, length, policy or alignment outside what the operation allows."
    ),
    Status.SHORT_EXCHANGE: (
        "The exchange buffer is shorter than the input that the arguments promise, or than the output."
    ),
    Status.NO_MEMORY: "Linear memory cannot grow any further. Nothing has changed.",
    Status.OVER_CEILING: "A ceiling, below, is reached. Nothing has changed.",
    Status.OUTSIDE: "The address or ordinal lies outside the pool's ranges, or window.",
    Status.NONE: "Nothing of the kind asked for is there.",
    Status.BAD_SNAPSHOT: "A snapshot that is damaged or cut short.",
    Status.OTHER_VERSION: "A snapshot of another version of the format.",
    Status.OTHER_POOL: "A sound snapshot of a pool with other ranges.",
}


class CountsOffset(IntEnum):
    """Where each number stands in what pool_counts writes."""

    # 17 bytes, big-endian: addresses in the ranges
    SIZE = 0
    # 17 bytes, big-endian: of them, masked
    MASKED = 17
    # u32: ordinals in the bitmap
    WINDOW = 36
    # u32: used addresses, masked or not, in the window or beyond
    USED = 40
    # u32: of them, masked
    USED_MASKED = 44
    # u32: used addresses beyond the window
    BEYOND = 48
    # u32: ordinals of the window that are neither used nor masked
    FREE = 52
    # u32: bitmap chunks present, 1,032 bytes each
    CHUNKS = 56
    # u32: entries in the order of release
    RING = 60
    # u64: digest of the ranges, as snapshots bear it
    DIGEST = 64


# The parameters of each export: "i" is an i32, "I" a u32.
SIGNATURES: Final[dict[str, str]] = {
    "abi_version": "",
    "exchange": "i",
    "exchange_size": "",
    "drop": "i",
    "state_bytes": "",
    "live_objects": "",
    "prefix_first": "ii",
    "prefix_last": "ii",
    "prefix_mask": "ii",
    "prefix_next": "ii",
    "prefix_part": "iiiI",
    "prefix_common": "i",
    "set_create": "ii",
    "set_create_prefixes": "ii",
    "set_union": "ii",
    "set_intersect": "ii",
    "set_subtract": "ii",
    "set_overlaps": "ii",
    "set_includes": "ii",
    "set_contains": "i",
    "set_contains_many": "ii",
    "set_count": "i",
    "set_size": "i",
    "set_ranges": "i",
    "set_prefixes": "i",
    "pool_create": "ii",
    "pool_edit": "iii",
    "pool_track_freed": "i",
    "pool_counts": "i",
    "pool_blocks": "i",
    "pool_ranges": "i",
    "pool_masks": "i",
    "pool_used": "i",
    "pool_save": "i",
    "pool_load": "ii",
    "pool_contains": "i",
    "pool_test": "i",
    "pool_claim": "i",
    "pool_release": "i",
    "pool_contains_many": "ii",
    "pool_test_many": "ii",
    "pool_claim_many": "ii",
    "pool_release_many": "ii",
    "pool_test_at": "iI",
    "pool_claim_at": "iI",
    "pool_release_at": "iI",
    "pool_test_at_many": "ii",
    "pool_claim_at_many": "ii",
    "pool_release_at_many": "ii",
    "pool_claim_run": "iIi",
    "pool_release_run": "iIi",
    "pool_address": "iI",
    "pool_ordinal": "i",
    "pool_find": "iI",
    "pool_allocate": "iiI",
    "pool_allocate_many": "iiIi",
    "pool_find_run": "iIii",
    "pool_find_wide": "i",
}


class Exports(ABC):
    """The exports of the core, one method each; a result below 0 is a Status."""

    @abstractmethod
    def call(self, name: str, *args: int) -> int:
        """Calls an export by its name."""

    def abi_version(self) -> int:
        """The version of this ABI.

        Result: major << 16 | minor
        """
        return self.call("abi_version")

    def exchange(self, bytes: int) -> int:
        """Makes the exchange buffer at least so long. Its contents survive, it may
        move.

        bytes: least length in bytes; 0 only asks where it is
        Result: address of the buffer; or BAD_ARGUMENT, NO_MEMORY, OVER_CEILING
        """
        return self.call("exchange", bytes)

    def exchange_size(self) -> int:
        """The length of the exchange buffer.

        Result: bytes, a power of two; 0 before the first exchange()
        """
        return self.call("exchange_size")

    def drop(self, handle: int) -> int:
        """Ends a set or a pool and gives its memory back.

        handle: set or pool handle
        Result: 0; or BAD_HANDLE
        """
        return self.call("drop", handle)

    def state_bytes(self) -> int:
        """How much of the memory, from address 0, is in use. A copy of it in a fresh
        instance, grown to the same size, is an equal instance.

        Result: bytes
        """
        return self.call("state_bytes")

    def live_objects(self) -> int:
        """Sets and pools that are not dropped.

        Result: their number
        """
        return self.call("live_objects")

    def prefix_first(self, family: int, length: int) -> int:
        """The lowest address of the prefix that holds the address. With a shorter
        length: the supernet.

        family: 4 or 6
        length: prefix length, 0 to 32 or 128
        Exchange before: 1 address
        Exchange after: 1 address
        Result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
        """
        return self.call("prefix_first", family, length)

    def prefix_last(self, family: int, length: int) -> int:
        """The highest address of the prefix that holds the address.

        family: 4 or 6
        length: prefix length, 0 to 32 or 128
        Exchange before: 1 address
        Exchange after: 1 address
        Result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
        """
        return self.call("prefix_last", family, length)

    def prefix_mask(self, family: int, length: int) -> int:
        """The network mask of that length.

        family: 4 or 6
        length: prefix length, 0 to 32 or 128
        Exchange after: 1 address
        Result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE
        """
        return self.call("prefix_mask", family, length)

    def prefix_next(self, family: int, length: int) -> int:
        """The first address of the prefix after the one that holds the address.

        family: 4 or 6
        length: prefix length, 0 to 32 or 128
        Exchange before: 1 address
        Exchange after: 1 address
        Result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, NONE
        """
        return self.call("prefix_next", family, length)

    def prefix_part(
        self, family: int, length: int, part_length: int, index: int
    ) -> int:
        """The first address of one part of the prefix, when it is split into prefixes
        of a greater length.

        family: 4 or 6
        length: prefix length, 0 to 32 or 128
        part_length: length of the parts, at least `length`
        index: u32, which part, from 0
        Exchange before: 1 address
        Exchange after: 1 address
        Result: 0; or BAD_FAMILY, BAD_ARGUMENT, SHORT_EXCHANGE, OUTSIDE
        """
        return self.call("prefix_part", family, length, part_length, index)

    def prefix_common(self, family: int) -> int:
        """The longest prefix that holds both addresses.

        family: 4 or 6
        Exchange before: 2 addresses
        Result: its length; or BAD_FAMILY, SHORT_EXCHANGE
        """
        return self.call("prefix_common", family)

    def set_create(self, family: int, count: int) -> int:
        """A set of ranges, which may overlap and stand in any order.

        family: 4 or 6
        count: number of items in the exchange buffer
        Exchange before: count × (first address, last address), inclusive
        Result: set handle; or BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY,
            BAD_RANGE
        """
        return self.call("set_create", family, count)

    def set_create_prefixes(self, family: int, count: int) -> int:
        """A set of prefixes, which may overlap and stand in any order. Host bits are
        ignored.

        family: 4 or 6
        count: number of items in the exchange buffer
        Exchange before: count × (address, length u8)
        Result: set handle; or BAD_FAMILY, SHORT_EXCHANGE, OVER_CEILING, NO_MEMORY,
            BAD_ARGUMENT
        """
        return self.call("set_create_prefixes", family, count)

    def set_union(self, a: int, b: int) -> int:
        """The addresses of either set.

        a: set handle
        b: set handle
        Result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
        """
        return self.call("set_union", a, b)

    def set_intersect(self, a: int, b: int) -> int:
        """The addresses of both sets.

        a: set handle
        b: set handle
        Result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
        """
        return self.call("set_intersect", a, b)

    def set_subtract(self, a: int, b: int) -> int:
        """The addresses of `a` that are not in `b`.

        a: set handle
        b: set handle
        Result: set handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
        """
        return self.call("set_subtract", a, b)

    def set_overlaps(self, a: int, b: int) -> int:
        """Whether the sets share an address.

        a: set handle
        b: set handle
        Result: 1 or 0; or BAD_HANDLE, BAD_FAMILY
        """
        return self.call("set_overlaps", a, b)

    def set_includes(self, a: int, b: int) -> int:
        """Whether every address of `b` is in `a`.

        a: set handle
        b: set handle
        Result: 1 or 0; or BAD_HANDLE, BAD_FAMILY
        """
        return self.call("set_includes", a, b)

    def set_contains(self, set: int) -> int:
        """Whether the address is in the set.

        set: set handle
        Exchange before: 1 address
        Result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("set_contains", set)

    def set_contains_many(self, set: int, count: int) -> int:
        """Which addresses are in the set.

        set: set handle
        count: number of items in the exchange buffer
        Exchange before: count addresses
        Exchange after: count × u8, 1 or 0
        Result: how many are in the set; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("set_contains_many", set, count)

    def set_count(self, set: int) -> int:
        """The fewest ranges that make up the set.

        set: set handle
        Result: their number; or BAD_HANDLE
        """
        return self.call("set_count", set)

    def set_size(self, set: int) -> int:
        """The number of addresses.

        set: set handle
        Exchange after: 17 bytes, big-endian
        Result: 17; or BAD_HANDLE, NO_MEMORY
        """
        return self.call("set_size", set)

    def set_ranges(self, set: int) -> int:
        """The ranges, ascending; no two overlap or touch.

        set: set handle
        Exchange after: result × (first address, last address)
        Result: number of ranges; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
        """
        return self.call("set_ranges", set)

    def set_prefixes(self, set: int) -> int:
        """The fewest prefixes that cover exactly the set, ascending.

        set: set handle
        Exchange after: result × (address, length u8)
        Result: number of prefixes; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
        """
        return self.call("set_prefixes", set)

    def pool_create(self, ranges: int, masks: int) -> int:
        """A pool over the ranges with nothing used. The sets are copied. Masks outside
        the ranges do not matter.

        ranges: set handle
        masks: set handle, of the same family
        Result: pool handle; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_create", ranges, masks)

    def pool_edit(self, pool: int, ranges: int, masks: int) -> int:
        """Gives the pool another shape. What is used stays used wherever its address is
        in the new ranges, else it is forgotten. Order of release and round robin go on.
        On failure nothing changes.

        pool: pool handle
        ranges: set handle
        masks: set handle, of the same family
        Result: 0; or BAD_HANDLE, BAD_FAMILY, NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_edit", pool, ranges, masks)

    def pool_track_freed(self, pool: int) -> int:
        """From now on remembers the order in which addresses of the window become free.

        pool: pool handle
        Result: 0; or BAD_HANDLE, NO_MEMORY
        """
        return self.call("pool_track_freed", pool)

    def pool_counts(self, pool: int) -> int:
        """What the pool holds, in numbers.

        pool: pool handle
        Exchange after: 72 bytes, below
        Result: 72; or BAD_HANDLE, NO_MEMORY
        """
        return self.call("pool_counts", pool)

    def pool_blocks(self, pool: int) -> int:
        """Free ordinals of each block of 4,096, the last one perhaps shorter.

        pool: pool handle
        Exchange after: result × u16
        Result: number of blocks; or BAD_HANDLE, NO_MEMORY
        """
        return self.call("pool_blocks", pool)

    def pool_ranges(self, pool: int) -> int:
        """A copy of the pool's ranges.

        pool: pool handle
        Result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_ranges", pool)

    def pool_masks(self, pool: int) -> int:
        """A copy of the pool's masks, as far as they lie in the ranges.

        pool: pool handle
        Result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_masks", pool)

    def pool_used(self, pool: int) -> int:
        """What is used, masked or not.

        pool: pool handle
        Result: set handle; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_used", pool)

    def pool_save(self, pool: int) -> int:
        """A snapshot of what is used, and of the place of round robin.

        pool: pool handle
        Exchange after: result bytes, format below
        Result: length in bytes; or BAD_HANDLE, NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_save", pool)

    def pool_load(self, pool: int, length: int) -> int:
        """Replaces what is used by what a snapshot of a pool with the same ranges says.
        On failure nothing changes.

        pool: pool handle
        length: bytes of the snapshot
        Exchange before: the snapshot
        Result: 0; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, BAD_SNAPSHOT,
            OTHER_VERSION, OTHER_POOL
        """
        return self.call("pool_load", pool, length)

    def pool_contains(self, pool: int) -> int:
        """Whether the address is in the ranges and not masked.

        pool: pool handle
        Exchange before: 1 address
        Result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("pool_contains", pool)

    def pool_test(self, pool: int) -> int:
        """Whether the address is used.

        pool: pool handle
        Exchange before: 1 address
        Result: 1 or 0; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
        """
        return self.call("pool_test", pool)

    def pool_claim(self, pool: int) -> int:
        """Marks the address used; a masked one too.

        pool: pool handle
        Exchange before: 1 address
        Result: 1 newly marked, 0 it was used; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE,
            NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_claim", pool)

    def pool_release(self, pool: int) -> int:
        """Marks the address not used.

        pool: pool handle
        Exchange before: 1 address
        Result: 1 it was used, 0 it was not; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
        """
        return self.call("pool_release", pool)

    def pool_contains_many(self, pool: int, count: int) -> int:
        """pool_contains for each address. A failure ends the batch; those before it are
        done.

        pool: pool handle
        count: number of items in the exchange buffer
        Exchange before: count addresses
        Exchange after: count × i8: the result for each, or its status; from a failure
            on, that status
        Result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("pool_contains_many", pool, count)

    def pool_test_many(self, pool: int, count: int) -> int:
        """pool_test for each address. A failure ends the batch; those before it are
        done.

        pool: pool handle
        count: number of items in the exchange buffer
        Exchange before: count addresses
        Exchange after: count × i8: the result for each, or its status; from a failure
            on, that status
        Result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("pool_test_many", pool, count)

    def pool_claim_many(self, pool: int, count: int) -> int:
        """pool_claim for each address. A failure ends the batch; those before it are
        done.

        pool: pool handle
        count: number of items in the exchange buffer
        Exchange before: count addresses
        Exchange after: count × i8: the result for each, or its status; from a failure
            on, that status
        Result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY, OVER_CEILING
        """
        return self.call("pool_claim_many", pool, count)

    def pool_release_many(self, pool: int, count: int) -> int:
        """pool_release for each address. A failure ends the batch; those before it are
        done.

        pool: pool handle
        count: number of items in the exchange buffer
        Exchange before: count addresses
        Exchange after: count × i8: the result for each, or its status; from a failure
            on, that status
        Result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("pool_release_many", pool, count)

    def pool_test_at(self, pool: int, ordinal: int) -> int:
        """pool_test by ordinal, below the window.

        pool: pool handle
        ordinal: u32
        Result: 1 or 0; or BAD_HANDLE, OUTSIDE
        """
        return self.call("pool_test_at", pool, ordinal)

    def pool_claim_at(self, pool: int, ordinal: int) -> int:
        """pool_claim by ordinal, below the window.

        pool: pool handle
        ordinal: u32
        Result: 1 newly marked, 0 it was used; or BAD_HANDLE, OUTSIDE, NO_MEMORY
        """
        return self.call("pool_claim_at", pool, ordinal)

    def pool_release_at(self, pool: int, ordinal: int) -> int:
        """pool_release by ordinal, below the window.

        pool: pool handle
        ordinal: u32
        Result: 1 it was used, 0 it was not; or BAD_HANDLE, OUTSIDE
        """
        return self.call("pool_release_at", pool, ordinal)

    def pool_test_at_many(self, pool: int, count: int) -> int:
        """pool_test_at for each ordinal. A failure ends the batch; those before it are
        done.

        pool: pool handle
        count: number of items in the exchange buffer
        Exchange before: count × u32
        Exchange after: count × i8: the result for each, or its status; from a failure
            on, that status
        Result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("pool_test_at_many", pool, count)

    def pool_claim_at_many(self, pool: int, count: int) -> int:
        """pool_claim_at for each ordinal. A failure ends the batch; those before it are
        done.

        pool: pool handle
        count: number of items in the exchange buffer
        Exchange before: count × u32
        Exchange after: count × i8: the result for each, or its status; from a failure
            on, that status
        Result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE, NO_MEMORY
        """
        return self.call("pool_claim_at_many", pool, count)

    def pool_release_at_many(self, pool: int, count: int) -> int:
        """pool_release_at for each ordinal. A failure ends the batch; those before it
        are done.

        pool: pool handle
        count: number of items in the exchange buffer
        Exchange before: count × u32
        Exchange after: count × i8: the result for each, or its status; from a failure
            on, that status
        Result: how many gave 1; or BAD_HANDLE, SHORT_EXCHANGE
        """
        return self.call("pool_release_at_many", pool, count)

    def pool_claim_run(self, pool: int, first: int, count: int) -> int:
        """Marks consecutive ordinals used, all or none.

        pool: pool handle
        first: u32 ordinal
        count: 1 or more
        Result: 1 done, 0 one of them is not free; or BAD_HANDLE, BAD_ARGUMENT, OUTSIDE,
            NO_MEMORY
        """
        return self.call("pool_claim_run", pool, first, count)

    def pool_release_run(self, pool: int, first: int, count: int) -> int:
        """Marks consecutive ordinals not used.

        pool: pool handle
        first: u32 ordinal
        count: 1 or more
        Result: how many were used; or BAD_HANDLE, BAD_ARGUMENT, OUTSIDE
        """
        return self.call("pool_release_run", pool, first, count)

    def pool_address(self, pool: int, ordinal: int) -> int:
        """The address of an ordinal below the window.

        pool: pool handle
        ordinal: u32
        Exchange after: 1 address
        Result: 0; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
        """
        return self.call("pool_address", pool, ordinal)

    def pool_ordinal(self, pool: int) -> int:
        """The ordinal of the address; OUTSIDE for one beyond the window, too.

        pool: pool handle
        Exchange before: 1 address
        Result: ordinal; or BAD_HANDLE, SHORT_EXCHANGE, OUTSIDE
        """
        return self.call("pool_ordinal", pool)

    def pool_find(self, pool: int, start: int) -> int:
        """The first free ordinal at or after `start` modulo the window, wrapping once.
        Marks nothing.

        pool: pool handle
        start: u32
        Result: ordinal; or BAD_HANDLE, NONE
        """
        return self.call("pool_find", pool, start)

    def pool_allocate(self, pool: int, policy: int, argument: int) -> int:
        """Finds a free ordinal by a policy and marks it used.

        pool: pool handle
        policy: a policy, below
        argument: u32; HASHED: the seed; else unused
        Result: ordinal; or BAD_HANDLE, BAD_ARGUMENT, NONE, NO_MEMORY
        """
        return self.call("pool_allocate", pool, policy, argument)

    def pool_allocate_many(
        self, pool: int, policy: int, argument: int, count: int
    ) -> int:
        """pool_allocate so many times; HASHED goes on after the one before. Fewer when
        no more are free, or memory is out.

        pool: pool handle
        policy: a policy, below
        argument: u32; HASHED: the seed; else unused
        count: how many, 0 or more
        Exchange after: result addresses
        Result: how many are allocated; or BAD_HANDLE, BAD_ARGUMENT, NO_MEMORY,
            OVER_CEILING
        """
        return self.call("pool_allocate_many", pool, policy, argument, count)

    def pool_find_run(self, pool: int, start: int, count: int, align_bits: int) -> int:
        """The first of `count` free ordinals whose addresses follow one another, the
        first a multiple of 2^align_bits; from `start` modulo the window on, wrapping
        once. Marks nothing.

        pool: pool handle
        start: u32
        count: 1 or more
        align_bits: 0 to 24
        Result: ordinal; or BAD_HANDLE, BAD_ARGUMENT, NONE
        """
        return self.call("pool_find_run", pool, start, count, align_bits)

    def pool_find_wide(self, pool: int) -> int:
        """The first free address in hashed order over all ordinals, those beyond the
        window too. Starts at the seed's low bits, as many as the largest ordinal has,
        less the size when that is too large; wraps once. Marks nothing.

        pool: pool handle
        Exchange before: 16 bytes, big-endian: the seed
        Exchange after: 1 address
        Result: 0; or BAD_HANDLE, SHORT_EXCHANGE, NONE
        """
        return self.call("pool_find_wide", pool)
