"""Sets of addresses of one family, kept in the core."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TypeAlias, Union

from ._codec import (
    Address,
    Network,
    Range,
    RangeLike,
    pack_networks,
    pack_ranges,
    unpack,
    unpack_networks,
    width_of,
)
from ._held import Held
from ._instance import Instance

_SIZE_BYTES = 17

# A set, or what makes one.
Ranges: TypeAlias = Union["RangeSet", Iterable[RangeLike]]


def _create(raw: Instance, family: int, ranges: Iterable[RangeLike]) -> int:
    """The handle of a set of the ranges."""
    packed = pack_ranges(ranges, family)
    count = len(packed) // (2 * width_of(family))
    raw.reserve(len(packed))[: len(packed)] = packed
    return raw.check("set_create", raw.set_create(family, count), f"{count} ranges")


class RangeSet(Held):
    """Addresses as ranges: algebra, membership, size, shortest list of prefixes.

    Made by Core.range_set() and others. Iterates over its addresses, ascending.
    """

    @classmethod
    def of_ranges(
        cls, raw: Instance, family: int, ranges: Iterable[RangeLike]
    ) -> "RangeSet":
        """For Core.range_set()."""
        return cls(raw, family, _create(raw, family, ranges))

    @classmethod
    def of_prefixes(
        cls, raw: Instance, family: int, networks: Iterable[Network]
    ) -> "RangeSet":
        """For Core.range_set_of_prefixes()."""
        packed = pack_networks(networks, family)
        count = len(packed) // (width_of(family) + 1)
        raw.reserve(len(packed))[: len(packed)] = packed
        result = raw.set_create_prefixes(family, count)
        return cls(raw, family, raw.check("set_create_prefixes", result))

    def union(self, other: "RangeSet") -> "RangeSet":
        """The addresses of either set."""
        return self._derive(
            "set_union", self._raw.set_union(self._handle, self._peer(other))
        )

    def intersect(self, other: "RangeSet") -> "RangeSet":
        """The addresses of both sets."""
        return self._derive(
            "set_intersect", self._raw.set_intersect(self._handle, self._peer(other))
        )

    def subtract(self, other: "RangeSet") -> "RangeSet":
        """The addresses of this set that are not in the other."""
        return self._derive(
            "set_subtract", self._raw.set_subtract(self._handle, self._peer(other))
        )

    def overlaps(self, other: "RangeSet") -> bool:
        """Whether the sets share an address."""
        result = self._raw.set_overlaps(self._handle, self._peer(other))
        return self._raw.check("set_overlaps", result) == 1

    def includes(self, other: "RangeSet") -> bool:
        """Whether every address of the other set is in this one."""
        result = self._raw.set_includes(self._handle, self._peer(other))
        return self._raw.check("set_includes", result) == 1

    def contains(self, address: Address) -> bool:
        """Whether the address is in the set; one of the other family is not."""
        if not self._pass(address):
            return False
        return self._raw.check("set_contains", self._raw.set_contains(self._handle)) > 0

    def contains_many(self, addresses: Iterable[Address]) -> list[bool]:
        """contains() for each address."""
        addresses = list(addresses)
        places, packed = self._comparable(addresses)
        answers = [False] * len(addresses)
        for place, answer in zip(places, self.contains_packed(packed), strict=True):
            answers[place] = answer == 1
        return answers

    def contains_packed(self, packed: bytes) -> bytes:
        """For each address of `packed` a byte: 1 when it is in the set, else 0."""
        count = self._pass_many("set_contains_many", packed)
        result = self._raw.set_contains_many(self._handle, count)
        self._raw.check("set_contains_many", result)
        return bytes(self._raw.buffer()[:count])

    def range_count(self) -> int:
        """The fewest ranges that make up the set."""
        return self._raw.check("set_count", self._raw.set_count(self._handle))

    def size(self) -> int:
        """The number of addresses, at most 2^128."""
        self._raw.check("set_size", self._raw.set_size(self._handle))
        return int.from_bytes(self._raw.buffer()[:_SIZE_BYTES], "big")

    def ranges(self) -> list[Range]:
        """The fewest ranges, ascending; no two touch."""
        count = self._raw.check("set_ranges", self._raw.set_ranges(self._handle))
        length = count * 2 * width_of(self._family)
        addresses = iter(unpack(self._raw.buffer()[:length], self._family))
        return [Range(first, last) for first, last in zip(addresses, addresses)]

    def prefixes(self) -> list[Network]:
        """The fewest prefixes that cover exactly this set, ascending."""
        count = self._raw.check("set_prefixes", self._raw.set_prefixes(self._handle))
        return list(unpack_networks(self._raw.buffer(), self._family, count))

    def __iter__(self) -> Iterator[Address]:
        for first, last in self.ranges():
            for number in range(int(first), int(last) + 1):
                yield type(first)(number)

    def _peer(self, other: "RangeSet") -> int:
        return other.handle_in(self._raw)

    def _derive(self, operation: str, result: int) -> "RangeSet":
        return RangeSet(self._raw, self._family, self._raw.check(operation, result))


def with_sets(
    raw: Instance,
    family: int,
    ranges: Ranges,
    masks: Ranges,
    use: Callable[[int, int], int],
) -> int:
    """Calls `use` with the handles of two sets; those made for it end with it."""
    with ExitStack() as made:

        def handle(given: Ranges) -> int:
            if isinstance(given, RangeSet):
                return given.handle_in(raw)
            created = _create(raw, family, given)
            made.callback(raw.drop, created)
            return created

        return use(handle(ranges), handle(masks))
