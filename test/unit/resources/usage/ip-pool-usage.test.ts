import { describe, expect, it } from "vitest";
import {
  decodeIpPoolUsage,
  encodeIpPoolUsage,
  type PoolUsage,
} from "../../../../host/resources/usage/ip-pool-usage.ts";

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
