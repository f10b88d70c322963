"""Addresses as the bytes of the core: 4 or 16 each, big-endian."""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import NamedTuple, TypeAlias

from ._errors import CoreValueError
from .abi import Status

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


class Range(NamedTuple):
    """Addresses from first to last, both included."""

    first: Address
    last: Address


# What a set is made of: a pair of addresses, or a network.
RangeLike: TypeAlias = tuple[Address, Address] | Network


def width_of(family: int) -> int:
    """Bytes of an address."""
    return 4 if family == 4 else 16


def require_address(address: Address) -> Address:
    """The address, if it is one."""
    if not isinstance(address, (IPv4Address, IPv6Address)):
        raise TypeError(f"Wanted an IPv4Address or IPv6Address, got {address!r}")
    return address


def bytes_of(address: Address, family: int) -> bytes | None:
    """The address packed; None when it is of the other family or has a zone."""
    if require_address(address).version != family:
        return None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return None
    return address.packed


def require_bytes(operation: str, address: Address, family: int) -> bytes:
    """The address packed; refuses another family and zones."""
    packed = bytes_of(address, family)
    if packed is None:
        wrong = Status.BAD_FAMILY if address.version != family else Status.BAD_ARGUMENT
        raise CoreValueError(operation, wrong, f"{address}, wanted IPv{family}")
    return packed


def pack(addresses: Iterable[Address], family: int) -> bytes:
    """Addresses of one family, one after another, for the packed batch forms."""
    return b"".join(require_bytes("pack", address, family) for address in addresses)


def unpack(packed: bytes | memoryview, family: int) -> list[Address]:
    """The addresses that stand one after another in `packed`."""
    kind = IPv4Address if family == 4 else IPv6Address
    width = width_of(family)
    if len(packed) % width:
        got = f"{len(packed)} bytes, wanted a multiple of {width}"
        raise CoreValueError("unpack", Status.BAD_ARGUMENT, got)
    content = bytes(packed)
    return [kind(content[at : at + width]) for at in range(0, len(content), width)]


def pack_ranges(items: Iterable[RangeLike], family: int) -> bytes:
    """First and last address of each, one after another."""
    return b"".join(
        require_bytes("set_create", address, family)
        for item in items
        for address in ends_of(item)
    )


def pack_networks(networks: Iterable[Network], family: int) -> bytes:
    """Address and length of each, one after another."""
    return b"".join(
        require_bytes("set_create_prefixes", network.network_address, family)
        + bytes([network.prefixlen])
        for network in networks
    )


def address_of(packed: memoryview, family: int) -> Address:
    """The address that stands first in `packed`."""
    if family == 4:
        return IPv4Address(bytes(packed[:4]))
    return IPv6Address(bytes(packed[:16]))


def unpack_networks(packed: memoryview, family: int, count: int) -> Iterator[Network]:
    """Reads items of an address and a length."""
    kind = IPv4Network if family == 4 else IPv6Network
    width = width_of(family)
    for at in range(0, count * (width + 1), width + 1):
        length = packed[at + width]
        yield kind((bytes(packed[at : at + width]), length))


def ends_of(item: RangeLike) -> tuple[Address, Address]:
    """First and last address."""
    if isinstance(item, (IPv4Network, IPv6Network)):
        return item.network_address, item.broadcast_address
    if isinstance(item, tuple) and len(item) == 2:
        return item
    raise TypeError(f"Wanted a network or a pair of addresses, got {item!r}")


def family_of(items: Sequence[RangeLike]) -> int:
    """The family of the first item; 4 when there is none."""
    if not items:
        return 4
    first, _ = ends_of(items[0])
    return require_address(first).version
