/**
 * Records the addresses that workloads name for their members as soon as the workload exists: the create is the claim,
 * and the member's ADD binds the address like a retained one. An address with another owner stays with it, and the
 * workload is told. The collection ends the records (gc).
 */
import { setImmediate } from "node:timers/promises";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import { listSome } from "../../lib/describe.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import { describeWorkload } from "../../resources/member.ts";
import { hasEveryRecord } from "../caches.ts";
import { MAX_EXAMPLES } from "../examples.ts";
import { dueFor, type FixedClaim, type FixedPlan, openFixedPlan } from "../fixed-addresses.ts";
import { NamespaceShares } from "../namespace-shares.ts";
import { startReconciling } from "../reconcile-loop.ts";
import type { NamingWorkload, StartController } from "../types.ts";
import { RECORDS_AT_ONCE, writeRecord } from "../write-record.ts";

/** Shortest time between two passes over all workloads that name addresses, longer after a long one: milliseconds. */
const FIXED_REST_MS = 500;

export const startFixed: StartController = (deps) => {
  const { caches, owners, events, clock, log } = deps;
  const shares = new NamespaceShares(caches.allocations.items.values());
  /** Messages that were sent to workloads, by UID. */
  let told: ReadonlyMap<string, string> = new Map();
  let plan: FixedPlan | undefined;
  /** The work of a pass, without that of others which had their turn. */
  let workMs = 0;
  const tell = ({ kind, apiVersion, namespace, name, uid }: NamingWorkload, note: string, isRefused = false): void => {
    const regarding = { kind, apiVersion, namespace, name, uid };
    const [reason, type] = isRefused
      ? (["AddressRefused", "Warning"] as const)
      : (["AddressReserved", "Normal"] as const);
    events.emit({ regarding, reason, type, note, action: "ReserveAddress" });
  };
  const work = async (): Promise<number | undefined> => {
    if (!hasEveryRecord(caches)) return undefined;
    workMs = 0;
    plan = openFixedPlan(caches, shares);
    const { missing, refused, add } = plan;
    for (const of of owners.addresses.findNaming()) {
      await setImmediate();
      const startMs = clock.nowMs();
      add(of);
      workMs += clock.nowMs() - startMs;
    }
    const notes = [...refused].map(([of, reasons]) => {
      const note = `Not reserved: ${listSome(reasons, MAX_EXAMPLES)}`;
      if (told.get(of.uid) !== note) tell(of, note, true);
      return [of.uid, note] as const;
    });
    told = new Map(notes);
    const refusals = new RefusalsOf();
    const made = new Set<FixedClaim>();
    const write = async (claim: FixedClaim): Promise<void> => {
      if (await writeRecord(deps, claim.spec, (found) => dueFor(found, claim.spec) === "due")) made.add(claim);
    };
    await inParallel([...missing.values()], RECORDS_AT_ONCE, (claim) => refusals.attempt(() => write(claim)));
    const inOrder = [...missing.values()].filter((claim) => made.has(claim));
    for (const [of, claims] of Map.groupBy(inOrder, (claim) => claim.of)) {
      const texts = claims.map(({ text }) => text);
      log.info({ addresses: texts }, `${describeWorkload(of)} has reserved addresses`);
      tell(of, `Reserved: ${listSome(texts, MAX_EXAMPLES)}`);
    }
    return refusals.require(missing.size > 0 ? FIXED_REST_MS : undefined);
  };
  return startReconciling(deps, {
    failure: "Reserving the addresses that workloads name failed",
    work,
    restMs: () => Math.max(FIXED_REST_MS, 9 * workMs),
    follow: (wake) => [
      ...[caches.pools, caches.reserved, caches.namespaces].map((cache) => cache.subscribe(wake)),
      ...[caches.vendorConf, caches.coordinators, caches.epoch].map((cache) => cache.subscribe(wake)),
      owners.addresses.subscribe(wake),
      caches.allocations.subscribe((change) => {
        shares.apply(change);
        if (plan !== undefined && (plan.wanted.has(change.key) || plan.refused.size > 0)) wake();
      }),
    ],
  });
};
