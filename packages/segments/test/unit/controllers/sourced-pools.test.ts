import { expect, it } from "vitest";
import type { Caches } from "../../../../../host/controller/types.ts";
import { leasingPool } from "../../../../../test/world/leasing-pool.ts";
import { followedSources } from "../../../controllers/sourced-pools.ts";

const PREFIX = { prefix: "10.6.0.0/24", blockSize: 28 };

function pool(name: string, spec: object = {}) {
  const value = leasingPool(name, "10.6.0.0/24", [], { spec });
  return [name, { name, value, deleting: false }] as const;
}

function check(pools: readonly unknown[], held: readonly string[]) {
  const caches = { pools: { items: new Map(pools as [string, unknown][]) } } as unknown as Caches;
  return followedSources(caches, held).map(({ key, pools }) => [key, pools.map(({ pool }) => pool.name).join(" ")]);
}

it("pools of one range share a source, and ranges without pools are followed, too", () => {
  const pools = [pool("b"), pool("a"), pool("c", { source: { range: "other" } })];
  expect(check(pools, ["held", "seg"])).toEqual([
    ["seg", "a b"],
    ["other", "c"],
    ["held", ""],
  ]);
});

it("pools of one prefix share a source in their address space", () => {
  const pools = [pool("a", { source: PREFIX }), pool("b", { source: PREFIX, addressSpace: "blue" })];
  expect(check(pools, [])).toEqual([
    ["10.6.0.0/24", "a"],
    ["10.6.0.0/24 blue", "b"],
  ]);
});
