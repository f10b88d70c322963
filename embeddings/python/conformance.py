"""Replays vectors (test/vectors/core/README.md), each on a fresh instance: conformance.py FILE..."""

import sys
from pathlib import Path

from berth_core import Raw


def play(raw: Raw, call: str, args: str, content: str, output: str) -> tuple[int, str]:
    """The result of a line, and as much output as the line has."""
    if call == "state":
        length = raw.state_bytes()
        return length, fnv1a64(raw.memory(0, length))
    if content != "-":
        raw.write(bytes.fromhex(content))
    result = raw.call(call, *(int(arg) for arg in args.split(",") if arg != "-"))
    return result, "-" if output == "-" else raw.read(len(output) // 2).hex()


def fnv1a64(content: bytes) -> str:
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"{value:016x}"


for file in sys.argv[1:]:
    raw, steps, found = Raw(), -1, ""  # the last line is no step
    for number, line in enumerate(Path(file).read_text("ascii").splitlines(), 1):
        if line.startswith("#"):
            continue
        call, args, content, _, output = line.split(" ")
        found = " ".join((call, args, content, *map(str, play(raw, call, args, content, output))))
        if found != line:
            sys.exit(f"{file}:{number}: {found}")
        steps += 1
    print(f"{file}: {steps} steps, {found}")
