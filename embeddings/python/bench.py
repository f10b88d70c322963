"""What Python pays per operation, as JSON lines of ns: bench.py FOLDER."""

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from ipaddress import ip_address
from pathlib import Path
from statistics import median
from typing import Any

from berth_core import Core, Policy, Pool

_WARM_UP_NS = 200_000_000
_SAMPLE_NS = 30_000_000
_SAMPLES = 9

# What a turn answers is added up here, so that none is for nothing.
total = 0

# Does so many turns and gives a number that depends on each.
Turns = Callable[[int], int]


def measure(turns: Turns) -> float:
    """The median of the samples: ns per turn."""
    count, spent, end = 1, 0, time.perf_counter_ns() + _WARM_UP_NS
    while spent < _SAMPLE_NS or time.perf_counter_ns() < end:
        if spent < _SAMPLE_NS:
            count *= 2
        spent = sample(turns, count)
    return median(sample(turns, count) / count for _ in range(_SAMPLES))


def sample(turns: Turns, count: int) -> int:
    """How long so many turns take: ns."""
    global total
    start = time.perf_counter_ns()
    total += turns(count)
    return time.perf_counter_ns() - start


def crossing(core: Core) -> Turns:
    """A call that does nothing."""

    def turns(count: int) -> int:
        live_objects = core.raw.live_objects
        return sum(live_objects() for _ in range(count))

    return turns


def forms(core: Core, pool: Pool, batch: int) -> Iterator[tuple[str, Turns, int]]:
    """Each form of taking an address and giving it back: name, turns, addresses."""
    raw, handle = core.raw, pool.handle

    def one(count: int) -> int:
        seen = 0
        for _ in range(count):
            address = pool.allocate(Policy.ROUND_ROBIN)
            assert address is not None
            pool.release(address)
            seen += address.version
        return seen

    def raw_pair(count: int) -> int:
        seen = 0
        for _ in range(count):
            seen += raw.pool_allocate_many(handle, Policy.ROUND_ROBIN, 0, 1)
            seen += raw.pool_release(handle)
        return seen

    def ordinal(count: int) -> int:
        seen = 0
        for _ in range(count):
            taken = raw.pool_allocate(handle, Policy.ROUND_ROBIN, 0)
            seen += taken + raw.pool_release_at(handle, taken)
        return seen

    def packed(count: int) -> int:
        seen = 0
        for _ in range(count):
            taken = pool.allocate_packed(batch, Policy.ROUND_ROBIN)
            seen += taken[-1] + pool.release_packed(taken)[-1]
        return seen

    yield "one", one, 1
    yield "raw", raw_pair, 1
    yield "ordinal", ordinal, 1
    yield "batch", packed, batch


def say(shape: str, form: str, **what: Any) -> None:
    line = {"runtime": "python", "shape": shape, "form": form, **what}
    print(json.dumps(line), flush=True)


def main(folder: Path) -> None:
    version = (
        f"Python {platform.python_version()}, wasmtime {metadata.version('wasmtime')}"
    )
    say("", "version", text=version)
    with Core() as core:
        say("", "call", ns=round(measure(crossing(core)), 1))
    for shape in json.loads((folder / "shapes.json").read_text(encoding="utf-8")):
        ranges = [(ip_address(a), ip_address(b)) for a, b in shape["ranges"]]
        with Core() as core, core.pool(ranges) as pool:
            loaded = pool.load((folder / shape["snapshot"]).read_bytes())
            if loaded.value != "loaded":
                sys.exit(f"{shape['snapshot']}: {loaded.value}")
            for form, turns, addresses in forms(core, pool, shape["batch"]):
                ns = measure(turns) / addresses
                say(shape["name"], form, ns=round(ns, 1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: bench.py FOLDER")
    main(Path(sys.argv[1]))
