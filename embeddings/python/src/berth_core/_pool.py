"""Pools of addresses: which are used, which is free next."""

import struct
from array import array
from collections.abc import Callable, Iterable

from ._codec import Address, Range, address_of, unpack, width_of
from ._errors import refusal
from ._held import Held
from ._instance import Instance
from ._outcomes import CLAIMS, LOADS, RELEASES, Claim, Counts, Load, Release
from ._range_set import Ranges, RangeSet, with_sets
from .abi import Policy, Status

_SEED_BYTES = 16


class Pool(Held):
    """Addresses of one family, each used or not, masked or not.

    Made by Core.pool(). An address of the other family, or with a zone, is outside;
    an IPv4-mapped one is IPv6.
    """

    @classmethod
    def create(
        cls, raw: Instance, family: int, ranges: Ranges, masks: Ranges
    ) -> "Pool":
        """For Core.pool()."""
        result = with_sets(raw, family, ranges, masks, raw.pool_create)
        return cls(raw, family, raw.check("pool_create", result))

    def edit(self, ranges: Ranges, masks: Ranges = ()) -> None:
        """Gives the pool another shape.

        Used marks stay wherever the address is in the new ranges, else are forgotten.
        """
        result = with_sets(
            self._raw,
            self._family,
            ranges,
            masks,
            lambda r, m: self._raw.pool_edit(self._handle, r, m),
        )
        self._raw.check("pool_edit", result)

    def allocate(
        self, policy: Policy = Policy.ASCENDING, seed: int = 0
    ) -> Address | None:
        """Claims the next address; None when no more are free in the window.

        seed: any u32, for Policy.HASHED
        """
        raw = self._raw
        # The batch form hands back the address itself; pool_allocate only its ordinal.
        taken = raw.pool_allocate_many(self._handle, policy, seed, 1)
        if raw.check("pool_allocate_many", taken, str(policy)) == 1:
            return self._address()
        return self._at(raw.pool_allocate(self._handle, policy, seed), "pool_allocate")

    def allocate_many(
        self, count: int, policy: Policy = Policy.ASCENDING, seed: int = 0
    ) -> list[Address]:
        """Claims up to so many addresses; fewer when no more are free."""
        return unpack(self.allocate_packed(count, policy, seed), self._family)

    def allocate_packed(
        self, count: int, policy: Policy = Policy.ASCENDING, seed: int = 0
    ) -> bytes:
        """allocate_many() as 4 or 16 big-endian bytes for each address."""
        raw = self._raw
        taken = raw.pool_allocate_many(self._handle, policy, seed, count)
        raw.check("pool_allocate_many", taken, f"{count} by {policy}")
        return bytes(raw.buffer()[: taken * width_of(self._family)])

    def find_free(self, seed: int = 0) -> Address | None:
        """The first free address from ordinal `seed` modulo the window on, wrapping."""
        return self._at(self._raw.pool_find(self._handle, seed), "pool_find")

    def find_free_run(
        self, count: int, align_bits: int = 0, seed: int = 0
    ) -> Range | None:
        """So many free addresses that follow one another.

        align_bits: the first address is a multiple of 2^align_bits
        seed: the ordinal, modulo the window, where the search starts
        """
        result = self._raw.pool_find_run(self._handle, seed, count, align_bits)
        first = self._at(result, "pool_find_run", f"{count}, aligned to {align_bits}")
        return None if first is None else Range(first, first + (count - 1))

    def find_free_wide(self, seed: int) -> Address | None:
        """The first free address in hashed order, those beyond the window too.

        seed: any 128-bit number
        """
        self._raw.buffer()[:_SEED_BYTES] = seed.to_bytes(_SEED_BYTES, "big")
        result = self._raw.pool_find_wide(self._handle)
        if result == Status.NONE:
            return None
        self._raw.check("pool_find_wide", result)
        return self._address()

    def claim(self, address: Address) -> Claim:
        """Marks the address used; a masked one too: ask contains() first."""
        if not self._pass(address):
            return Claim.OUTSIDE
        result = self._raw.pool_claim(self._handle)
        if result not in CLAIMS:
            raise refusal("pool_claim", result, str(address))
        return CLAIMS[result]

    def release(self, address: Address) -> Release:
        """Marks the address not used."""
        if not self._pass(address):
            return Release.OUTSIDE
        result = self._raw.pool_release(self._handle)
        if result not in RELEASES:
            raise refusal("pool_release", result, str(address))
        return RELEASES[result]

    def claim_run(self, run: Range) -> Claim:
        """Marks all addresses from first to last used, or none of them.

        Taken when one of them is used or masked; outside when one is not in the window.
        """
        first, count = self._ordinals(run)
        if count < 1:
            return Claim.OUTSIDE
        result = self._raw.pool_claim_run(self._handle, first, count)
        return CLAIMS[self._raw.check("pool_claim_run", result)]

    def release_run(self, run: Range) -> int | None:
        """Marks all addresses from first to last not used: how many were used.

        None, and nothing is released, when one of them is not in the window.
        """
        first, count = self._ordinals(run)
        if count < 1:
            return None
        result = self._raw.pool_release_run(self._handle, first, count)
        return self._raw.check("pool_release_run", result)

    def contains(self, address: Address) -> bool:
        """Whether the address is in the ranges and not masked."""
        if not self._pass(address):
            return False
        result = self._raw.pool_contains(self._handle)
        return self._raw.check("pool_contains", result) == 1

    def test(self, address: Address) -> bool:
        """Whether the address is marked used."""
        if not self._pass(address):
            return False
        result = self._raw.pool_test(self._handle)
        return result != Status.OUTSIDE and self._raw.check("pool_test", result) == 1

    def claim_many(self, addresses: Iterable[Address]) -> list[Claim]:
        """claim() for each address."""
        return [CLAIMS[r] for r in self._each(self.claim_packed, addresses)]

    def release_many(self, addresses: Iterable[Address]) -> list[Release]:
        """release() for each address."""
        return [RELEASES[r] for r in self._each(self.release_packed, addresses)]

    def contains_many(self, addresses: Iterable[Address]) -> list[bool]:
        """contains() for each address."""
        return [result == 1 for result in self._each(self.contains_packed, addresses)]

    def test_many(self, addresses: Iterable[Address]) -> list[bool]:
        """test() for each address."""
        return [result == 1 for result in self._each(self.test_packed, addresses)]

    def claim_packed(self, packed: bytes) -> "array[int]":
        """Marks addresses used that stand one after another: 1 newly, 0 it was.

        As for the other packed forms, Status.OUTSIDE stands for an address that is not
        in the ranges. A CoreError says in `done` how many went before it.
        """
        return self._packed("pool_claim_many", self._raw.pool_claim_many, packed)

    def release_packed(self, packed: bytes) -> "array[int]":
        """Marks addresses not used: 1 it was used, 0 it was not."""
        return self._packed("pool_release_many", self._raw.pool_release_many, packed)

    def contains_packed(self, packed: bytes) -> "array[int]":
        """Whether addresses are in the ranges and not masked: 1 or 0."""
        return self._packed("pool_contains_many", self._raw.pool_contains_many, packed)

    def test_packed(self, packed: bytes) -> "array[int]":
        """Whether addresses are marked used: 1 or 0."""
        return self._packed("pool_test_many", self._raw.pool_test_many, packed)

    def track_freed(self) -> None:
        """From now on remembers the order in which addresses of the window become free.

        For Policy.LEAST_RECENTLY_FREED.
        """
        result = self._raw.pool_track_freed(self._handle)
        self._raw.check("pool_track_freed", result)

    def counts(self) -> Counts:
        """What the pool holds, in numbers."""
        self._raw.check("pool_counts", self._raw.pool_counts(self._handle))
        return Counts.read(self._raw.buffer())

    def free_per_block(self) -> list[int]:
        """Free addresses in each block of 4,096 of the window; the last is shorter."""
        blocks = self._raw.check("pool_blocks", self._raw.pool_blocks(self._handle))
        return list(struct.unpack_from(f"<{blocks}H", self._raw.buffer()))

    def used(self) -> RangeSet:
        """The used addresses, masked or not, as a set that the caller drops."""
        return self._set("pool_used", self._raw.pool_used(self._handle))

    def ranges(self) -> RangeSet:
        """A copy of the pool's ranges, which the caller drops."""
        return self._set("pool_ranges", self._raw.pool_ranges(self._handle))

    def masks(self) -> RangeSet:
        """A copy of the masks, as far as they lie in the ranges; the caller drops it."""
        return self._set("pool_masks", self._raw.pool_masks(self._handle))

    def save(self) -> bytes:
        """What is used, for load() of a pool with the same ranges.

        Masks and the order of release are not in it.
        """
        length = self._raw.check("pool_save", self._raw.pool_save(self._handle))
        return bytes(self._raw.buffer()[:length])

    def load(self, snapshot: bytes) -> Load:
        """Replaces what is used by what save() wrote."""
        length = len(snapshot)
        self._raw.reserve(length)[:length] = snapshot
        result = self._raw.pool_load(self._handle, length)
        if result not in LOADS:
            raise refusal("pool_load", result, f"{length} bytes")
        return LOADS[result]

    def _at(self, ordinal: int, operation: str, got: str = "") -> Address | None:
        """The address of an ordinal that an operation found."""
        if ordinal == Status.NONE:
            return None
        self._raw.check(operation, ordinal, got)
        result = self._raw.pool_address(self._handle, ordinal)
        self._raw.check("pool_address", result)
        return self._address()

    def _address(self) -> Address:
        """The address at the start of the exchange buffer."""
        return address_of(self._raw.buffer(), self._family)

    def _ordinals(self, run: Range) -> tuple[int, int]:
        """First ordinal and length of a run; length 0 when not all in the window."""
        ordinals = []
        for address in run:
            if not self._pass(address):
                return 0, 0
            ordinal = self._raw.pool_ordinal(self._handle)
            if ordinal == Status.OUTSIDE:
                return 0, 0
            ordinals.append(self._raw.check("pool_ordinal", ordinal))
        first, last = ordinals
        # Between ranges ordinals go on, addresses do not.
        follow = last - first == int(run[1]) - int(run[0])
        return first, last - first + 1 if follow else 0

    def _each(
        self,
        operation: "Callable[[bytes], array[int]]",
        addresses: Iterable[Address],
    ) -> list[int]:
        """The result for each address; those of the other family are outside."""
        addresses = list(addresses)
        places, packed = self._comparable(addresses)
        results: list[int] = [Status.OUTSIDE] * len(addresses)
        for place, result in zip(places, operation(packed), strict=True):
            results[place] = result
        return results

    def _packed(
        self, operation: str, many: Callable[[int, int], int], packed: bytes
    ) -> "array[int]":
        count = self._pass_many(operation, packed)
        result = many(self._handle, count)
        if result in (Status.BAD_HANDLE, Status.SHORT_EXCHANGE):
            raise refusal(operation, result)
        results = array("b", bytes(self._raw.buffer()[:count]))
        if result < 0:
            raise refusal(operation, result, done=results.index(result))
        return results

    def _set(self, operation: str, result: int) -> RangeSet:
        return RangeSet(self._raw, self._family, self._raw.check(operation, result))
