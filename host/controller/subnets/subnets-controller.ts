/**
 * Generates pools out of Subnets for the workloads that name them (docs/subnets.md). Each pass plans the networks that
 * have changed; a change of a workload, a pool or a Subnet starts the next one at once.
 */
import type { PoolDemand } from "../../ipam/subnet-pools.ts";
import { ApiError, isConflict, isNotFound } from "../../kubernetes/kube-api.ts";
import { type Change, valueAfter } from "../../kubernetes/mirror.ts";
import { objectPath } from "../../kubernetes/paths.ts";
import { RefusedWrite } from "../../kubernetes/refused-writes.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import type { PeriodicWorker } from "../../lib/periodic.ts";
import type { MeasuredSubnet } from "../../metrics/subnet-metrics.ts";
import { type Ip, parseIp } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import { rangeContains } from "../../net/range.ts";
import { IP_POOLS } from "../../resources/collections.ts";
import { describePoolOwner, type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { settingsOf } from "../caches.ts";
import { haveOtherAddresses } from "../claimants.ts";
import type { ControlledPool, ControlledSubnet } from "../objects.ts";
import { RECONCILE_RETRY_MS, startReconciling } from "../reconcile-loop.ts";
import { REFUSED } from "../send-refusal.ts";
import type { Claimant, Controller, ControllerDeps, Demands, Measurements, StartController } from "../types.ts";
import { type ApplyDeps, applyPlan, POOL_WRITES_AT_ONCE, type Written } from "./apply-plan.ts";
import { EndingPods } from "./ending-pods.ts";
import { LivenessCache } from "./liveness-cache.ts";
import type { CurrentPool, OwnerState, PoolTarget, SubnetsPlan, SubnetsView } from "./model.ts";
import { changedPart } from "./plan/changed-part.ts";
import { planSubnets, SHRINK_AFTER_MS } from "./plan/plan-subnets.ts";
import { releaseUnreadable } from "./release-unreadable.ts";
import { boundOf, demandSettings, faultOf, readSubnet, viewOf } from "./view.ts";
import { admitWrites } from "./write-turns.ts";

/** Shortest time between two passes that divide the Subnets, plus the time that planning took: milliseconds. */
const SUBNETS_REST_MS = 10;

/** Networks whose Subnets are divided at once. */
const NETWORKS_AT_ONCE = 4;

export const startSubnets: StartController = (deps) => new SubnetsController(deps);

const FOLLOWED = "Generated pools follow the pods of a workload that was created again";

/**
 * Longest time for which a pass waits until the watches have delivered the last one's writes: milliseconds. An earlier
 * start is safe, but with watches that are 0.3 s late 243 of 450 writes for 100 new workloads were refused, and the
 * last pool came 1.2 s later.
 */
const WATCHES_BEHIND_MS = 1_000;

const NO_DEMANDS: Demands = { demands: [], faults: [] };

class SubnetsController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #loop: PeriodicWorker;
  /** Names of the Subnets to plan in the next pass: they have changed, or are not as they should be. */
  #changed = new Set<string>();
  /** The last planned demands. */
  #demands: ReadonlySet<PoolDemand> = new Set();
  /** Writes of the last pass that the watches have not delivered yet. */
  #written: (Written & { readonly kind: "pools" | "subnets" })[] = [];
  #writtenMs = 0;
  readonly #reserved: ApplyDeps["reserved"] = new Map();
  readonly #liveness: LivenessCache;
  readonly #ending: EndingPods;
  /** Each Subnet as of its last plan, by name. */
  readonly #measured = new Map<string, MeasuredSubnet>();
  /** Start of each pool's surplus, by UID. */
  readonly #excessSinceMs = new Map<string, number>();
  /** Names of pools that wait until an address is released. */
  #waiting: ReadonlySet<string> = new Set();
  #reported: ReadonlySet<string> = new Set();
  #problems: readonly string[] = [];
  #refusals: string[] = [];
  /** Time until the first refused write may be repeated: milliseconds. */
  #restMs = Number.POSITIVE_INFINITY;
  /** Workloads whose pools the API server refused to create in the last pass. */
  #unmade: { readonly application: PoolOwner; readonly message: string }[] = [];
  /** Namespaces whose writes have had a turn (write-turns.ts). */
  readonly #served = new Set<string>();
  #planMs = 0;
  /** Writes that waited in the last pass. */
  #postponed = 0;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches, owners, clock, division } = deps;
    division.tell(undefined);
    this.#liveness = new LivenessCache(clock.nowMs);
    this.#ending = new EndingPods(() => owners.pools.ending, caches.allocations);
    this.#changeAll();
    this.#loop = startReconciling(deps, {
      failure: "Dividing the Subnets failed",
      work: () =>
        this.#reconcile().catch((error) => {
          this.#changeAll();
          throw error;
        }),
      restMs: () => Math.max(SUBNETS_REST_MS + this.#planMs, this.#postponedMs),
      follow: (wake) => {
        const changeAll = (): void => {
          this.#changeAll();
          wake();
        };
        return [
          owners.pools.subscribe(wake),
          ...[caches.reserved, caches.vendorConf, caches.coordinators].map((cache) => cache.subscribe(changeAll)),
          ...caches.apiServer.map((cache) => cache.subscribe(changeAll)),
          ...[caches.nodes, caches.services].map((cache) => cache.subscribe((change) => this.#onMachine(change))),
          caches.namespaces.subscribe(({ key }) => {
            for (const { application, subnets } of this.#demands)
              if (application.namespace === key) for (const name of subnets) this.#changed.add(name);
            wake();
          }),
          caches.pools.subscribe((change) => this.#onPool(change)),
          caches.subnets.subscribe(({ key }) => {
            this.#changed.add(key);
            wake();
          }),
          caches.allocations.subscribe((change) => this.#onAllocation(change)),
        ];
      },
    });
  }

  get problems(): readonly string[] {
    return [...this.#loop.problems, ...this.#problems];
  }

  get measurements(): Measurements {
    return { subnets: () => this.#measured.values() };
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  /** Time until waiting writes may be made: milliseconds. */
  get #postponedMs(): number {
    return this.#postponed === 0 ? 0 : this.#deps.poolWrites.waitMs(this.#postponed);
  }

  #changeAll(): void {
    const { pools, subnets } = this.#deps.caches;
    const named = [...pools.items.values()].flatMap(({ value }) => value?.spec.generated?.subnet ?? []);
    this.#changed = new Set([...subnets.items.keys(), ...named, ...this.#changed]);
  }

  /** The status changes often, and planning does not read it. */
  #onPool(change: Change<ControlledPool>): void {
    const { before } = change;
    const now = valueAfter(change);
    if (before !== undefined && now?.uid !== before.uid) this.#reserved.delete(before.uid);
    const names = [before, now].flatMap((pool) => (pool === undefined ? [] : [pool.value?.spec.generated?.subnet]));
    const isSame = before !== undefined && now !== undefined && isSamePool(before, now);
    const isAwaited = this.#written.length > 0 || names.some((name) => name !== undefined && this.#changed.has(name));
    if (isSame && !isAwaited) return;
    for (const name of names) {
      // Addresses of other owners are given to no generated pool.
      if (name === undefined) this.#changeAll();
      else this.#changed.add(name);
    }
    this.#loop.wake();
  }

  #onAllocation(change: Change<CachedAllocation>): void {
    const { kind, before } = change;
    const states = [before, valueAfter(change)];
    const strays = states.flatMap((each) => (each !== undefined && this.#isStray(each) ? each : []));
    for (const { spec } of strays) this.#changeAround(spec.ip, spec.addressSpace);
    const isFreed = kind === "gone" && this.#waiting.has(before.spec.pool);
    if (strays.length > 0 || isFreed || this.#ending.has(before)) this.#loop.wake();
  }

  /** Whether the address has left the pool that it was claimed from: another pool may have it by now. */
  #isStray({ spec: { pool: name, ip } }: CachedAllocation): boolean {
    const pool = this.#deps.caches.pools.items.get(name);
    const { generated, ranges = [] } = pool?.value?.spec ?? {};
    return pool === undefined || (generated !== undefined && !ranges.some((range) => rangeContains(range, ip)));
  }

  /** No generated pool gets an address of a Node or a Service, in whatever address space. */
  #onMachine(change: Change<Pick<Claimant, "addresses">>): void {
    if (!haveOtherAddresses(change)) return;
    const texts = [change.before, valueAfter(change)].flatMap((each) => each?.addresses ?? []);
    for (const ip of texts.flatMap((text) => parseIp(text) ?? [])) this.#changeAround(ip);
    this.#loop.wake();
  }

  /** Without an address space: in all of them. */
  #changeAround(ip: Ip, space?: string): void {
    for (const { name, value } of this.#deps.caches.subnets.items.values()) {
      if (value === undefined || !prefixContains(value.spec.subnet, ip)) continue;
      if (space === undefined || value.spec.addressSpace === space) this.#changed.add(name);
    }
  }

  async #reconcile(): Promise<number | undefined> {
    const { caches, owners, leading, poolWrites, clock } = this.#deps;
    const behindMs = this.#writtenMs + WATCHES_BEHIND_MS - clock.nowMs();
    this.#written = this.#written.filter((object) => isBehind(caches[object.kind].items.get(object.name), object));
    if (this.#written.length > 0 && behindMs > 0) return behindMs;
    this.#written = [];
    // If the feature is off, no liveness is read and all pools stay unchanged.
    const { enableSubnet } = settingsOf(caches);
    const demands = enableSubnet ? owners.pools.demands(demandSettings(caches)) : NO_DEMANDS;
    this.#liveness.expire(demands.demands.map(({ application }) => application));
    let plan = this.#plan(demands);
    if (enableSubnet && plan.ask.length > 0) {
      await this.#liveness.read(plan.ask, this.#reads, leading);
      plan = this.#plan(demands);
    }
    this.#deps.division.tell(plan.shortfalls);
    for (const name of this.#changed) this.#measured.delete(name);
    for (const { measured } of plan.networks.flatMap(({ subnets }) => subnets))
      this.#measured.set(measured.name, measured);
    this.#changed = new Set(plan.open);
    this.#refusals = [];
    this.#restMs = Number.POSITIVE_INFINITY;
    this.#unmade = [];
    this.#waiting = plan.waiting;
    const { networks, remove, held, postponed } = admitWrites(plan, poolWrites, this.#served);
    const waiting = [...held].filter((pool) => !("object" in pool) && pool.now === undefined);
    this.#postponed = postponed;
    const isRemoved = await inParallel(remove, POOL_WRITES_AT_ONCE, (pool) => this.#remove(pool));
    const deps: ApplyDeps = {
      ...this.#applyDeps,
      waitingFor: (name) => waiting.filter(({ generated }) => generated.subnet === name).length,
    };
    const isDone = await inParallel(networks, NETWORKS_AT_ONCE, (network) => applyPlan(deps, network));
    for (const [at, { subnets }] of networks.entries())
      if (isDone[at] !== true) for (const { subnet } of subnets) this.#changed.add(subnet.object.name);
    for (const { generated } of [...held, ...plan.remove]) this.#changed.add(generated.subnet);
    this.#writtenMs = clock.nowMs();
    await releaseUnreadable(this.#deps, this.#unreadable);
    this.#report(plan, demands);
    return this.#dueMs(plan, [...isRemoved, ...isDone].every(Boolean));
  }

  get #reads(): Parameters<LivenessCache["read"]>[1] {
    const { caches, owners, log, random } = this.#deps;
    return {
      readLiveness: (application, signal) => owners.pools.readLiveness(application, signal),
      readSuccession: async (application, allocations, signal) => {
        // Each time another pod comes first: one that has lost its labels is never taken over.
        const at = Math.floor(random() * allocations.length);
        const turned = [...allocations.slice(at), ...allocations.slice(0, at)];
        const found = await owners.pools.readSuccession(application, turned, signal);
        if (typeof found === "object")
          log.info({ of: describePoolOwner(found), former: application.uid, uid: found.uid }, FOLLOWED);
        return found;
      },
      boundOf: (application) => boundOf(caches, application),
    };
  }

  /** Plans the changed Subnets. `open`: names of those that must be planned again in any case. */
  #plan(all: Demands): SubnetsPlan & { readonly open: readonly string[] } {
    const { caches, clock, refused } = this.#deps;
    const beganMs = clock.nowMs();
    const pools = [...caches.pools.items.values()];
    const demands = this.#ending.addTo(all.demands, pools);
    const now = new Set(demands);
    for (const { subnets } of this.#demands.symmetricDifference(now))
      for (const name of subnets) this.#changed.add(name);
    this.#demands = now;
    const livenessOf = this.#livenessWith(all);
    const unsettled = new Set<string>();
    const part = changedPart(
      viewOf({
        ...{ caches, demands, pools },
        subnets: [...caches.subnets.items.values()].flatMap((object) => readSubnet(object) ?? []),
        livenessOf: (application) => {
          const liveness = livenessOf(application);
          // A deleted workload does not come back.
          if (liveness !== "gone") unsettled.add(poolOwnerKey(application));
          return liveness;
        },
        successorOf: (application) => this.#liveness.successorOf(application),
        excessMs: (uid) => beganMs - (this.#excessSinceMs.get(uid) ?? beganMs),
        isRefused: (name) => refused.find("subnets", objectPath(IP_POOLS, { name })) !== undefined,
      }),
      this.#changed,
    );
    const plan = planSubnets(part);
    // A plan that asks is incomplete about the pools of the asked workloads.
    if (plan.ask.length === 0)
      for (const uid of this.#excessSinceMs.keys()) if (!plan.excess.has(uid)) this.#excessSinceMs.delete(uid);
    for (const uid of plan.excess) if (!this.#excessSinceMs.has(uid)) this.#excessSinceMs.set(uid, beganMs);
    this.#planMs = clock.nowMs() - beganMs;
    const open = part.pools.filter(
      ({ object: { uid, name }, generated: { application } }) =>
        plan.excess.has(uid) || plan.waiting.has(name) || unsettled.has(poolOwnerKey(application)),
    );
    return {
      ...plan,
      open: [
        ...open.map(({ generated }) => generated.subnet),
        ...plan.shortfalls.flatMap(({ demand }) => demand.subnets),
      ],
    };
  }

  /** Lazy: few passes ask for it. */
  #livenessWith({ demands, faults }: Demands): SubnetsView["livenessOf"] {
    const read = settingsOf(this.#deps.caches).enableSubnet ? this.#liveness.all : [];
    let known: ReadonlyMap<string, OwnerState> | undefined;
    return (application) => {
      known ??= new Map([
        ...read,
        // A workload with a demand exists by definition.
        ...demands.map((demand) => [poolOwnerKey(demand.application), "alive"] as const),
        // The demands are invalid: the workload's pools stay unchanged.
        ...faults.map((fault) => [poolOwnerKey(fault.application), "unknown"] as const),
      ]);
      return known.get(poolOwnerKey(application));
    };
  }

  get #unreadable(): ControlledSubnet[] {
    return [...this.#deps.caches.subnets.items.values()].filter((object) => readSubnet(object) === undefined);
  }

  get #applyDeps(): Omit<ApplyDeps, "waitingFor"> {
    const { api, leading, caches } = this.#deps;
    return {
      api,
      leading,
      reserved: this.#reserved,
      wrote: (kind, { name, resourceVersion }) => void this.#written.push({ kind, name, resourceVersion }),
      isKnown: (pool) => caches.pools.items.has(pool),
      refused: (what, refusal, target) => this.#refuse(what, refusal, target),
    };
  }

  /** A new pool has no events: its workload gets one. */
  #refuse(what: string, refusal: ApiError, target?: PoolTarget): void {
    const sentence = `${what}: ${refusal.message}`;
    this.#refusals.push(sentence);
    const [restMs, isLasting] =
      refusal instanceof RefusedWrite ? [refusal.restMs, refusal.isLasting] : [RECONCILE_RETRY_MS, true];
    this.#restMs = Math.min(this.#restMs, restMs);
    if (target !== undefined && isLasting)
      this.#unmade.push({ application: target.generated.application, message: sentence });
  }

  /** Returns false if the write was refused. The finalizer keeps the pool until its last address is free. */
  async #remove({ object, generated }: CurrentPool): Promise<boolean> {
    const { api, leading: signal, log } = this.#deps;
    const { name, uid, resourceVersion } = object;
    const body = { preconditions: { uid, resourceVersion } };
    try {
      await api.call({ method: "DELETE", path: objectPath(IP_POOLS, { name }), body, signal });
      const of = describePoolOwner(generated.application);
      log.info({ pool: name, of }, "Deleting a generated pool that is no longer needed");
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!isConflict(error) && !isNotFound(error)) this.#refuse(`IPPool "${name}" cannot be deleted`, error);
      return false;
    }
  }

  #report({ shortfalls }: SubnetsPlan, { faults }: Demands): void {
    const reports = [
      ...shortfalls.map(({ demand: { application }, reason, message }) => ({ application, reason, message })),
      ...faults.map(({ application, message }) => ({ application, reason: "InvalidAnnotation", message })),
      ...this.#unmade.map((each) => ({ ...each, reason: REFUSED })),
    ].map((each) => ({ ...each, key: `${each.application.uid} ${each.reason} ${each.message}` }));
    for (const { application, reason, message, key } of reports) {
      if (this.#reported.has(key)) continue;
      const { kind, apiVersion, namespace, name, uid } = application;
      this.#deps.events.emit({
        regarding: { kind, apiVersion, namespace, name, uid },
        reason,
        note: message,
        type: "Warning",
        action: "Generate",
      });
    }
    this.#reported = new Set(reports.map(({ key }) => key));
    this.#problems = [
      ...this.#refusals,
      ...this.#unreadable
        .filter(({ value }) => value !== undefined)
        .map(
          (object) => `Subnet "${object.name}" assigns no addresses, because its status is invalid: ${faultOf(object)}`,
        ),
    ];
  }

  /** Returns the time until the next pass without a change: milliseconds. `isDone`: no write was refused. */
  #dueMs({ postponed }: SubnetsPlan, isDone: boolean): number | undefined {
    const now = this.#deps.clock.nowMs();
    const dues = [...postponed].map((uid) => (this.#excessSinceMs.get(uid) ?? now) + SHRINK_AFTER_MS - now);
    if (this.#refusals.length > 0) dues.push(this.#restMs);
    else if (!isDone) dues.push(RECONCILE_RETRY_MS);
    if (this.#postponed > 0) dues.push(this.#postponedMs);
    if (this.#liveness.dueMs !== undefined) dues.push(this.#liveness.dueMs);
    return dues.length === 0 ? undefined : Math.max(0, Math.min(...dues));
  }
}

/** Compares the fields that planning reads, which are none of the status. */
function isSamePool(a: ControlledPool, b: ControlledPool): boolean {
  return a.uid === b.uid && a.deleting === b.deleting && a.generation > 0 && a.generation === b.generation;
}

/** Whether the watch has yet to deliver the written object. */
function isBehind(cached: Written | undefined, { resourceVersion }: Written): boolean {
  return cached === undefined || BigInt(cached.resourceVersion) < BigInt(resourceVersion);
}
