import { describe, expect, it } from "vitest";
import {
  decodeIpPoolUsage,
  encodeIpPoolUsage,
  formatRangesHash,
  type PoolUsage,
} from "../../../host/resources/ip-pool-usage.ts";
import { openCore } from "../../world/subjects.ts";
import { range } from "../../world/values.ts";

it.each([
  ["cd3ac65e44f721b1"],
  ["436c9e40402ac2fa", "10.6.0.0-10.6.0.255"],
  ["7657a216494be9f2", "10.6.0.9", "10.6.0.1-10.6.0.4", "10.6.0.5-10.6.0.6", "10.6.0.2"],
  ["c8961642afc7c66f", "0.0.0.0-0.0.0.3", "255.255.255.250-255.255.255.255"],
  ["e1889e2562e63d70", "fd00::1-fd00::ffff", "fd00:0:0:1::-fd00:0:0:1:ffff:ffff:ffff:ffff"],
  ["6a54a39f6008fbb3", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
])("the hash %s, which API objects bear, is the digest of its ranges", (hash, ...ranges) => {
  using pool = openCore().createPool({ ranges: ranges.map(range), masked: [] });
  expect(formatRangesHash(pool.counts().digest)).toBe(hash);
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
