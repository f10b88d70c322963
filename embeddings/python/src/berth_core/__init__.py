"""Berth's allocator of IP addresses, on `ipaddress`.

One WebAssembly module, the same in every language, run by Wasmtime. Open a Core, make
pools and sets in it, and drop them or leave their `with` block.
"""

from ._codec import Address, Network, Range, pack, unpack
from ._core import Core
from ._errors import CoreError, CoreStateError, CoreValueError
from ._instance import Instance, embedded
from ._outcomes import Claim, Counts, Load, Release
from ._pool import Pool
from ._range_set import RangeSet
from .abi import Policy, Status

__all__ = [
    "Address",
    "Claim",
    "Core",
    "CoreError",
    "CoreStateError",
    "CoreValueError",
    "Counts",
    "Instance",
    "Load",
    "Network",
    "Policy",
    "Pool",
    "Range",
    "RangeSet",
    "Release",
    "Status",
    "embedded",
    "pack",
    "unpack",
]
