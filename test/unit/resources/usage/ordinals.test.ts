import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PoolSpace } from "../../../../host/core/pool-space.ts";
import { formatIp, parseIp } from "../../../../host/net/ip.ts";
import { parseRange, type Range } from "../../../../host/net/range.ts";
import {
  findRange,
  formatHash,
  hashOfRanges,
  ordinalsOf,
  packMarked,
} from "../../../../host/resources/usage/ordinals.ts";

const space = PoolSpace.open(readFileSync("dist/core/berth-core.wasm"));

function rangesOf(...texts: string[]): Range[] {
  return texts.map((text) => parseRange(text) ?? expect.fail(`${text} is no range`));
}

const SHAPES: readonly (readonly string[])[] = [
  [],
  ["10.6.0.0-10.6.0.255"],
  ["10.6.0.9", "10.6.0.1-10.6.0.4", "10.6.0.5-10.6.0.6", "10.6.0.2"],
  ["0.0.0.0-0.0.0.3", "255.255.255.250-255.255.255.255"],
  ["fd00::1-fd00::ffff", "fd00:0:0:1::-fd00:0:0:1:ffff:ffff:ffff:ffff"],
  ["::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
];

describe("ordinals", () => {
  it.each(SHAPES)("%j %j: the hash is the core's digest of the same ranges", (...texts) => {
    const ranges = rangesOf(...texts);
    using pool = space.createPool({ ranges, masked: [] });
    expect(hashOfRanges(ordinalsOf(ranges))).toBe(formatHash(pool.counts().digest));
  });

  it.each([
    ["10.6.0.1", 0],
    ["10.6.0.6", 0],
    ["10.6.0.9", 1],
    ["10.6.0.0", -1],
    ["10.6.0.7", -1],
    ["10.6.0.10", -1],
    ["::a06:1", -1],
  ])("of %s among 10.6.0.1-10.6.0.6 and 10.6.0.9: range %s", (text, wanted) => {
    const { ranges, before } = ordinalsOf(rangesOf("10.6.0.9", "10.6.0.1-10.6.0.6"));
    expect(before).toEqual([0n, 6n]);
    expect(findRange(ranges, parseIp(text) ?? expect.fail())).toBe(wanted);
  });

  it("packs the addresses whose bits are set, and nothing for bits beyond the last one", () => {
    const ordinals = ordinalsOf(rangesOf("10.6.0.9", "10.6.0.1-10.6.0.6"));
    expect([...packMarked(ordinals, Uint8Array.of(0b1110_0001))]).toEqual([10, 6, 0, 1, 10, 6, 0, 6, 10, 6, 0, 9]);
    expect([...packMarked(ordinals, new Uint8Array())]).toEqual([]);
  });

  it("packs IPv6 addresses as sixteen bytes", () => {
    const ordinals = ordinalsOf(rangesOf("fd00::10-fd00::17"));
    const packed = packMarked(ordinals, Uint8Array.of(0b10));
    expect(packed).toHaveLength(16);
    const value = packed.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    expect(formatIp({ family: 6, value })).toBe("fd00::11");
  });
});
