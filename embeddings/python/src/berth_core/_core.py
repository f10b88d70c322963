"""The door: one instance of the core, in which many pools and sets live."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from types import TracebackType

from ._codec import (
    Address,
    Network,
    RangeLike,
    address_of,
    family_of,
    require_address,
    require_bytes,
)
from ._instance import Instance, embedded
from ._pool import Pool
from ._range_set import Ranges, RangeSet
from .abi import Status


class Core:
    """An allocator of IP addresses. One thread's: give each its own.

    Holds everything in its own memory, deterministically: the same calls give the same
    answers everywhere.
    """

    def __init__(self, wasm: bytes | None = None) -> None:
        """Opens the core that this package carries, or the given one.

        Raises ValueError when the bytes are no core of this ABI.
        """
        self._raw = Instance.open(embedded() if wasm is None else wasm)

    @property
    def raw(self) -> Instance:
        """The exports themselves, for whoever wants ordinals and handles."""
        return self._raw

    def copy(self) -> "Core":
        """An equal core; the two go separate ways. See in_copy() of pools and sets."""
        other = object.__new__(Core)
        other._raw = self._raw.copy()
        return other

    def close(self) -> None:
        """Frees the memory; every later use is a RuntimeError."""
        self._raw.close()

    def __enter__(self) -> "Core":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def pool(
        self, ranges: Ranges, masks: Ranges = (), family: int | None = None
    ) -> Pool:
        """A pool with nothing used over networks, pairs of addresses, or a set.

        masks: addresses that are never found (network, gateway, reserved)
        family: 4 or 6; without it, that of the first range, or 4 when there is none
        """
        ranges, family = _known(ranges, family)
        return Pool.create(self._raw, family, ranges, masks)

    def range_set(
        self, ranges: Iterable[RangeLike], family: int | None = None
    ) -> RangeSet:
        """A set of networks and pairs of addresses, which may overlap."""
        items = list(ranges)
        return RangeSet.of_ranges(self._raw, _family(items, family), items)

    def range_set_of_prefixes(
        self, networks: Iterable[Network], family: int | None = None
    ) -> RangeSet:
        """A set of networks, which may overlap."""
        items = list(networks)
        return RangeSet.of_prefixes(self._raw, _family(items, family), items)

    def prefix_first(self, address: Address, length: int) -> Address:
        """The lowest address of the prefix that holds the address."""
        return self._prefix("prefix_first", address, length)

    def prefix_last(self, address: Address, length: int) -> Address:
        """The highest address of the prefix that holds the address."""
        return self._prefix("prefix_last", address, length)

    def prefix_mask(self, family: int, length: int) -> Address:
        """The network mask of that length."""
        result = self._raw.prefix_mask(family, length)
        self._raw.check("prefix_mask", result, f"IPv{family}, length {length}")
        return self._address(family)

    def prefix_next(self, network: Network) -> Network | None:
        """The network of the same length after this one; None after the last."""
        family, length = self._pass("prefix_next", network)
        result = self._raw.prefix_next(family, length)
        if result == Status.NONE:
            return None
        self._raw.check("prefix_next", result)
        return _network(self._address(family), length)

    def prefix_part(self, network: Network, length: int, index: int) -> Network | None:
        """Part `index`, from 0, of the network split into networks of a length.

        index: any u32; None when there are not so many parts
        """
        family, whole = self._pass("prefix_part", network)
        result = self._raw.prefix_part(family, whole, length, index)
        if result == Status.OUTSIDE:
            return None
        self._raw.check("prefix_part", result, f"{network} into /{length}")
        return _network(self._address(family), length)

    def prefix_common(self, one: Address, other: Address) -> Network:
        """The longest prefix that holds both addresses."""
        family = require_address(one).version
        packed = require_bytes("prefix_common", one, family)
        packed += require_bytes("prefix_common", other, family)
        self._raw.buffer()[: len(packed)] = packed
        length = self._raw.check("prefix_common", self._raw.prefix_common(family))
        return _network(self.prefix_first(one, length), length)

    def state_bytes(self) -> int:
        """How much of the core's memory is in use: bytes."""
        return self._raw.state_bytes()

    def live_objects(self) -> int:
        """Sets and pools that are not dropped."""
        return self._raw.live_objects()

    def _prefix(self, operation: str, address: Address, length: int) -> Address:
        family = require_address(address).version
        packed = require_bytes(operation, address, family)
        self._raw.buffer()[: len(packed)] = packed
        result = self._raw.call(operation, family, length)
        self._raw.check(operation, result, f"{address}/{length}")
        return self._address(family)

    def _pass(self, operation: str, network: Network) -> tuple[int, int]:
        """Writes the network's address; gives its family and length."""
        family = network.version
        packed = require_bytes(operation, network.network_address, family)
        self._raw.buffer()[: len(packed)] = packed
        return family, network.prefixlen

    def _address(self, family: int) -> Address:
        return address_of(self._raw.buffer(), family)


def _network(address: Address, length: int) -> Network:
    if isinstance(address, IPv4Address):
        return IPv4Network((address, length))
    return IPv6Network((address, length))


def _known(ranges: Ranges, family: int | None) -> tuple[Ranges, int]:
    """The ranges, to be gone through once more, and their family."""
    if isinstance(ranges, RangeSet):
        return ranges, ranges.family
    items = list(ranges)
    return items, _family(items, family)


def _family(items: Sequence[RangeLike], family: int | None) -> int:
    return family_of(items) if family is None else family
