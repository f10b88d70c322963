/**
 * Records the addresses of pools that Nodes, the API server and Services have: the creator of the record owns the
 * address, so no pod gets it. An address with another owner stays with it; both are told (conditions). The collection
 * ends records (gc).
 */
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { formatIp } from "../../net/ip.ts";
import { describeWorkload } from "../../resources/member.ts";
import { type Claim, dueFor, haveOtherAddresses, planRecords } from "../claimants.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { StartController } from "../types.ts";
import { RECORDS_AT_ONCE, writeRecord } from "../write-record.ts";

/** Shortest time between two passes over all claims: milliseconds. */
const RECORDS_REST_MS = 500;

export const startMachines: StartController = (deps) => {
  const { caches, log } = deps;
  let plan: Pick<ReturnType<typeof planRecords>, "wanted" | "problems"> = { wanted: new Set(), problems: [] };
  const write = async (claim: Claim): Promise<void> => {
    const { ip, pool } = claim.spec;
    if (await writeRecord(deps, claim.spec, (found) => dueFor(found, [claim]) === claim))
      log.info({ address: formatIp(ip), pool }, `${describeWorkload(claim.claimant)} has an address`);
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
