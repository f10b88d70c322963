import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PoolSpace } from "../../../../host/core/pool-space.ts";
import { formatIp, parseIp } from "../../../../host/net/ip.ts";
import { parseRange, type Range } from "../../../../host/net/range.ts";
import {
  decodeIpPoolUsage,
  encodeIpPoolUsage,
  type PoolUsage,
} from "../../../../host/resources/usage/ip-pool-usage.ts";
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

const USAGE: PoolUsage = {
  rangesHash: "00ff00ff00ff00ff",
  ...{ total: 6, free: 4, bound: 1, cooling: 1, kept: 0, quarantined: 0, outside: 0, others: 0 },
  bitmap: Uint8Array.of(0b101),
};

function served(usage: PoolUsage): Record<string, unknown> {
  const metadata = { name: "blue", poolUid: "u-1", uid: "o-1", resourceVersion: "7" };
  return JSON.parse(JSON.stringify(encodeIpPoolUsage(usage, metadata)));
}

describe("IPPoolUsage", () => {
  it("comes back as it was written, with the pool that owns it", () => {
    const { usage, ...rest } = decodeIpPoolUsage(served(USAGE), "test");
    expect(rest).toEqual({ name: "blue", uid: "o-1", resourceVersion: "7", poolUid: "u-1" });
    expect({ ...usage, bitmap: [...(usage.bitmap ?? [])] }).toEqual({ ...USAGE, bitmap: [0b101] });
  });
  it("of a large pool has counts for each block, and no bitmap", () => {
    const { bitmap: _, ...counts } = USAGE;
    const large = { ...counts, freePerBlock: [4_096, 0, 12] };
    expect(decodeIpPoolUsage(served(large), "test").usage).toEqual(large);
  });
  it("is read with keys that a newer controller writes", () => {
    const object = served(USAGE);
    const later = { ...object, status: { ...USAGE, bitmap: "BQ==", later: 1 } };
    expect(decodeIpPoolUsage(later, "test").usage.total).toBe(6);
  });
  it.each([
    ["a bitmap that is no base64", { bitmap: "%%%" }, "status.bitmap"],
    ["a bitmap that is too long", { bitmap: "A".repeat(87_388) }, "status.bitmap"],
    ["a count below nothing", { free: -1 }, "status.free"],
    ["a hash of another form", { rangesHash: "blue" }, "status.rangesHash"],
    ["more free in a block than it has", { freePerBlock: [4_097] }, "status.freePerBlock[0]"],
  ])("is refused with %s", (_title, status, path) => {
    const object = { ...served(USAGE), status: { ...USAGE, bitmap: undefined, ...status } };
    expect(() => decodeIpPoolUsage(object, "test")).toThrow(expect.objectContaining({ path }));
  });
});
