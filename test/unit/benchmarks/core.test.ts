import { describe, expect, it, test } from "vitest";
import { type Contestant, tabulate } from "../../../benchmarks/core/core.ts";
import { describePool, POOLS, usedOrdinals } from "../../../benchmarks/core/pools.ts";

describe("the used addresses", () => {
  it.each([
    ["of an empty pool are none", 0, []],
    ["of a packed pool are the first ones", 0.5, [1, 2, 3, 4, 5, 6, 7]],
    ["of a full pool leave network and broadcast address out", 1, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]],
  ])("%s", (_, fill, used) => {
    expect(usedOrdinals({ name: "", bits: 4, fill, pattern: "packed" })).toEqual(used);
  });

  it.each(POOLS)("of $name are the share that it says, with one free", (pool) => {
    const used = usedOrdinals(pool).length;
    expect(Math.abs(used / 2 ** pool.bits - pool.fill)).toBeLessThan(0.05);
    expect(used).toBeLessThan(2 ** pool.bits - 2);
  });

  it("are the same every time, and texts for the peers", () => {
    const pool = { name: "small", bits: 4, fill: 0.2, pattern: "packed" } as const;
    const wanted = { name: "small", prefix: "10.0.0.0/28", used: ["10.0.0.1", "10.0.0.2", "10.0.0.3"] };
    expect([describePool(pool), describePool(pool)]).toEqual([wanted, wanted]);
  });
});

test("of several turns the middle figure counts", () => {
  const figures = [30, 10, 20].flatMap((ns) =>
    (["core", "cilium", "host-local"] as const).map((contestant: Contestant, index) => ({
      ...{ contestant, pool: "/16 empty", ns: ns * (index + 1) },
    })),
  );
  expect(tabulate(figures).rows).toEqual([["/16 empty", "20.0", "40.0", "60.0"]]);
});
