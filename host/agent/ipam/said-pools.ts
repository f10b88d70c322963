/**
 * Pools that no controller has looked at as they are now. Of their addresses, those of Nodes and Services may lack a
 * record: that is not none (rule known-stays). Without a Coordinator no controller is expected.
 */
import { poolsOf } from "../../ipam/pick.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { type AddDeadline, SAID_WAIT_MS, Timeout } from "../request/add-deadline.ts";
import type { PoolChanges } from "./cluster-ipam.ts";
import type { PoolInventory } from "./pool-inventory.ts";
import type { AddressDemand } from "./sources/source.ts";

type Known = Pick<Snapshot, "coordinator" | "pools">;

/** Returns the first such pool. Pools that the controller generated count as checked. */
export function findUnsaid({ coordinator, pools }: Known, among: Iterable<IpPool> = pools.values()) {
  if (coordinator === undefined) return undefined;
  for (const { name } of among) {
    const { spec, isSaid } = pools.get(name) ?? {};
    if (spec !== undefined && spec.generated === undefined && isSaid !== true) return name;
  }
  return undefined;
}

/** Whether the demand's candidates have such a pool. */
export function isUnsaid(known: Known, { nics }: Pick<AddressDemand, "nics">): boolean {
  const among = nics.flatMap(({ families }) => families.flatMap(poolsOf));
  return findUnsaid(known, among) !== undefined;
}

/** For a pod without an address, and for a bounded time: without a controller, NICs that can probe are served. */
export async function untilSaid(
  { inventory, poolChanges }: { readonly inventory: PoolInventory; readonly poolChanges: PoolChanges },
  demand: AddressDemand,
  deadline: AddDeadline,
): Promise<void> {
  const timeout = new Timeout(deadline.clock, SAID_WAIT_MS);
  if ((await inventory.registry.findOwner(demand.claimant.owner)).length > 0) return;
  while (isUnsaid(inventory.snapshot, demand)) {
    const wait = { since: poolChanges.changeCount, withinMs: timeout.leftMs };
    if (!(await poolChanges.changed(deadline.signal, wait))) return;
  }
}
