import { expect, it } from "vitest";
import type { Caches } from "../../../../../host/controller/types.ts";
import { allocationName, blockClaimant } from "../../../../../host/resources/ip-allocation.ts";
import { leasingPool } from "../../../../../test/world/leasing-pool.ts";
import { ip } from "../../../../../test/world/values.ts";
import { followedSources } from "../../../controllers/sourced-pools.ts";

const PREFIX = { prefix: "10.6.0.0/24", blockSize: 28 };

function pool(name: string, spec: object = {}) {
  const value = leasingPool(name, "10.6.0.0/24", [], { spec });
  return [name, { name, value, deleting: false }] as const;
}

function claim(range: string, addressSpace = "") {
  const name = allocationName(ip("10.6.0.16"), addressSpace);
  const spec = {
    state: "Quarantined",
    node: blockClaimant(range),
    addressSpace,
    quarantine: { reason: "BlockReturned" },
  };
  return [`${range} ${name}`, { name, spec }];
}

function check(pools: readonly unknown[], claims: readonly unknown[], held: readonly string[], hasHub: boolean) {
  const items = (of: readonly unknown[]) => ({ items: new Map(of as [string, unknown][]) });
  const caches = { pools: items(pools), allocations: items(claims) } as unknown as Caches;
  const found = followedSources(caches, held, hasHub);
  return found.map(({ key, pools, claims }) => [key, pools.map(({ pool }) => pool.name).join(" "), claims.join(" ")]);
}

it("pools of one range share a source, and ranges without pools are followed, too", () => {
  const pools = [pool("b"), pool("a"), pool("c", { source: { range: "other" } })];
  expect(check(pools, [claim("seg"), claim("left")], ["held", "seg"], true)).toEqual([
    ["seg", "a b", "10.6.0.16"],
    ["other", "c", ""],
    ["held", "", ""],
    ["left", "", "10.6.0.16"],
  ]);
});

it("pools of one prefix share a source in their address space, and its claims are their own", () => {
  const pools = [pool("a", { source: PREFIX }), pool("b", { source: PREFIX, addressSpace: "blue" })];
  const claims = [claim("10.6.0.0/24"), claim("10.6.0.0/24", "blue"), claim("10.7.0.0/24")];
  expect(check(pools, claims, [], true)).toEqual([
    ["10.6.0.0/24", "a", "10.6.0.16"],
    ["10.6.0.0/24 blue", "b", "10.6.0.16.blue"],
  ]);
});

it("without a hub only pools are followed", () => expect(check([], [claim("left")], [], false)).toEqual([]));
