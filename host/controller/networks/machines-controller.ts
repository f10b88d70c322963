/**
 * Records the addresses of pools that Nodes, the API server and Services have: whoever creates the record has the
 * address, so no pod gets it. What another has already stays; both are told (conditions). The collection ends records
 * (gc).
 */
import { isConflict, isNotFound } from "../../kubernetes/kube-api.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { formatIp } from "../../net/ip.ts";
import { AllocationObjects } from "../../registry/kubernetes/allocation-objects.ts";
import { allocationName } from "../../resources/ip-allocation.ts";
import { describeWorkload } from "../../resources/member.ts";
import { type Claim, dueFor, haveOtherAddresses, planRecords } from "../claimants.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { StartController } from "../types.ts";

/** Shortest time between two passes over all claims: milliseconds. */
const RECORDS_REST_MS = 500;

/** Records that are written at once. */
const RECORDS_AT_ONCE = 4;

export const startMachines: StartController = (deps) => {
  const { api, caches, clock, log, leading: signal } = deps;
  const objects = new AllocationObjects(api);
  const terms = { lane: "background", signal } as const;
  let plan: Pick<ReturnType<typeof planRecords>, "wanted" | "problems"> = { wanted: new Set(), problems: [] };
  const write = async (claim: Claim): Promise<void> => {
    const spec = { ...claim.spec, since: clock.now().toISOString() };
    const name = allocationName(spec.ip, spec.addressSpace);
    try {
      if (!caches.allocations.items.has(name)) await objects.create(spec, terms, () => {});
      else {
        const now = await objects.get(name, terms);
        // Its version is a precondition.
        if (now === undefined || dueFor(now, [claim]) !== claim) return;
        await objects.replace(spec, now, terms);
      }
      log.info({ address: formatIp(spec.ip), pool: spec.pool }, `${describeWorkload(claim.claimant)} has an address`);
    } catch (error) {
      // The watch tells whose it is.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  };
  const record = async (): Promise<number | undefined> => {
    const { missing, ...rest } = planRecords(caches);
    plan = rest;
    const refusals = new RefusalsOf();
    await inParallel(missing, RECORDS_AT_ONCE, (claim) => refusals.attempt(() => write(claim)));
    return refusals.require(missing.length > 0 ? RECORDS_REST_MS : undefined);
  };
  const loop = startReconciling(deps, {
    failure: "Recording the addresses of pools that Nodes and Services have failed",
    work: record,
    restMs: () => RECORDS_REST_MS,
    follow: (wake) => [
      ...[caches.pools, caches.reserved, caches.services, ...caches.apiServer].map((cache) => cache.subscribe(wake)),
      caches.allocations.subscribe(({ key }) => plan.wanted.has(key) && wake()),
      caches.nodes.subscribe((change) => haveOtherAddresses(change) && wake()),
    ],
  });
  return {
    get problems() {
      return [...plan.problems, ...loop.problems];
    },
    close: () => loop.close(),
  };
};
