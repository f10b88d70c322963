/** The controller's collection of addresses, run by the test: rounds and clock, or owners of retained addresses. */

import { decodeVendorConf } from "../../../host/config/vendor-conf.ts";
import { GarbageCollector } from "../../../host/controller/gc/garbage-collector.ts";
import { startNotices } from "../../../host/controller/notices/notice-controller.ts";
import { openAddressOwners } from "../../../host/controller/owners/address-owners.ts";
import { startClaimStatus } from "../../../host/controller/owners/claim-status.ts";
import type { StartController } from "../../../host/controller/types.ts";
import { openLog } from "../../../host/lib/log.ts";
import { ObjectBudget } from "../../../host/lib/object-budget.ts";
import { until } from "../waiting.ts";
import { connectClient } from "./in-process.ts";
import type { World } from "./world.ts";

/** As without a ConfigMap. */
export const GRACE_MS = 60_000;
export const NODE_LOST_MS = 600_000;

export type LabCollection = Awaited<ReturnType<typeof leadCollection>>;

/** Only the test moves its clock: the part's own timer then finds only work that was noticed. */
export async function leadCollection(world: World) {
  let aheadMs = 0;
  const clock = { nowMs: () => 1_000_000 + aheadMs, now: () => new Date() };
  let collector: GarbageCollector | undefined;
  const garbage: StartController = (deps) => {
    collector = new GarbageCollector(deps);
    return collector;
  };
  const { caches } = await world.lead({ garbage, notices: startNotices }, { deps: { clock, random: () => 0.5 } });
  return {
    /** Does the work due now, a sweep, and the work due at its end; both again after each of the times. */
    sweep: async (...afterMs: readonly number[]): Promise<void> => {
      for (const milliseconds of [0, ...afterMs]) {
        aheadMs += milliseconds;
        await collector?.checkDue();
        await collector?.sweep();
        await collector?.checkDue();
      }
    },
    /** {@link World.setNode}, until the caches know it. */
    setNode: async (name: string, ready: "True" | "Unknown"): Promise<void> => {
      await world.setNode(name, ready);
      await until(`the caches know node ${name}`, () => caches.nodes.items.get(name)?.ready === ready);
    },
    /** Resolves when the controller knows the allocation. */
    knows: (address: string) => until(`the caches have ${address}`, () => caches.allocations.items.has(address)),
  };
}

/** The controller's parts for owners of addresses, which follow the workloads of the cluster. Returns a sweep. */
export async function leadAddressOwners(world: World, settings: object = {}): Promise<() => Promise<void>> {
  const map = {
    kind: "ConfigMap",
    name: "vendor-conf",
    conf: decodeVendorConf(settings, "the test"),
    text: "",
  } as const;
  const api = await connectClient(await world.controllerKubeconfig(), "berth-controller");
  const addressOwners = openAddressOwners({
    api,
    vendorConf: { items: new Map([["vendor-conf", map]]), subscribe: () => () => {}, problems: [] },
    budget: new ObjectBudget({ totalBytes: 2 ** 30, home: "" }),
    log: openLog("lab-controller", "silent"),
    random: Math.random,
  });
  world.defer(async () => {
    await world.depose();
    await addressOwners.close();
    await api.close();
  });
  await addressOwners.synced(AbortSignal.timeout(30_000));
  let collector: GarbageCollector | undefined;
  const garbage: StartController = (deps) => {
    collector = new GarbageCollector(deps);
    return collector;
  };
  await world.lead({ claims: startClaimStatus, garbage }, { addressOwners });
  return async () => void (await collector?.sweep());
}
