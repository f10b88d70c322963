/** Cooldowns reported to the registry: each that it does not have yet, and none twice. */
import { expect, it } from "vitest";
import { cooldownsOf, PoolInventory } from "../../../../host/agent/ipam/pool-inventory.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import type { Cooldowns, Registry } from "../../../../host/registry/registry.ts";
import { decodedSnapshot, ipPool, openCore } from "../../../world/subjects.ts";

const blue = (cooldown?: string) => ipPool("blue", "10.0.0.0/24", cooldown === undefined ? {} : { cooldown });
const quick = decodedSnapshot(blue("5s"));
const usual = decodedSnapshot(blue());

it("a registry is told with the first snapshot, and of other ones only", async () => {
  const told: Cooldowns[] = [];
  const registry: Pick<Registry, "setCooldowns" | "readUsed"> = {
    setCooldowns: (all) => void told.push(all),
    readUsed: async () => new Uint8Array(),
  };
  const inventory = new PoolInventory(new PoolCache(openCore()), registry as Registry, quick);
  inventory.follow(quick);
  inventory.follow(quick, new Set());
  expect(told).toEqual([cooldownsOf(quick)]);
  expect(inventory.poolCache.counts("blue")?.total).toBe(254n);
  expect((await inventory.loaded()).pools.size).toBe(1);
  inventory.follow(usual);
  expect(told).toEqual([cooldownsOf(quick), cooldownsOf(usual)]);
  expect(cooldownsOf(usual).byPool.size).toBe(0);
});
