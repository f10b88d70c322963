/** Writes the problems of pools, Subnets and ReservedIPs into their status, and sends an event for each new one. */
import { objectPath, statusPath } from "../../kubernetes/paths.ts";
import { RefusalsOf } from "../../kubernetes/refused-writes.ts";
import type { PeriodicWorker } from "../../lib/periodic.ts";
import { isSameList } from "../../lib/same-list.ts";
import { formatIp } from "../../net/ip.ts";
import { IP_POOLS, RESERVED_IPS, SUBNETS } from "../../resources/collections.ts";
import { API_VERSION } from "../../resources/fields/metadata.ts";
import { isEpochOpen, settingsOf } from "../caches.ts";
import { haveOtherAddresses, planRecords } from "../claimants.ts";
import type { Controlled } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { startReconciling } from "../reconcile-loop.ts";
import { REFUSED } from "../send-refusal.ts";
import type { Controller, ControllerDeps, Measurements, StartController } from "../types.ts";
import { openOtherAllocators } from "./other-allocators.ts";
import { type ConditionType, type Decision, formatSecond, isOtherThan, planConditions } from "./plan-conditions.ts";
import { type Contested, type Decisions, planDecisions } from "./plan-decisions.ts";
import { planSupplied } from "./plan-supplied.ts";

/** Shortest time between two passes over the conditions of all pools, Subnets and ReservedIPs: milliseconds. */
const CONDITIONS_REST_MS = 1_000;

/** The rest lasts at least this many times as long as the last pass. So it uses a twentieth of a processor at most. */
const CONDITIONS_REST_FACTOR = 20;

/** Shortest time between two passes over the condition `Supplied`, for which pods wait: milliseconds. */
const SUPPLIED_REST_MS = 100;

/** Time for which a pass writes before the next one plans the writes anew: milliseconds. */
const CONDITIONS_WRITING_MS = 5_000;

/** Most contested addresses that each pass tells of. */
const MAX_TOLD = 10;

/** The objects with conditions. Agents watch those that `isWatched`. */
const KINDS = [
  { kind: "IPPool", resource: IP_POOLS, cache: "pools", isWatched: true },
  { kind: "Subnet", resource: SUBNETS, cache: "subnets", isWatched: false },
  { kind: "ReservedIP", resource: RESERVED_IPS, cache: "reserved", isWatched: true },
] as const;

type Kind = (typeof KINDS)[number];

export const startConditions: StartController = (deps) => new ConditionsController(deps);

const routersIn = ({ status }: Controlled<unknown>): readonly string[] => (status.routers ?? []) as readonly string[];

class ConditionsController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #loop: PeriodicWorker;
  /** Pods wait for the condition Supplied, so it has a faster loop of its own. */
  readonly #suppliedLoop: PeriodicWorker;
  /** By UID: when this process wrote last, and the version that it replaced. */
  readonly #wrote = new Map<string, { readonly atMs: number; readonly upon: string }>();
  readonly #others: ReturnType<typeof openOtherAllocators>;
  #tookMs = 0;
  #suppliedTookMs = 0;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches, refused, division } = deps;
    this.#others = openOtherAllocators(deps, () => this.#loop.wake());
    const changed = [caches.pools, caches.subnets, caches.reserved];
    this.#loop = startReconciling(deps, {
      failure: "Writing the conditions of pools failed",
      work: () => this.#reconcile(),
      restMs: () => Math.max(CONDITIONS_REST_MS, CONDITIONS_REST_FACTOR * this.#tookMs),
      follow: (wake) => [
        ...[...changed, caches.allocations, caches.services, division].map((each) => each.subscribe(wake)),
        caches.nodes.subscribe((change) => haveOtherAddresses(change) && wake()),
      ],
    });
    this.#suppliedLoop = startReconciling(deps, {
      failure: "Writing the condition Supplied of generated pools failed",
      work: () => this.#reconcileSupplied(),
      restMs: () => Math.max(SUPPLIED_REST_MS, CONDITIONS_REST_FACTOR * this.#suppliedTookMs),
      follow: (wake) => [...changed, caches.vendorConf, division, refused].map((each) => each.subscribe(wake)),
    });
  }

  get problems(): readonly string[] {
    return [...this.#loop.problems, ...this.#suppliedLoop.problems, ...this.#others.problems];
  }

  get measurements(): Measurements {
    return { reservations: () => this.#countReservations() };
  }

  async close(): Promise<void> {
    await Promise.all([this.#loop.close(), this.#suppliedLoop.close(), this.#others.close()]);
  }

  /** Writes only conditions that have changed; the other loop writes the rest. */
  async #reconcileSupplied(): Promise<number | undefined> {
    const { caches, clock } = this.#deps;
    const beganMs = clock.nowMs();
    const supply = planSupplied(this.#supplyView());
    this.#suppliedTookMs = clock.nowMs() - beganMs;
    const refusals = new RefusalsOf();
    for (const kind of KINDS) {
      if (kind.cache === "reserved") continue;
      for (const [name, decision] of supply[kind.cache]) {
        if (clock.nowMs() - beganMs > CONDITIONS_WRITING_MS) return 0;
        const object = caches[kind.cache].items.get(name);
        if (object !== undefined && isOtherThan(decision, object.conditions))
          await refusals.attempt(() => this.#sync(kind, object, [decision]));
      }
    }
    return refusals.require();
  }

  #supplyView() {
    const { caches, refused, division } = this.#deps;
    return {
      pools: [...caches.pools.items.values()],
      subnets: [...caches.subnets.items.values()],
      shortfalls: division.shortfalls,
      isOff: !settingsOf(caches).enableSubnet,
      refusalOf: (pool: string, subnet: string) => {
        const paths = [objectPath(IP_POOLS, { name: pool }), objectPath(SUBNETS, { name: subnet })];
        return paths.map((path) => refused.find("subnets", path)?.message).find(Boolean);
      },
    };
  }

  #countReservations() {
    const counts = { kept: 0, taken: 0, unavailable: 0, expired: 0 };
    for (const { conditions } of this.#deps.caches.reserved.items.values()) {
      const holds = (type: ConditionType) => conditions.some((each) => each.type === type && each.status === "True");
      const bad = holds("ReservedInUse") ? "taken" : holds("Unavailable") ? "unavailable" : "kept";
      counts[holds("Expired") ? "expired" : bad]++;
    }
    return Object.entries(counts).map(([state, count]) => [{ state }, count] as const);
  }

  async #reconcile(): Promise<number | undefined> {
    const { clock } = this.#deps;
    const beganMs = clock.nowMs();
    const decisions = this.#planDecisions();
    let nextMs: number | undefined;
    const seen = new Set<string>();
    const refusals = new RefusalsOf();
    for (const kind of KINDS) {
      for (const object of this.#deps.caches[kind.cache].items.values()) {
        if (clock.nowMs() - beganMs > CONDITIONS_WRITING_MS) return 0;
        seen.add(object.uid);
        const found = decisions[kind.cache].get(object.name) ?? [];
        const routers = kind.cache === "pools" ? decisions.routers.get(object.name) : undefined;
        const dueMs = await refusals.attempt(() => this.#sync(kind, object, found, routers));
        if (dueMs !== undefined) nextMs = Math.min(nextMs ?? dueMs, dueMs);
      }
    }
    for (const uid of this.#wrote.keys()) if (!seen.has(uid)) this.#wrote.delete(uid);
    return refusals.require(nextMs);
  }

  #planDecisions(): Decisions {
    const { caches, clock } = this.#deps;
    const beganMs = clock.nowMs();
    const { missing, contested } = planRecords(caches);
    const unrecorded = new Set(missing.map(({ spec }) => spec.pool));
    const decisions = planDecisions({
      ...this.#supplyView(),
      reserved: [...caches.reserved.items.values()],
      ...{ contested, unrecorded, others: this.#others.ranges, isIncomplete: isEpochOpen(caches) },
      allocations: caches.allocations.items.values(),
    });
    this.#tellClaimants(decisions.contested);
    this.#tookMs = clock.nowMs() - beganMs;
    return decisions;
  }

  /** Returns when a message that is too recent may be written: milliseconds; undefined if nothing is left to write. */
  async #sync(
    kind: Kind,
    object: Controlled<unknown>,
    decisions: readonly Decision[],
    routers: readonly string[] = routersIn(object),
  ): Promise<number | undefined> {
    const { clock } = this.#deps;
    const wrote = this.#wrote.get(object.uid);
    // The watch has not brought the last write yet; its event starts the next pass. If another writer was faster, the
    // object is compared anew.
    if (decisions.length === 0 || wrote?.upon === object.resourceVersion) return undefined;
    const { conditions, observedGeneration, turnedBad, dueMs } = planConditions({
      object,
      decisions,
      now: formatSecond(clock.now()),
      sinceMs: clock.nowMs() - (wrote?.atMs ?? Number.NEGATIVE_INFINITY),
    });
    const changed = isSameList(routers, routersIn(object)) ? {} : { routers };
    if (conditions === undefined && changed.routers === undefined) return dueMs;
    if (!(await this.#write(kind, object, { observedGeneration, conditions, ...changed }))) return undefined;
    // A refusal has an event of its own (send-refusal.ts).
    for (const each of turnedBad) if (each.reason !== REFUSED) this.#sendEvent(kind, object, each);
    return undefined;
  }

  /** Returns false if the object has changed; the next pass compares it. */
  async #write(kind: Kind, object: Controlled<unknown>, status: object): Promise<boolean> {
    const { api, leading: signal, clock, poolWrites } = this.#deps;
    if (kind.isWatched) await poolWrites.awaitForStatus(signal);
    const { name, uid, resourceVersion } = object;
    // Other keys of the status belong to other writers: agents mark pools as wanted.
    const path = statusPath(kind.resource, { name });
    const body = { status };
    if (!(await patchIfSame(api, { path, uid, resourceVersion, body, signal }))) return false;
    this.#wrote.set(uid, { atMs: clock.nowMs(), upon: resourceVersion });
    return true;
  }

  /** The event does not name the pod, as the pool's condition does: Services are tenants'. */
  #tellClaimants(contested: readonly Contested[]): void {
    for (const { spec, claimant } of contested.slice(0, MAX_TOLD)) {
      const { kind, namespace, name, uid } = claimant;
      this.#deps.events.emit({
        regarding: { kind, apiVersion: "v1", namespace, name, uid },
        ...{ reason: "AddressInUse", type: "Warning", action: "Check" },
        note: `A pod has ${formatIp(spec.ip)} of IPPool "${spec.pool}", and keeps it; give the ${kind} another address`,
      });
    }
  }

  #sendEvent({ kind }: Kind, { name, uid }: Controlled<unknown>, { type, reason, message }: Decision): void {
    this.#deps.events.emit({
      regarding: { kind, apiVersion: API_VERSION, namespace: "", name, uid },
      reason: type === "Ready" ? reason : type,
      note: message,
      type: "Warning",
      action: "Check",
    });
  }
}
