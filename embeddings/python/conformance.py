"""Replays the vectors of a folder, each on a fresh instance: conformance.py FOLDER."""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from berth_core import Instance
from berth_core.abi import SIGNATURES

_FNV_BASIS = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_32_BITS = (1 << 32) - 1
_64_BITS = (1 << 64) - 1


class Difference(Exception):
    """Something that the core does otherwise than a vector wants."""


def replay(name: str, vector: dict[str, Any]) -> str:
    """The line of a vector that is as it wants."""
    raw = Instance.fresh()
    for number, step in enumerate(vector["steps"]):
        play(raw, f"{name}: step {number}", step)
    length, wanted = raw.state_bytes(), vector["state"]
    if length != wanted["bytes"]:
        raise Difference(f"{name}: state: {length} bytes, wanted {wanted['bytes']}")
    memory = raw.read(0, length)
    digest = fnv1a64(memory)
    if digest != wanted["fnv1a64"]:
        text = f"{name}: state: fnv1a64 {digest}, wanted {wanted['fnv1a64']}"
        raise Difference(text)
    steps = len(vector["steps"])
    return f"{name}: {steps} steps, {length} bytes, sha256 {sha256(memory).hexdigest()}"


def play(raw: Instance, place: str, step: dict[str, Any]) -> None:
    """Plays one step, and compares its result, then its output."""
    call, args = step["call"], step["args"]
    if "input" in step:
        content = bytes.fromhex(step["input"])
        raw.write(raw.exchange(len(content)), content)
    result = raw.call(call, *typed(call, args))
    what = f"{place}, {call}({', '.join(map(str, args))})"
    if result != step["result"]:
        raise Difference(f"{what}: result {result}, wanted {step['result']}")
    if "output" in step:
        output = raw.read(raw.exchange(0), len(step["output"]) // 2).hex()
        if output != step["output"]:
            raise Difference(f"{what}: output {output}, wanted {step['output']}")


def typed(call: str, args: list[int]) -> list[int]:
    """The arguments, written as i32 in the vectors, as the u32 that some of them are."""
    pairs = zip(args, SIGNATURES[call], strict=True)
    return [arg & _32_BITS if code == "I" else arg for arg, code in pairs]


def fnv1a64(content: bytes) -> str:
    """The FNV-1a hash as 16 hexadecimal digits."""
    value = _FNV_BASIS
    for byte in content:
        value = (value ^ byte) * _FNV_PRIME & _64_BITS
    return f"{value:016x}"


def main(folder: str) -> int:
    paths = sorted(Path(folder).glob("*.json"))
    try:
        if not paths:
            raise Difference(f"No vectors in {folder}")
        for path in paths:
            print(replay(path.stem, json.loads(path.read_text(encoding="utf-8"))))
    except Difference as difference:
        print(difference, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: conformance.py FOLDER")
    sys.exit(main(sys.argv[1]))
