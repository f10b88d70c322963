"""What sets and pools have in common: a handle in the core, and an end."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ._codec import Address, bytes_of, width_of
from ._errors import CoreValueError
from ._instance import Instance
from .abi import Status

if TYPE_CHECKING:
    from ._core import Core

_Held = TypeVar("_Held", bound="Held")

# Handles are above 0, so the core refuses it.
_NO_HANDLE = 0


class Held(ABC):
    """An object in the core: lives until drop(), or to the end of a `with` block.

    Nothing is dropped when Python forgets the object: that would come at any time and
    from any thread.
    """

    def __init__(self, raw: Instance, family: int, handle: int) -> None:
        self._raw = raw
        self._handle = handle
        self._family = family

    @property
    def family(self) -> int:
        """4 or 6, as `version` of an address."""
        return self._family

    @property
    def handle(self) -> int:
        """The object's number in the raw layer."""
        return self._handle

    def handle_in(self, raw: Instance) -> int:
        """The handle, which means nothing in another instance."""
        if raw is not self._raw:
            raise ValueError("The two objects live in two instances of the core")
        return self._handle

    def in_copy(self: _Held, core: "Core") -> _Held:
        """The same object in a copy of the core that was made while it lived."""
        return type(self)(core.raw, self._family, self._handle)

    @abstractmethod
    def contains(self, address: Address) -> bool:
        """Whether the address is in the object; one of the other family is not."""

    def __contains__(self, address: object) -> bool:
        if not isinstance(address, (IPv4Address, IPv6Address)):
            return False
        return self.contains(address)

    def drop(self) -> None:
        """Gives the memory back; every later use but drop() is a CoreStateError."""
        if self._handle != _NO_HANDLE:
            self._raw.check("drop", self._raw.drop(self._handle))
            self._handle = _NO_HANDLE

    def __enter__(self: _Held) -> _Held:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.drop()

    def _pass(self, address: Address) -> bool:
        """Writes the address where the core reads it; False when none is like it."""
        packed = bytes_of(address, self._family)
        if packed is None:
            return False
        self._raw.buffer()[: len(packed)] = packed
        return True

    def _pass_many(self, operation: str, packed: bytes) -> int:
        """Writes addresses where the core reads them: how many."""
        count, rest = divmod(len(packed), width_of(self._family))
        if rest:
            got = f"{len(packed)} bytes, wanted a multiple of {width_of(self._family)}"
            raise CoreValueError(operation, Status.BAD_ARGUMENT, got)
        self._raw.reserve(len(packed))[: len(packed)] = packed
        return count

    def _comparable(self, addresses: Iterable[Address]) -> tuple[list[int], bytes]:
        """Places and packed bytes of the addresses that the object could have."""
        places, parts = [], []
        for place, address in enumerate(addresses):
            packed = bytes_of(address, self._family)
            if packed is not None:
                places.append(place)
                parts.append(packed)
        return places, b"".join(parts)
