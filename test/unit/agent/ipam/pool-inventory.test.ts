/** Cooldowns reported to the registry: each that it does not have yet, and none twice. */
import { expect, it } from "vitest";
import { cooldownsOf, PoolInventory } from "../../../../host/agent/ipam/pool-inventory.ts";
import { PoolCache } from "../../../../host/ipam/pool-cache.ts";
import type { Cooldowns, Registry } from "../../../../host/registry/registry.ts";
import { decodedSnapshot, ipPool, openCore } from "../../../world/subjects.ts";

const blue = (cooldown?: string) => ipPool("blue", "10.0.0.0/24", cooldown === undefined ? {} : { cooldown });
const quick = decodedSnapshot(blue("5s"));
const usual = decodedSnapshot(blue());

/**
 * An inventory, and what it tells its registry from now on. `cooldowns`: those that the registry has been opened with.
 */
function openInventory(cooldowns?: Cooldowns) {
  const told: Cooldowns[] = [];
  const registry: Pick<Registry, "setCooldowns" | "readUsed"> = {
    setCooldowns: (all) => void told.push(all),
    readUsed: async () => new Uint8Array(),
  };
  return { told, inventory: new PoolInventory(new PoolCache(openCore()), registry as Registry, quick, { cooldowns }) };
}

it("a registry is told with the first snapshot", () => {
  const { told, inventory } = openInventory();
  inventory.follow(quick);
  inventory.follow(quick);
  expect(told).toEqual([cooldownsOf(quick)]);
});

it("a registry that was opened with the cooldowns of the first snapshot is told of other ones only", async () => {
  const { told, inventory } = openInventory(cooldownsOf(quick));
  inventory.follow(quick, new Set());
  expect(told).toEqual([]);
  expect(inventory.poolCache.counts("blue")?.total).toBe(254n);
  expect((await inventory.loaded()).pools.size).toBe(1);
  inventory.follow(usual);
  expect(told).toEqual([cooldownsOf(usual)]);
  expect(cooldownsOf(usual).byPool.size).toBe(0);
});
