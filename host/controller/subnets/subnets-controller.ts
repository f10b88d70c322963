/**
 * Generates pools out of Subnets for the workloads that name them (docs/subnets.md). Each pass compares all that is
 * not at rest; a change of a workload, a pool or a Subnet starts the next one at once.
 */
import * as z from "zod";
import { ApiError, isConflict, isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { collectionPath, objectPath } from "../../kubernetes/paths.ts";
import { RefusedWrite } from "../../kubernetes/refused-writes.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import type { PeriodicWorker } from "../../lib/periodic.ts";
import { IP_POOLS, SUBNETS } from "../../resources/collections.ts";
import { describePoolOwner, type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { settingsOf } from "../caches.ts";
import { IN_USE_FINALIZER } from "../finalizers/plan-finalizers.ts";
import { type ControlledPool, type ControlledSubnet, decodeControlledPool } from "../objects.ts";
import { patchIfSame } from "../patch.ts";
import { RECONCILE_RETRY_MS, startReconciling } from "../reconcile-loop.ts";
import { REFUSED } from "../send-refusal.ts";
import type { Controller, ControllerDeps, Demands, StartController } from "../types.ts";
import { type ApplyDeps, applyPlan, POOL_WRITES_AT_ONCE } from "./apply-plan.ts";
import { EndingPods } from "./ending-pods.ts";
import { LivenessCache } from "./liveness-cache.ts";
import type {
  CurrentPool,
  CurrentSubnet,
  NetworkPlan,
  OwnerState,
  PoolTarget,
  SubnetsPlan,
  SubnetsView,
} from "./model.ts";
import { OwnWrites } from "./own-writes.ts";
import { type PartialPlan, PartsAtRest } from "./parts-at-rest.ts";
import { SHRINK_AFTER_MS } from "./plan/plan-subnets.ts";
import { StrayAddresses } from "./stray-addresses.ts";
import { boundOf, demandSettings, faultOfStatus, readSubnet, viewOf } from "./view.ts";
import { WriteTurns } from "./write-turns.ts";

/** Shortest time between two passes that divide the Subnets, plus the time that planning took: milliseconds. */
const SUBNETS_REST_MS = 10;

/** Networks whose Subnets are divided at once. */
const NETWORKS_AT_ONCE = 4;

export const startSubnets: StartController = (deps) => new SubnetsController(deps);

const FOLLOWED = "Generated pools follow the pods of a workload that was created again";

const NO_DEMANDS: Demands = { demands: [], faults: [] };

class SubnetsController implements Controller {
  readonly #deps: ControllerDeps;
  readonly #loop: PeriodicWorker;
  readonly #pools = new OwnWrites<ControlledPool>();
  readonly #subnets = new OwnWrites<ControlledSubnet>();
  readonly #reserved: ApplyDeps["reserved"] = new Map();
  /** By UID: the decoded status of a Subnet, and its version. */
  readonly #read = new Map<string, { readonly version: string; readonly subnet: CurrentSubnet | undefined }>();
  readonly #parts: PartsAtRest;
  readonly #turns = new WriteTurns();
  readonly #liveness: LivenessCache;
  readonly #strays: StrayAddresses;
  readonly #ending: EndingPods;
  /** By UID of a pool: since when it has had more than is needed. */
  readonly #excessSinceMs = new Map<string, number>();
  #waiting: ReadonlySet<string> = new Set();
  #reported: ReadonlySet<string> = new Set();
  #problems: readonly string[] = [];
  #refusals: string[] = [];
  /** When the first of them may be written again: milliseconds. */
  #restMs = Number.POSITIVE_INFINITY;
  /** Workloads whose pools the API server refuses to make, in the last pass. */
  #unmade: { readonly application: PoolOwner; readonly message: string }[] = [];
  #planMs = 0;
  /** Writes that waited in the last pass. */
  #postponed = 0;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { caches, owners, clock } = deps;
    this.#parts = new PartsAtRest(clock.nowMs);
    this.#liveness = new LivenessCache(clock.nowMs);
    this.#strays = new StrayAddresses(caches);
    this.#ending = new EndingPods(() => owners.pools.ending, caches.allocations);
    const watched = [caches.reserved, caches.vendorConf, caches.coordinators, caches.namespaces];
    this.#loop = startReconciling(deps, {
      failure: "Dividing the Subnets failed",
      work: () => this.#reconcile(),
      restMs: () => Math.max(SUBNETS_REST_MS + this.#planMs, this.#postponedMs),
      follow: (wake) => [
        owners.pools.subscribe(() => {
          this.#liveness.changed();
          wake();
        }),
        ...watched.map((cache) => cache.subscribe(wake)),
        caches.pools.subscribe((change) => {
          const gone = noteGone(this.#pools, change);
          if (gone !== undefined) this.#reserved.delete(gone.uid);
          this.#strays.poolChanged(change);
          if (!isOwn(this.#pools, change) && !this.#parts.ignores(change)) wake();
        }),
        caches.subnets.subscribe((change) => {
          noteGone(this.#subnets, change);
          if (!isOwn(this.#subnets, change)) wake();
        }),
        caches.allocations.subscribe((change) => this.#onAllocation(change)),
      ],
    });
  }

  get problems(): readonly string[] {
    return [...this.#loop.problems, ...this.#problems];
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  /** When writes that wait may be made: milliseconds. */
  get #postponedMs(): number {
    return this.#postponed === 0 ? 0 : this.#deps.poolWrites.waitMs(this.#postponed);
  }

  #onAllocation(change: Change<CachedAllocation>): void {
    const { kind, before } = change;
    if (this.#strays.allocationChanged(change) || this.#ending.has(before)) this.#loop.wake();
    if (kind === "gone" && before !== undefined && this.#waiting.has(before.spec.pool)) this.#loop.wake();
  }

  async #reconcile(): Promise<number | undefined> {
    const { caches, owners, leading, poolWrites } = this.#deps;
    // If the feature is off, no liveness is read and all pools stay as they are.
    const { enableSubnet } = settingsOf(caches);
    const demands = enableSubnet ? owners.pools.demands(demandSettings(caches)) : NO_DEMANDS;
    this.#liveness.demanded(demands.demands.map(({ application }) => application));
    let plan = this.#plan(demands);
    if (enableSubnet && plan.ask.length > 0) {
      await this.#liveness.read(plan.ask, this.#reads, leading);
      plan = this.#plan(demands);
    }
    this.#refusals = [];
    this.#restMs = Number.POSITIVE_INFINITY;
    this.#unmade = [];
    this.#waiting = plan.waiting;
    const { networks, remove, waiting, postponed } = this.#turns.admit(plan, poolWrites);
    this.#postponed = postponed;
    await inParallel(remove, POOL_WRITES_AT_ONCE, (pool) => this.#remove(pool));
    const deps: ApplyDeps = { ...this.#applyDeps, waitingFor: (subnet) => waiting.get(subnet) ?? 0 };
    const idle = await inParallel([...networks.entries()], NETWORKS_AT_ONCE, async ([at, network]) => {
      const wasIdle = plan.kept.has(plan.networks[at] as NetworkPlan);
      return (wasIdle && !hasWrites(network)) || (await applyPlan(deps, network));
    });
    for (const part of plan.parts) {
      if (part.plan.networks.every((network) => idle[plan.networks.indexOf(network)])) this.#parts.rest(part);
    }
    await releaseUnreadable(this.#deps, this.#unreadable);
    this.#report(plan, demands);
    return this.#dueMs(plan);
  }

  get #reads(): Parameters<LivenessCache["read"]>[1] {
    const { caches, owners, log, random } = this.#deps;
    return {
      readLiveness: (application, signal) => owners.pools.readLiveness(application, signal),
      readSuccession: async (application, allocations, signal) => {
        // Another pod comes first each time: one that has lost its labels is never taken over.
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

  #plan(all: Demands): PartialPlan {
    const { caches, clock } = this.#deps;
    const beganMs = clock.nowMs();
    const pools = this.#pools.applyTo(caches.pools.items);
    const plan = this.#parts.plan(
      viewOf({
        caches,
        demands: this.#ending.addTo(all.demands, pools),
        livenessOf: this.#livenessWith(all),
        successorOf: (application) => this.#liveness.successorOf(application),
        pools,
        subnets: this.#readSubnets(),
        strays: this.#strays.all,
        excessMs: (uid) => beganMs - (this.#excessSinceMs.get(uid) ?? beganMs),
      }),
    );
    // A plan that asks says nothing of what it asks for.
    if (plan.ask.length === 0)
      for (const uid of this.#excessSinceMs.keys()) if (!plan.excess.has(uid)) this.#excessSinceMs.delete(uid);
    for (const uid of plan.excess) if (!this.#excessSinceMs.has(uid)) this.#excessSinceMs.set(uid, beganMs);
    this.#planMs = clock.nowMs() - beganMs;
    return plan;
  }

  /** Few passes ask for it. */
  #livenessWith({ demands, faults }: Demands): SubnetsView["livenessOf"] {
    const read = settingsOf(this.#deps.caches).enableSubnet ? this.#liveness.all : [];
    let known: ReadonlyMap<string, OwnerState> | undefined;
    return (application) => {
      known ??= new Map([
        ...read,
        // A workload with a demand exists by definition.
        ...demands.map((demand) => [poolOwnerKey(demand.application), "alive"] as const),
        // The demands are invalid: the workload's pools stay as they are.
        ...faults.map((fault) => [poolOwnerKey(fault.application), "unknown"] as const),
      ]);
      return known.get(poolOwnerKey(application));
    };
  }

  /** Decodes each status once per version: it may list many pools. */
  #readSubnets(): CurrentSubnet[] {
    const objects = this.#subnets.applyTo(this.#deps.caches.subnets.items);
    const uids = new Set(objects.map(({ uid }) => uid));
    for (const uid of this.#read.keys()) if (!uids.has(uid)) this.#read.delete(uid);
    return objects.flatMap((object) => {
      const known = this.#read.get(object.uid);
      if (known?.version === object.resourceVersion) return known.subnet ?? [];
      const subnet = readSubnet(object);
      this.#read.set(object.uid, { version: object.resourceVersion, subnet });
      return subnet ?? [];
    });
  }

  /** As of the last {@link SubnetsController.#readSubnets}. */
  get #unreadable(): ControlledSubnet[] {
    const all = [...this.#deps.caches.subnets.items.values()];
    return all.filter(({ uid }) => this.#read.get(uid)?.subnet === undefined);
  }

  get #applyDeps(): Omit<ApplyDeps, "waitingFor"> {
    const { api, leading, caches } = this.#deps;
    return {
      api,
      leading,
      pools: this.#pools,
      reserved: this.#reserved,
      wroteSubnet: (before, now) => {
        this.#subnets.wrote(before.object, now.object);
        this.#read.set(now.object.uid, { version: now.object.resourceVersion, subnet: now });
      },
      forgetSubnet: (name) => this.#subnets.forget(name),
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

  /** The finalizer keeps the pool until its last address is free. */
  async #remove({ object, generated }: CurrentPool): Promise<void> {
    const { api, leading: signal, log } = this.#deps;
    const { name, uid, resourceVersion } = object;
    const body = { preconditions: { uid, resourceVersion } };
    try {
      const answer = await api.call({ method: "DELETE", path: objectPath(IP_POOLS, { name }), body, signal });
      if (answer.kind === "IPPool") this.#pools.wrote(object, decodeControlledPool(answer));
      const of = describePoolOwner(generated.application);
      log.info({ pool: name, of }, "Deleting a generated pool that is no longer needed");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!isConflict(error) && !isNotFound(error)) this.#refuse(`IPPool "${name}" cannot be deleted`, error);
      this.#pools.forget(name);
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
      ...this.#unreadable.flatMap((object) => {
        const fault = faultOfStatus(object);
        return fault === undefined
          ? []
          : [`Subnet "${object.name}" assigns no addresses, because its status is invalid: ${fault}`];
      }),
    ];
  }

  /**
   * Returns when the next pass is due if nothing changes: milliseconds. At once after a write: there may be more to do,
   * and else the parts are found to be at rest.
   */
  #dueMs({ postponed }: SubnetsPlan): number | undefined {
    if (this.#pools.hasWritten || this.#subnets.hasWritten) return 0;
    const now = this.#deps.clock.nowMs();
    const dues = [...postponed].map((uid) => (this.#excessSinceMs.get(uid) ?? now) + SHRINK_AFTER_MS - now);
    if (this.#refusals.length > 0) dues.push(this.#restMs);
    if (this.#postponed > 0) dues.push(this.#postponedMs);
    if (this.#liveness.dueMs !== undefined) dues.push(this.#liveness.dueMs);
    return dues.length === 0 ? undefined : Math.max(0, Math.min(...dues));
  }
}

function hasWrites({ targets }: NetworkPlan): boolean {
  return targets.some(({ now, isChanged }) => now === undefined || isChanged);
}

/** Own writes wake nobody: the pass that has made them is followed by another one. */
function isOwn<T extends { name: string; uid: string; resourceVersion: string }>(
  writes: OwnWrites<T>,
  change: Change<T>,
): boolean {
  return change.kind === "set" && writes.isOwn(change.value);
}

/** Returns the object that is gone, if one is. Covers also an object that was recreated under its name. */
function noteGone<T extends { name: string; uid: string; resourceVersion: string }>(
  writes: OwnWrites<T>,
  change: Change<T>,
): T | undefined {
  const { before } = change;
  if (before === undefined || (change.kind === "set" && change.value.uid === before.uid)) return undefined;
  writes.gone(before);
  return before;
}

/** All that matters of a pool, which may be invalid itself. */
const generatedPool = z.object({ spec: z.object({ generated: z.object({ subnet: z.string() }) }) });

/**
 * Removes the finalizer from deleted Subnets without generated pools. Reads the API server, and only if there is such
 * a Subnet.
 */
export async function releaseUnreadable(
  { api, leading: signal }: { readonly api: KubeApi; readonly leading: AbortSignal },
  unreadable: readonly ControlledSubnet[],
): Promise<void> {
  const leaving = unreadable.filter(({ deleting, finalizers }) => deleting && finalizers.includes(IN_USE_FINALIZER));
  if (leaving.length === 0) return;
  const used = await usedSubnets(api, signal);
  for (const { name, uid, resourceVersion, finalizers } of leaving.filter((subnet) => !used.has(subnet.name))) {
    const body = { metadata: { finalizers: finalizers.filter((each) => each !== IN_USE_FINALIZER) } };
    await patchIfSame(api, { path: objectPath(SUBNETS, { name }), uid, resourceVersion, body, signal });
  }
}

/** Returns the names of the Subnets that have generated pools. */
async function usedSubnets(api: KubeApi, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const used = new Set<string>();
  for await (const { items } of listPages(api, { path: collectionPath(IP_POOLS), signal })) {
    for (const item of items) {
      const { data } = generatedPool.safeParse(item);
      if (data !== undefined) used.add(data.spec.generated.subnet);
    }
  }
  return used;
}
