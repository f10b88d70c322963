"""Berth's allocator of IP addresses, on `ipaddress`.

One WebAssembly module, the same in every language, run by Wasmtime. Open a Core, make
pools and range sets in it, and drop them or leave their `with` block. A Core is one
thread's. Misuse, ceilings and refused snapshots are a CoreError, after which nothing has
changed; "none", "taken", "outside" are results. An address of another family, or with a
zone, is in no pool and no set; one that is IPv4-mapped is IPv6. What is not here is a
call of `core.raw` with an object's `handle`.
"""

from collections.abc import Callable, Iterable
from ctypes import POINTER, byref
from enum import Enum
from importlib import resources
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any, NamedTuple, TypeAlias, TypeVar

from wasmtime import Engine, Instance, Module, Store
from wasmtime import _ffi as ffi

from .raw import MOST_PARAMETERS, CoreError, CountsAt, Exports, Policy, Status

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


class Range(NamedTuple):
    """Addresses from first to last, both included."""

    first: Address
    last: Address

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


# Networks and pairs of addresses, of one family, which may overlap.
Ranges: TypeAlias = Iterable[Network | tuple[Address, Address]]


class Claim(Enum):
    CLAIMED = 1
    TAKEN = 0
    OUTSIDE = None


class Release(Enum):
    RELEASED = 1
    FREE = 0
    OUTSIDE = None


class Counts(NamedTuple):
    """What a pool holds, in numbers of addresses."""

    total: int  # in the ranges and not masked
    free: int  # of those, not used
    used: int  # masked ones too
    used_masked: int
    window: int  # those that every order finds: at most the first 2^24
    beyond: int  # used ones beyond the window


_ENGINE = Engine()
_MODULE = Module(_ENGINE, resources.files(__package__).joinpath("berth-core.wasm").read_bytes())


class Raw(Exports):
    """The exports of an instance in which nothing has been called, and its memory."""

    def __init__(self) -> None:
        self._store = Store(_ENGINE)
        self._exports: Any = Instance(self._store, _MODULE, []).exports(self._store)
        self._values = (ffi.wasmtime_val_raw_t * MOST_PARAMETERS)()
        self._trap = POINTER(ffi.wasm_trap_t)()

    def invoke(self, name: str, *args: int) -> int:
        # Wasmtime would take the low 32 bits of more.
        if not all(-(2**31) <= arg < 2**32 for arg in args):
            raise CoreError(name, Status.BAD_ARGUMENT)
        for at, arg in enumerate(args):
            self._values[at].i32 = arg
        context, function = self._store._context(), byref(self._exports[name]._func)
        # Func's own call looks for types each time, and takes fifty times as long.
        values, trap = self._values, byref(self._trap)
        error = ffi.wasmtime_func_call_unchecked(context, function, values, len(values), trap)
        if error or self._trap:
            raise RuntimeError(f"{name} ended half way")
        result: int = self._values[0].i32
        if result < 0:
            raise CoreError(name, result)
        return result

    def write(self, content: bytes) -> None:
        """Writes to the start of the exchange buffer, which grows if it must."""
        start = self.exchange(len(content))
        self._exports["memory"].write(self._store, content, start)

    def read(self, length: int) -> bytes:
        """The first bytes of the exchange buffer."""
        return self.memory(self.exchange(0), length)

    def read_address(self, family: int) -> Address:
        """The address at the start of the exchange buffer."""
        return _unpack(self.read(_width(family)), family)[0]

    def memory(self, start: int, length: int) -> bytes:
        content = self._exports["memory"].read(self._store, start, start + length)
        return bytes(content)

    def close(self) -> None:
        self._store.close()


class Core:
    """An instance of the core: the same calls give the same answers everywhere."""

    def __init__(self) -> None:
        self.raw = Raw()
        self.raw.exchange(64)  # room for what operations on addresses write

    def close(self) -> None:
        """Frees the memory; every later use is a ValueError."""
        self.raw.close()

    def __enter__(self) -> "Core":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pool(self, ranges: Ranges, masks: Ranges = (), family: int | None = None) -> "Pool":
        """A pool with nothing used. Masked addresses are never found.

        family: 4 or 6; without it, that of the first range, or 4 when there is none
        """
        with self.range_set(ranges, family) as shape:
            with self.range_set(masks, shape.family) as masked:
                handle = self.raw.pool_create(shape.handle, masked.handle)
                return Pool(self, shape.family, handle)

    def range_set(self, ranges: Ranges, family: int | None = None) -> "RangeSet":
        """A set of networks and pairs of addresses."""
        ends = [end for item in ranges for end in _ends_of(item)]
        if family is None:
            family = ends[0].version if ends else 4
        self.raw.write(_pack("set_create", family, ends))
        return RangeSet(self, family, self.raw.set_create(family, len(ends) // 2))

    def prefix_first(self, network: Network) -> Address:
        """The lowest address of the network."""
        return self._end_of(network, self.raw.prefix_first)

    def prefix_last(self, network: Network) -> Address:
        """The highest address of the network."""
        return self._end_of(network, self.raw.prefix_last)

    def prefix_mask(self, family: int, length: int) -> Address:
        """The network mask of that length."""
        self.raw.prefix_mask(family, length)
        return self.raw.read_address(family)

    def prefix_next(self, network: Network) -> Network | None:
        """The network of the same length after this one; None after the last."""
        family, length = network.version, network.prefixlen
        self.raw.write(network.network_address.packed)
        if self.raw.find(Status.NONE, "prefix_next", family, length) is None:
            return None
        return ip_network((self.raw.read_address(family), length))

    def prefix_part(self, network: Network, length: int, index: int) -> Network | None:
        """Part `index`, from 0, of the network split into networks of a length."""
        family, args = network.version, (network.prefixlen, length, index)
        self.raw.write(network.network_address.packed)
        if self.raw.find(Status.OUTSIDE, "prefix_part", family, *args) is None:
            return None
        return ip_network((self.raw.read_address(family), length))

    def prefix_common(self, one: Address, other: Address) -> Network:
        """The longest prefix that holds both addresses."""
        self.raw.write(_pack("prefix_common", one.version, [one, other]))
        length = self.raw.prefix_common(one.version)
        return ip_network((one, length), strict=False)

    def _end_of(self, network: Network, find: Callable[[int, int], int]) -> Address:
        self.raw.write(network.network_address.packed)
        find(network.version, network.prefixlen)
        return self.raw.read_address(network.version)


_Held = TypeVar("_Held", bound="Held")


class Held:
    """A pool or a set: in its core until drop(), or to the end of a `with` block."""

    def __init__(self, core: Core, family: int, handle: int) -> None:
        self.core = core
        self.family = family
        self.handle = handle
        self._raw = core.raw

    def drop(self) -> None:
        """Gives the memory back; every later use is a CoreError."""
        self._raw.drop(self.handle)

    def __enter__(self: _Held) -> _Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def _ask(self, name: str, address: Address) -> int | None:
        """The result for an address; None where the object does not have it."""
        if address.version != self.family or _has_zone(address):
            return None
        self._raw.write(address.packed)
        return self._raw.find(Status.OUTSIDE, name, self.handle)

    def _set(self, handle: int) -> "RangeSet":
        return RangeSet(self.core, self.family, handle)


class RangeSet(Held):
    """Addresses of one family. Operations with another set give a new one."""

    def union(self, other: "RangeSet") -> "RangeSet":
        return self._set(self._raw.set_union(self.handle, self._peer(other)))

    def intersect(self, other: "RangeSet") -> "RangeSet":
        return self._set(self._raw.set_intersect(self.handle, self._peer(other)))

    def subtract(self, other: "RangeSet") -> "RangeSet":
        return self._set(self._raw.set_subtract(self.handle, self._peer(other)))

    def overlaps(self, other: "RangeSet") -> bool:
        return self._raw.set_overlaps(self.handle, self._peer(other)) == 1

    def includes(self, other: "RangeSet") -> bool:
        """Whether every address of the other set is in this one."""
        return self._raw.set_includes(self.handle, self._peer(other)) == 1

    def contains(self, address: Address) -> bool:
        return self._ask("set_contains", address) == 1

    def size(self) -> int:
        """The number of addresses, at most 2^128."""
        return int.from_bytes(self._raw.read(self._raw.set_size(self.handle)), "big")

    def ranges(self) -> list[Range]:
        """The fewest ranges, ascending; no two touch."""
        length = self._raw.set_ranges(self.handle) * 2 * _width(self.family)
        addresses = iter(_unpack(self._raw.read(length), self.family))
        return [Range(first, last) for first, last in zip(addresses, addresses)]

    def prefixes(self) -> list[Network]:
        """The fewest prefixes that cover exactly this set, ascending."""
        item = _width(self.family) + 1
        packed = self._raw.read(self._raw.set_prefixes(self.handle) * item)
        items = [packed[at : at + item] for at in range(0, len(packed), item)]
        return [ip_network((each[:-1], each[-1])) for each in items]

    def _peer(self, other: "RangeSet") -> int:
        """The other set's handle, which means nothing in another core."""
        return other.handle if other.core is self.core else 0


class Pool(Held):
    """Addresses of one family, each used or not, masked or not."""

    def edit(self, ranges: Ranges, masks: Ranges = ()) -> None:
        """Gives the pool another shape. Used marks outside it are forgotten."""
        with self.core.range_set(ranges, self.family) as shape:
            with self.core.range_set(masks, self.family) as masked:
                self._raw.pool_edit(self.handle, shape.handle, masked.handle)

    def allocate(self, policy: Policy = Policy.ASCENDING, seed: int = 0) -> Address | None:
        """Claims the next address, if one is free. seed: any u32, for Policy.HASHED"""
        return self._find("pool_allocate", policy, seed)

    def find_free(self, seed: int = 0) -> Address | None:
        """The first free address from ordinal `seed` modulo the window on, wrapping."""
        return self._find("pool_find", seed)

    def find_free_wide(self, seed: int) -> Address | None:
        """The first free address, beyond the window too, from a 128-bit seed on."""
        self._raw.write(seed.to_bytes(16, "big"))
        if self._raw.find(Status.NONE, "pool_find_wide", self.handle) is None:
            return None
        return self._raw.read_address(self.family)

    def contains(self, address: Address) -> bool:
        """Whether the address is in the ranges and not masked."""
        return self._ask("pool_contains", address) == 1

    def test(self, address: Address) -> bool:
        """Whether the address is used."""
        return self._ask("pool_test", address) == 1

    def claim(self, address: Address) -> Claim:
        """Marks the address used; a masked one too."""
        return Claim(self._ask("pool_claim", address))

    def release(self, address: Address) -> Release:
        return Release(self._ask("pool_release", address))

    def track_freed(self) -> None:
        """From now on remembers the order of releases: for LEAST_RECENTLY_FREED."""
        self._raw.pool_track_freed(self.handle)

    def counts(self) -> Counts:
        content = self._raw.read(self._raw.pool_counts(self.handle))

        def size(at: int) -> int:
            return int.from_bytes(content[at : at + 17], "big")

        def number(at: int) -> int:
            return int.from_bytes(content[at : at + 4], "little")

        total = size(CountsAt.SIZE) - size(CountsAt.MASKED)
        used, used_masked = number(CountsAt.USED), number(CountsAt.USED_MASKED)
        window, beyond = number(CountsAt.WINDOW), number(CountsAt.BEYOND)
        free = total - (used - used_masked)
        return Counts(total, free, used, used_masked, window, beyond)

    def used(self) -> RangeSet:
        """The used addresses, masked or not: a set that the caller drops."""
        return self._set(self._raw.pool_used(self.handle))

    def save(self) -> bytes:
        """What is used, for load(). Masks and the order of release are not in it."""
        return self._raw.read(self._raw.pool_save(self.handle))

    def load(self, snapshot: bytes) -> None:
        """Replaces what is used by what save() of a pool with the same ranges wrote."""
        self._raw.write(snapshot)
        self._raw.pool_load(self.handle, len(snapshot))

    def _find(self, name: str, *args: int) -> Address | None:
        """The address of the ordinal that an operation finds."""
        ordinal = self._raw.find(Status.NONE, name, self.handle, *args)
        if ordinal is None:
            return None
        self._raw.pool_address(self.handle, ordinal)
        return self._raw.read_address(self.family)


def _width(family: int) -> int:
    return 4 if family == 4 else 16


def _has_zone(address: Address) -> bool:
    return getattr(address, "scope_id", None) is not None


def _ends_of(item: Network | tuple[Address, Address]) -> tuple[Address, Address]:
    if isinstance(item, (IPv4Network, IPv6Network)):
        return item.network_address, item.broadcast_address
    return item


def _pack(name: str, family: int, addresses: list[Address]) -> bytes:
    """4 or 16 big-endian bytes for each address."""
    for address in addresses:
        if address.version != family:
            raise CoreError(name, Status.BAD_FAMILY)
        if _has_zone(address):
            raise CoreError(name, Status.BAD_ARGUMENT)
    return b"".join(address.packed for address in addresses)


def _unpack(packed: bytes, family: int) -> list[Address]:
    kind, width = (IPv4Address, 4) if family == 4 else (IPv6Address, 16)
    return [kind(packed[at : at + width]) for at in range(0, len(packed), width)]
