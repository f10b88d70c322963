"""What a pool answers that is not a number or an address."""

import struct
from enum import Enum
from typing import NamedTuple

from .abi import CountsOffset, Status

_SIZE_BYTES = 17


class Claim(Enum):
    """What became of a claim."""

    CLAIMED = "claimed"
    TAKEN = "taken"
    OUTSIDE = "outside"


class Release(Enum):
    """What became of a release."""

    RELEASED = "released"
    FREE = "free"
    OUTSIDE = "outside"


class Load(Enum):
    """What became of loading a snapshot; unless loaded, the pool is as before."""

    LOADED = "loaded"
    DAMAGED = "damaged"
    OTHER_VERSION = "other version"
    OTHER_POOL = "other pool"


class Counts(NamedTuple):
    """What a pool holds, in numbers of addresses.

    total: in the ranges and not masked
    used: marked used, masked ones too
    used_masked: of those, masked
    free: in total and not used
    window: those that can be found in every order, the first 2^24
    beyond: used ones beyond the window
    digest: names the ranges; pools with the same take each other's snapshots
    """

    total: int
    used: int
    used_masked: int
    free: int
    window: int
    beyond: int
    digest: int

    @classmethod
    def read(cls, buffer: memoryview) -> "Counts":
        """What pool_counts wrote."""

        def size(at: int) -> int:
            return int.from_bytes(buffer[at : at + _SIZE_BYTES], "big")

        def number(at: int, code: str = "<I") -> int:
            value: int = struct.unpack_from(code, buffer, at)[0]
            return value

        total = size(CountsOffset.SIZE) - size(CountsOffset.MASKED)
        used = number(CountsOffset.USED)
        used_masked = number(CountsOffset.USED_MASKED)
        return cls(
            total=total,
            used=used,
            used_masked=used_masked,
            free=total - (used - used_masked),
            window=number(CountsOffset.WINDOW),
            beyond=number(CountsOffset.BEYOND),
            digest=number(CountsOffset.DIGEST, "<Q"),
        )


# By what the core answers.
CLAIMS: dict[int, Claim] = {
    1: Claim.CLAIMED,
    0: Claim.TAKEN,
    Status.OUTSIDE: Claim.OUTSIDE,
}
RELEASES: dict[int, Release] = {
    1: Release.RELEASED,
    0: Release.FREE,
    Status.OUTSIDE: Release.OUTSIDE,
}
LOADS: dict[int, Load] = {
    Status.OK: Load.LOADED,
    Status.BAD_SNAPSHOT: Load.DAMAGED,
    Status.OTHER_VERSION: Load.OTHER_VERSION,
    Status.OTHER_POOL: Load.OTHER_POOL,
}
