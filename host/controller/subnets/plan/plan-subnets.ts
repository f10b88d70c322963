/**
 * Divides Subnets into pools: decides which pools should exist, and their addresses (docs/develop/subnets.md).
 *
 * A pool with enough addresses keeps them. A pool with too few gets more from the first of its Subnets that has any
 * left; a pool that has had too many for a while gives back unused ones. Addresses that the status of a Subnet reserves
 * for one pool are never given to another.
 *
 * The plan is a sequence of steps. Each returns the input of the next ones; the only state that they share is the
 * draft: pools and capacities during planning, and pools with a surplus.
 */

import { joinSpans, sizeOf, spansOf, withoutSpans } from "../../../core/spans.ts";
import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import { byName } from "../../../lib/order.ts";
import { type PoolOwner, poolOwnerKey, type SubnetPoolSpec } from "../../../resources/fields/subnet-pool.ts";
import { MAX_POOLS_OF_SUBNET } from "../../../resources/status.ts";
import { refuseNamespace } from "../../../resources/subnet.ts";
import type { Limit, Shortfall } from "../../division.ts";
import type { CurrentPool, NetworkPlan, PoolTarget, SubnetsPlan, SubnetsView } from "../model.ts";
import { poolNameOf } from "../pool-object.ts";
import { type Network, openCapacities, type SubnetCapacity } from "./capacity.ts";
import { subnetOf } from "./changed-part.ts";
import { giveBack, type HeldIn } from "./free-spans.ts";
import { grows, isOrphanFor, keyOf, PlannedPool, resolveOverlaps, targetOf, unchangedTarget } from "./planned-pool.ts";
import { explainShortfall } from "./shortfall.ts";

/** Time for which a generated pool keeps a surplus of addresses, unless another pool lacks some: milliseconds. */
export const SHRINK_AFTER_MS = 5_000;

/** A demand, its pools in the order of its Subnets, and the capacities of the Subnets that may serve it. */
interface PoolRequest {
  readonly demand: PoolDemand;
  readonly capacities: readonly SubnetCapacity[];
  readonly pools: PlannedPool[];
}

export function planSubnets(view: SubnetsView): SubnetsPlan {
  const draft = new Draft(view);
  draft.resolveOverlaps();
  draft.dropStrays();
  draft.spendAll();
  const requests = inOrder(view.demands).map((demand) => draft.requestOf(demand));
  const unserving = unusedOf(draft.pools, requests);
  const orphans = new Set(unserving.filter(({ generated }) => !generated.reclaim));
  const awaited = awaitedOf(unserving, requests, draft);
  const shortfalls = requests.flatMap((request) =>
    awaited.requests.has(request) ? [] : (grow(request, draft, orphans) ?? []),
  );
  shrink(requests, shortfalls, draft);
  for (const request of requests.toReversed()) describe(request, draft);
  const ask = removeUnused(requests, draft, awaited.pools);
  const { remove, excess, postponed, waiting } = draft;
  for (const pool of draft.pools) if (pool.keepsHeld) waiting.add(pool.name);
  return {
    ask,
    networks: networksOf(draft),
    remove: [...remove].flatMap(({ now }) => now ?? []),
    shortfalls: shortfalls.map((each) =>
      draft.isNamed(each, ...draft.returning) ? { ...each, isPassing: true } : each,
    ),
    ...{ excess, postponed, waiting },
  };
}

class Draft {
  readonly view: SubnetsView;
  /** By the Subnet's name. */
  readonly capacities: ReadonlyMap<string, SubnetCapacity>;
  readonly pools: PlannedPool[];
  readonly remove = new Set<PlannedPool>();
  /** UIDs of pools with a surplus, and of those among them that keep it until SHRINK_AFTER_MS are over. */
  readonly excess = new Set<string>();
  readonly postponed = new Set<string>();
  /** Names of pools that wait until an address is released. */
  readonly waiting = new Set<string>();
  /** Networks in which pools give addresses back. */
  readonly returning = new Set<Network>();
  /** By {@link keyOf}, without those that are being deleted. */
  readonly #byKey: Map<string, PlannedPool[]>;
  /** Names of pools that will be created. */
  readonly #created = new Set<string>();
  /** Number of further addresses that each namespace may have. */
  readonly #budgets = new Map<string, number>();

  constructor(view: SubnetsView) {
    this.view = view;
    const subnets = new Map(view.subnets.map((subnet) => [subnet.object.name, subnet]));
    const detached = view.pools.filter((pool) => subnetOf(subnets, pool) === undefined);
    const others = [...view.others, ...detached.map(({ spec }) => ({ ...spec, spans: spansOf(spec.ranges) }))];
    this.capacities = openCapacities({ subnets: view.subnets, others });
    this.pools = view.pools.map((now) => {
      const subnet = subnetOf(subnets, now);
      const capacity = subnet && this.capacities.get(subnet.object.name);
      return new PlannedPool(now.object.name, { now, capacity }, followPods(now, view));
    });
    // The status does not list an empty pool, which may get addresses at any time.
    for (const { capacity, entry } of this.pools) {
      if (capacity !== undefined && entry.length === 0) capacity.poolCount++;
    }
    this.#byKey = Map.groupBy(
      this.pools.filter(({ isDeleting }) => !isDeleting),
      ({ key }) => key,
    );
  }

  /** Leaves each address to one pool. An address that no Subnet offers any more goes unless it is in use. */
  resolveOverlaps(): void {
    for (const [network, pools] of Map.groupBy(this.pools, ({ capacity }) => capacity?.network)) {
      if (network === undefined) continue;
      const names = new Set(pools.map(({ name }) => name));
      const entries = network.capacities.flatMap((capacity) => [...capacity.entries]);
      const foreign = entries.flatMap(([name, spans]) => (names.has(name) ? [] : [spans]));
      resolveOverlaps(pools, foreign, (pool) => this.heldFor(pool));
    }
    for (const { entries, network } of this.capacities.values()) {
      for (const spans of entries.values()) network.has(spans);
    }
    for (const pool of this.pools) {
      const { capacity } = pool;
      if (capacity !== undefined) {
        if (pool.isUnknown) capacity.network.isClosed = true;
        pool.keepOnly(capacity.offered, this.heldFor(pool));
      }
    }
  }

  /**
   * Drops addresses that a pod has from another pool: it claimed them while the controller, which did not know of that
   * yet, took them back. They serve no pod of this pool.
   */
  dropStrays(): void {
    for (const pool of this.pools) {
      if (pool.capacity === undefined) continue;
      for (const holder of this.view.holdersIn(joinSpans([...pool.target, ...pool.promised]), pool.spec))
        if (holder.pool !== pool.name) pool.drop(holder.address);
    }
  }

  /** Counts the addresses of the pools for their namespaces. */
  spendAll(): void {
    for (const { generated, size } of this.pools) this.spend(generated.application.namespace, size);
  }

  requestOf(demand: PoolDemand): PoolRequest {
    const { application, ifName, family } = demand;
    const capacities = demand.subnets.flatMap((name) => {
      const capacity = this.capacities.get(name);
      const isUsable = capacity?.network.family === family && this.#isPermitted(capacity, application);
      return isUsable ? [capacity] : [];
    });
    // Pools of an earlier Subnet of the same name, which was another network, no longer serve the demand.
    const pools = demand.subnets.flatMap((subnet) => {
      const all = this.#byKey.get(keyOf(application, ifName, family, subnet)) ?? [];
      return this.#mergeDuplicates(
        all.filter(({ capacity }) => capacity !== undefined || !this.capacities.has(subnet)),
      );
    });
    return { demand, capacities, pools };
  }

  budgetOf(namespace: string): number {
    const { maxPerNamespace } = this.view;
    return this.#budgets.get(namespace) ?? (maxPerNamespace === 0 ? Number.POSITIVE_INFINITY : maxPerNamespace);
  }

  /** Takes this number of addresses from the namespace's budget; a negative count returns them. */
  spend(namespace: string, count: number): void {
    this.#budgets.set(namespace, this.budgetOf(namespace) - count);
  }

  heldFor({ spec }: PlannedPool): HeldIn {
    return (spans) => joinSpans(this.view.holdersIn(spans, spec).map(({ address: first }) => ({ first, last: first })));
  }

  /** Whether the demand names a Subnet of one of the networks. */
  isNamed({ demand }: Shortfall, ...networks: readonly (Network | undefined)[]): boolean {
    const named = demand.subnets.flatMap((name) => this.capacities.get(name)?.network ?? []);
    return named.some((network) => networks.includes(network));
  }

  find(key: string, capacity: SubnetCapacity): PlannedPool | undefined {
    return this.#byKey.get(key)?.find((pool) => pool.capacity === capacity);
  }

  setByKey(key: string, pool: PlannedPool): void {
    this.#byKey.set(key, [pool]);
  }

  create({ application, ifName, family, reclaim }: PoolDemand, capacity: SubnetCapacity): PlannedPool {
    const { name: subnet } = capacity.subnet.object;
    let name = "";
    for (let attempt = 0; name === "" || this.view.poolNames.has(name) || this.#created.has(name); attempt++) {
      name = poolNameOf({ application, ifName, family, subnet }, attempt);
    }
    const generated = { subnet, application, interface: ifName, reclaim, wanted: 0, reason: "" };
    const pool = new PlannedPool(name, { now: undefined, capacity }, generated);
    this.#created.add(name);
    this.pools.push(pool);
    this.#byKey.set(pool.key, [pool]);
    capacity.poolCount++;
    return pool;
  }

  /** A workload keeps its addresses of a Subnet that it may not name. */
  #isPermitted({ subnet }: SubnetCapacity, { namespace: name }: PoolOwner): boolean {
    const { labelsOf, closedTo } = this.view;
    return refuseNamespace(subnet.spec, { name, labels: labelsOf(name), closedTo }) === undefined;
  }

  /**
   * Two controllers may have created a pool each for the same demand: the larger one comes first and grows, the others
   * keep only addresses in use.
   */
  #mergeDuplicates(pools: readonly PlannedPool[]): readonly PlannedPool[] {
    const sorted = pools.toSorted((a, b) => b.size - a.size || byName(a, b));
    for (const pool of sorted.slice(1)) {
      const { size } = pool;
      pool.keepOnly([], this.heldFor(pool));
      this.spend(pool.generated.application.namespace, pool.size - size);
    }
    return sorted;
  }
}

/** Returns demands of current versions of workloads before those of earlier ones, then by name. */
function inOrder(demands: readonly PoolDemand[]): PoolDemand[] {
  const named = demands.map((demand) => {
    const { application, ifName, family } = demand;
    return { demand, name: `${application.namespace}/${application.name}/${application.kind}/${ifName}/${family}` };
  });
  named.sort((a, b) => Number(b.demand.isCurrent) - Number(a.demand.isCurrent) || byName(a, b));
  return named.map(({ demand }) => demand);
}

/** The pool follows the pods with its addresses to the workload that has taken them over. */
function followPods({ object, generated }: CurrentPool, view: SubnetsView): SubnetPoolSpec {
  const successor = object.deleting ? undefined : view.successorOf(generated.application);
  return successor === undefined ? generated : { ...generated, application: successor };
}

function unusedOf(pools: readonly PlannedPool[], requests: readonly PoolRequest[]): PlannedPool[] {
  const used = new Set(requests.flatMap((request) => request.pools));
  return pools.filter((pool) => !pool.isDeleting && !used.has(pool));
}

/**
 * Returns the requests that wait for a pool of an earlier workload of the same name, and these pools: some of its pods
 * run on, and may be taken over at any moment, or this is not known yet. They wait at most for SHRINK_AFTER_MS.
 */
function awaitedOf(unused: readonly PlannedPool[], requests: readonly PoolRequest[], draft: Draft) {
  const nameOf = ({ namespace, name }: PoolOwner): string => `${namespace}/${name}`;
  const reclaimed = unused.filter(({ generated }) => generated.reclaim);
  const byWorkload = Map.groupBy(reclaimed, ({ generated }) => nameOf(generated.application));
  const pools = new Set<PlannedPool>();
  const awaiting = requests.filter(({ demand, capacities, pools: own }) => {
    const former = (byWorkload.get(nameOf(demand.application)) ?? []).filter(
      (pool) => capacities.some((capacity) => isOrphanFor(pool, demand, capacity)) && mayFollow(pool, draft),
    );
    for (const pool of former) pools.add(pool);
    const isOver = ({ now }: PlannedPool): boolean => draft.view.excessMs(now?.object.uid ?? "") >= SHRINK_AFTER_MS;
    return own.length === 0 && former.some((pool) => !isOver(pool));
  });
  return { requests: new Set(awaiting), pools };
}

function mayFollow({ generated }: PlannedPool, draft: Draft): boolean {
  const state = draft.view.livenessOf(generated.application);
  return state === undefined || state === "orphaned";
}

/** Fills the pools of a request, Subnet by Subnet, each as far as possible. Returns why addresses are still missing. */
function grow(request: PoolRequest, draft: Draft, orphans: Set<PlannedPool>): Shortfall | undefined {
  const { demand, capacities, pools } = request;
  const { maxPoolSize } = draft.view;
  const { namespace } = demand.application;
  const limits = new Set<Limit>();
  const missing = (): number => demand.count - sizeOfAll(pools);
  for (const capacity of capacities) {
    if (missing() <= 0 && pools.length > 0) break;
    const pool = poolIn(capacity, request, draft, orphans);
    if (pool === undefined) continue;
    const most = Math.min(missing(), maxPoolSize - pool.size, draft.budgetOf(namespace));
    if (maxPoolSize - pool.size < missing()) limits.add("PoolTooLarge");
    if (draft.budgetOf(namespace) < missing()) limits.add("NamespaceLimit");
    if (most <= 0) continue;
    const before = pool.size;
    // Addresses that are already reserved for the pool come first: no other pool may have them.
    pool.add(capacity.takePromised(withoutSpans(pool.promised, pool.target), most));
    const rest = most - (pool.size - before);
    const taken = rest > 0 ? capacity.take(pool.target, rest, draft.heldFor(pool)) : [];
    if (!pool.add(taken)) limits.add("TooScattered");
    draft.spend(namespace, pool.size - before);
  }
  if (missing() <= 0 || capacities.some(({ network }) => network.isClosed)) return undefined;
  return explainShortfall(draft.view, { demand, capacities, pools, limits });
}

/**
 * Returns the request's pool in the Subnet: its present one, an orphan of an earlier workload of the same name, or a
 * new one. Undefined if it can have none, or needs none.
 */
function poolIn(
  capacity: SubnetCapacity,
  { demand, pools }: PoolRequest,
  draft: Draft,
  orphans: Set<PlannedPool>,
): PlannedPool | undefined {
  const { application, ifName, family, reclaim } = demand;
  const { name: subnet } = capacity.subnet.object;
  const own = pools.find(({ generated }) => generated.subnet === subnet);
  if (own !== undefined) return own;
  // Another demand of the workload may have created one in this plan.
  const key = keyOf(application, ifName, family, subnet);
  const created = draft.find(key, capacity);
  if (created !== undefined) return addPool(pools, created, demand);
  if (!capacity.isOpen || (pools.length > 0 && capacity.free.spans.length === 0)) return undefined;
  const orphan = [...orphans].find((pool) => isOrphanFor(pool, demand, capacity));
  const liveness = orphan && draft.view.livenessOf(orphan.generated.application);
  if (orphan !== undefined && (liveness === "gone" || liveness === "orphaned")) {
    orphan.generated = { subnet, application, interface: ifName, reclaim, wanted: 0, reason: "" };
    orphans.delete(orphan);
    draft.setByKey(key, orphan);
    return addPool(pools, orphan, demand);
  }
  // Whether the earlier workload is gone is still unknown: the caller must read that first.
  if (orphan !== undefined && liveness !== "alive") return undefined;
  if (capacity.poolCount >= MAX_POOLS_OF_SUBNET) return undefined;
  return addPool(pools, draft.create(demand, capacity), demand);
}

/** Inserts the pool in the order of the demand's Subnets. */
function addPool(pools: PlannedPool[], pool: PlannedPool, { subnets }: PoolDemand): PlannedPool {
  pools.push(pool);
  const rank = ({ generated }: PlannedPool): number => subnets.indexOf(generated.subnet);
  pools.sort((a, b) => rank(a) - rank(b));
  return pool;
}

function sizeOfAll(pools: readonly PlannedPool[]): number {
  return pools.reduce((sum, { size }) => sum + size, 0);
}

/** Exact, also of pools whose size is not. */
function spareOf({ pools, demand }: PoolRequest): bigint {
  return pools.reduce((sum, { usable }) => sum + sizeOf(usable), -BigInt(demand.count));
}

/** Takes back surplus, from the last Subnet first: after a while, or at once if another request is short. */
function shrink(requests: readonly PoolRequest[], shortfalls: readonly Shortfall[], draft: Draft): void {
  const { remove, excess, postponed, waiting, returning } = draft;
  const users = usersOf(requests);
  const isNeeded = ({ capacity }: PlannedPool): boolean =>
    shortfalls.some((shortfall) => draft.isNamed(shortfall, capacity?.network));
  for (const { pools } of requests) {
    for (const pool of pools.toReversed()) {
      const spares = (users.get(pool) ?? []).map((request) => spareOf(request));
      const spare = spares.reduce((least, each) => (each < least ? each : least), sizeOf(pool.usable));
      if (spare <= 0n || pool.now === undefined) continue;
      const { uid } = pool.now.object;
      excess.add(uid);
      if (draft.view.excessMs(uid) < SHRINK_AFTER_MS && !isNeeded(pool)) {
        postponed.add(uid);
        continue;
      }
      const { left, given } = giveBack(pool.target, spare, draft.heldFor(pool));
      pool.target = left;
      if (given < spare) waiting.add(pool.name);
      if (given > 0n && pool.capacity && !draft.view.isRefused(pool.name)) returning.add(pool.capacity.network);
    }
    // A request's first pool stays even if it is empty: it reports the shortfall.
    for (const pool of pools) {
      const isFirst = users.get(pool)?.some((request) => request.pools[0] === pool) === true;
      if (pool.target.length === 0 && !isFirst) remove.add(pool);
    }
  }
}

function usersOf(requests: readonly PoolRequest[]): Map<PlannedPool, PoolRequest[]> {
  const users = new Map<PlannedPool, PoolRequest[]>();
  for (const request of requests) {
    for (const pool of request.pools) users.set(pool, [...(users.get(pool) ?? []), request]);
  }
  return users;
}

/** Writes into each pool of a request its wanted size. The first one gets the part that the others lack. */
function describe({ demand, pools }: PoolRequest, { postponed }: Draft): void {
  const { application, ifName, reclaim, count, reasonIfShort = demand.reason } = demand;
  const all = sizeOfAll(pools);
  const reason = all < count ? reasonIfShort : demand.reason;
  for (const [at, pool] of pools.entries()) {
    const others = all - pool.size;
    const wanted = at === 0 ? Math.max(0, count - others) : pool.size;
    const { now, generated } = pool;
    const isPostponed = now !== undefined && postponed.has(now.object.uid);
    // A pool that keeps its surplus for now keeps its description, too.
    const size = isPostponed ? { wanted: now.generated.wanted, reason: now.generated.reason } : { wanted, reason };
    pool.generated = { subnet: generated.subnet, application, interface: ifName, reclaim, ...size };
  }
}

/** Handles pools without a request by their workloads' liveness. Returns workloads whose liveness must be read. */
function removeUnused(
  requests: readonly PoolRequest[],
  draft: Draft,
  awaited: ReadonlySet<PlannedPool>,
): readonly PoolOwner[] {
  const { remove, excess, postponed, waiting } = draft;
  const ask = new Map<string, PoolOwner>();
  const used = new Set(requests.flatMap(({ pools }) => pools));
  for (const pool of draft.pools) {
    if (used.has(pool) || pool.isDeleting || pool.now === undefined) continue;
    const { application, reclaim } = pool.generated;
    const liveness = draft.view.livenessOf(application);
    if (liveness === undefined) ask.set(poolOwnerKey(application), application);
    if (liveness === "gone" && reclaim) remove.add(pool);
    const isAwaited = liveness === "orphaned" && awaited.has(pool);
    if (liveness !== "alive" && !isAwaited) continue;
    const { uid } = pool.now.object;
    excess.add(uid);
    if (draft.view.excessMs(uid) < SHRINK_AFTER_MS) {
      postponed.add(uid);
      continue;
    }
    if (isAwaited) continue;
    // The workload has stopped naming the Subnet: the pool shrinks as its pods go.
    pool.keepOnly([], draft.heldFor(pool));
    pool.generated = { ...pool.generated, wanted: 0, reason: "the workload no longer names the Subnet" };
    if (pool.target.length === 0) remove.add(pool);
    else waiting.add(pool.name);
  }
  return [...ask.values()];
}

function networksOf({ capacities, pools, remove }: Draft): NetworkPlan[] {
  const networks = new Map<Network | undefined, PoolTarget[]>();
  for (const { network } of capacities.values()) networks.set(network, []);
  for (const pool of pools) {
    if (remove.has(pool) && pool.now === undefined) continue;
    const target = remove.has(pool) ? unchangedTarget(pool) : targetOf(pool);
    const list = networks.getOrInsertComputed(pool.capacity?.network, () => []);
    list.push(target);
  }
  return [...networks].map(([network, targets]) => ({
    subnets: network?.capacities ?? [],
    targets,
    grows: targets.some(grows),
  }));
}
