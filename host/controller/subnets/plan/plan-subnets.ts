/**
 * How Subnets are divided into pools: which pools there are to be, and which addresses each is to have (docs/subnets.md).
 *
 * A pool that has enough keeps what it has. One that lacks some gets them from the first of its Subnets that has any; one that has had too many
 * for a while gives back those that nobody holds. What the status of a Subnet reserves for one pool no other one gets, whoever wrote it.
 */

import { spansOf, withoutSpans } from "../../../core/spans.ts";
import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import type { Family } from "../../../net/ip.ts";
import { type PoolOwner, poolOwnerKey } from "../../../resources/fields/subnet-pool.ts";
import { MAX_POOLS_OF_SUBNET } from "../../../resources/status.ts";
import { refuseNamespace } from "../../../resources/subnet.ts";
import type { NetworkPlan, PoolTarget, Shortfall, SubnetsPlan, SubnetsView } from "../model.ts";
import { poolNameOf } from "../pool-object.ts";
import { type Network, openCapacities, type SubnetCapacity, subnetOf } from "./capacity.ts";
import { giveBack, type IsBusy } from "./free-spans.ts";
import { isOrphanFor, keyOf, PlannedPool, resolveOverlaps, targetOf, unchangedTarget } from "./planned-pool.ts";
import { explainShortfall } from "./shortfall.ts";

/** How long a generated pool must have had more addresses than are wanted before it gives them back, unless another one lacks some: milliseconds. @limit */
export const SHRINK_AFTER_MS = 5_000;

export function planSubnets(view: SubnetsView): SubnetsPlan {
  return new Planner(view).plan();
}

class Planner {
  readonly #view: SubnetsView;
  readonly #capacities: Map<string, SubnetCapacity>;
  readonly #states: PlannedPool[];
  readonly #byKey: Map<string, PlannedPool[]>;
  readonly #names: Set<string>;
  readonly #spaceLeft = new Map<string, number>();
  readonly #shortfalls: Shortfall[] = [];
  readonly #excess = new Set<string>();
  readonly #postponed = new Set<string>();
  readonly #waiting = new Set<string>();
  readonly #remove = new Set<PlannedPool>();
  /** Pools that stay without their workload, if it is gone. */
  readonly #orphans = new Set<PlannedPool>();
  readonly #ask = new Map<string, PoolOwner>();

  constructor(view: SubnetsView) {
    this.#view = view;
    this.#names = new Set(view.poolNames);
    const subnets = new Map(view.subnets.map((subnet) => [subnet.object.name, subnet]));
    const orphans = view.pools.filter((pool) => subnetOf(subnets, pool) === undefined);
    const others = [...view.others, ...orphans.map(({ spec }) => ({ ...spec, spans: spansOf(spec.ranges) }))];
    this.#capacities = openCapacities({ subnets: view.subnets, others });
    this.#states = view.pools.map((now) => {
      const subnet = subnetOf(subnets, now);
      const capacity = subnet && this.#capacities.get(subnet.object.name);
      return new PlannedPool(now.object.name, now, capacity, now.generated);
    });
    // The status lists no pool that is empty: it may fill at any time.
    for (const { capacity, entry } of this.#states)
      if (capacity !== undefined && entry.length === 0) capacity.poolCount++;
    this.#byKey = Map.groupBy(
      this.#states.filter(({ isDeleting }) => !isDeleting),
      ({ key }) => key,
    );
  }

  plan(): SubnetsPlan {
    this.#resolveOverlaps();
    const requests = this.#view.demands.toSorted(compareDemands).map((demand) => this.#requestOf(demand));
    for (const state of this.#states) if (!state.isDeleting && !state.generated.reclaim) this.#orphans.add(state);
    for (const { pools } of requests) for (const state of pools) this.#orphans.delete(state);
    for (const request of requests) this.#grow(request);
    const users = usersOf(requests);
    for (const request of requests) this.#shrink(request, users);
    for (const request of requests.toReversed()) this.#describe(request);
    this.#removeUnused(new Set(requests.flatMap(({ pools }) => pools)));
    return {
      ask: [...this.#ask.values()],
      networks: this.#networks(),
      remove: [...this.#remove].flatMap(({ now }) => now ?? []),
      shortfalls: this.#shortfalls,
      excess: this.#excess,
      postponed: this.#postponed,
      waiting: this.#waiting,
    };
  }

  /** Each address is one pool's, whatever has happened before; what no Subnet offers any more goes when nobody holds it. */
  #resolveOverlaps(): void {
    const inNetwork = Map.groupBy(this.#states, ({ capacity }) => capacity?.network);
    for (const [network, states] of inNetwork) {
      if (network === undefined) continue;
      const names = new Set(states.map(({ name }) => name));
      const entries = network.capacities.flatMap((capacity) => [...capacity.entries]);
      const foreign = entries.flatMap(([name, spans]) => (names.has(name) ? [] : [spans]));
      resolveOverlaps(states, foreign, (state) => this.#isHeldFor(state));
    }
    for (const { entries, network } of this.#capacities.values()) {
      for (const spans of entries.values()) network.has(spans);
    }
    for (const state of this.#states) {
      state.capacity?.network.has(state.ranges);
      if (state.capacity !== undefined && state.isUnknown) state.capacity.network.isClosed = true;
      if (!state.isDeleting && state.capacity !== undefined)
        state.keepOnly(state.capacity.offered, this.#isHeldFor(state));
      const { namespace } = state.generated.application;
      this.#spend(namespace, state.size);
    }
  }

  #leftIn(namespace: string): number {
    const { maxPerNamespace } = this.#view;
    return this.#spaceLeft.get(namespace) ?? (maxPerNamespace === 0 ? Number.POSITIVE_INFINITY : maxPerNamespace);
  }

  /** So many addresses more of the namespace's share; fewer when below 0. */
  #spend(namespace: string, count: number): void {
    this.#spaceLeft.set(namespace, this.#leftIn(namespace) - count);
  }

  #isHeldFor({ now, capacity }: PlannedPool): IsBusy {
    const { addressSpace, family } = now?.spec ?? capacity?.network ?? { addressSpace: "", family: 4 as Family };
    return (address) => this.#view.isHeld(addressSpace, family, address);
  }

  #requestOf(demand: PoolDemand): PoolRequest {
    const { application, ifName, family } = demand;
    const capacities = demand.subnets.flatMap((name) => {
      const capacity = this.#capacities.get(name);
      const isOpen = capacity?.network.family === family && this.#refuse(capacity, application) === undefined;
      return isOpen ? [capacity] : [];
    });
    // Those of a former Subnet of the name, which was another network, serve its pods no more.
    const pools = demand.subnets.flatMap((subnet) => {
      const all = this.#byKey.get(keyOf(application, ifName, family, subnet)) ?? [];
      return this.#chooseAmongDuplicates(
        all.filter(({ capacity }) => capacity !== undefined || !this.#capacities.has(subnet)),
      );
    });
    return { demand, capacities, pools };
  }

  /** Why the workload may not name the Subnet. What it has of it already it keeps. */
  #refuse({ subnet }: SubnetCapacity, { namespace }: PoolOwner): string | undefined {
    return refuseNamespace(subnet.spec, namespace, this.#view.labelsOf(namespace));
  }

  /** Two controllers may have made a pool each for the same: the larger one goes on, first in the list, and the others keep what pods hold. */
  #chooseAmongDuplicates(duplicates: readonly PlannedPool[]): readonly PlannedPool[] {
    const [first, ...others] = duplicates.toSorted((a, b) => b.size - a.size || (a.name < b.name ? -1 : 1));
    for (const duplicate of others) {
      const { size } = duplicate;
      const { namespace } = duplicate.generated.application;
      duplicate.keepOnly([], this.#isHeldFor(duplicate));
      this.#spend(namespace, duplicate.size - size);
    }
    return first === undefined ? [] : [first, ...others];
  }

  /** First the Subnets that have pools of it or come before, each as far as it goes. */
  #grow({ demand, capacities, pools }: PoolRequest): void {
    const { maxPoolSize } = this.#view;
    const { namespace } = demand.application;
    const reasons = new Set<Shortfall["reason"]>();
    const missing = (): number => demand.count - sizeOfAll(pools);
    for (const capacity of capacities) {
      if (missing() <= 0 && pools.length > 0) break;
      const state = this.#poolIn(capacity, { demand, capacities, pools });
      if (state === undefined) continue;
      const most = Math.min(missing(), maxPoolSize - state.size, this.#leftIn(namespace));
      if (maxPoolSize - state.size < missing()) reasons.add("PoolTooLarge");
      if (this.#leftIn(namespace) < missing()) reasons.add("NamespaceLimit");
      if (most <= 0) continue;
      const before = state.size;
      // What is reserved for it already comes first: it is nobody else's.
      const promised = withoutSpans(state.promised, state.target);
      state.add(capacity.takePromised(promised, most));
      const rest = most - (state.size - before);
      const taken = rest > 0 ? capacity.take(state.target, rest, this.#isHeldFor(state)) : [];
      if (!state.add(taken)) reasons.add("TooScattered");
      this.#spend(namespace, state.size - before);
    }
    if (missing() > 0 && !capacities.some(({ network }) => network.isClosed)) {
      this.#shortfalls.push(explainShortfall(this.#view, { demand, capacities, has: sizeOfAll(pools), reasons }));
    }
  }

  /** The pool of the request in the Subnet; a new one, or one that a former workload of the name has left. Undefined: there can be none, or need not. */
  #poolIn(capacity: SubnetCapacity, { demand, pools }: PoolRequest): PlannedPool | undefined {
    const { name: subnet } = capacity.subnet.object;
    const own = pools.find(({ generated }) => generated.subnet === subnet);
    if (own !== undefined) return own;
    // Another demand of the workload may have got one in this plan.
    const key = keyOf(demand.application, demand.ifName, demand.family, subnet);
    const made = this.#byKey.get(key)?.find((state) => state.capacity === capacity);
    if (made !== undefined) return addPool(pools, made, demand);
    if (!capacity.isOpen || (pools.length > 0 && capacity.free.spans.length === 0)) return undefined;
    const { application, ifName, family } = demand;
    const left = [...this.#orphans].find((state) => isOrphanFor(state, demand, capacity));
    const liveness = left && this.#view.liveness.get(poolOwnerKey(left.generated.application));
    // It is asked for whose pool it was.
    if (left !== undefined && liveness !== "gone" && liveness !== "alive") return undefined;
    const generated = { subnet, application, interface: ifName, reclaim: demand.reclaim, wanted: 0, reason: "" };
    if (left !== undefined && liveness === "gone") {
      left.generated = generated;
      this.#orphans.delete(left);
      this.#byKey.set(key, [left]);
      return addPool(pools, left, demand);
    }
    if (capacity.poolCount >= MAX_POOLS_OF_SUBNET) return undefined;
    let name = "";
    for (let attempt = 0; name === "" || this.#names.has(name); attempt++) {
      name = poolNameOf({ application, ifName, family, subnet }, attempt);
    }
    const state = new PlannedPool(name, undefined, capacity, generated);
    this.#names.add(name);
    this.#states.push(state);
    this.#byKey.set(key, [state]);
    capacity.poolCount++;
    return addPool(pools, state, demand);
  }

  /** What all who use a pool can spare goes back, the last Subnet's first: after a while, or at once when another one lacks addresses. */
  #shrink({ pools }: PoolRequest, usersOf: ReadonlyMap<PlannedPool, readonly PoolRequest[]>): void {
    for (const state of pools.toReversed()) {
      const users = usersOf.get(state) ?? [];
      const spare = Math.min(...users.map((request) => sizeOfAll(request.pools) - request.demand.count), state.size);
      if (spare <= 0 || state.now === undefined) continue;
      const { uid } = state.now.object;
      this.#excess.add(uid);
      if (this.#view.excessMs(uid) < SHRINK_AFTER_MS && !this.#isNeeded(state)) {
        this.#postponed.add(uid);
        continue;
      }
      const { left, given } = giveBack(state.target, spare, this.#isHeldFor(state));
      state.target = left;
      if (given < spare) this.#waiting.add(state.name);
    }
    // The first one stays, whatever it has: it says what is lacking.
    for (const state of pools.slice(1)) {
      const isFirst = usersOf.get(state)?.some((request) => request.pools[0] === state) === true;
      if (state.target.length === 0 && !isFirst) this.#remove.add(state);
    }
  }

  #isNeeded({ capacity }: PlannedPool): boolean {
    return this.#shortfalls.some(({ demand }) =>
      demand.subnets.some((name) => this.#capacities.get(name)?.network === capacity?.network),
    );
  }

  /** The first pool of a demand is to have what the others have not. */
  #describe({ demand, pools }: PoolRequest): void {
    const { application, ifName, reclaim, reason } = demand;
    for (const [at, state] of pools.entries()) {
      const others = sizeOfAll(pools) - state.size;
      const wanted = at === 0 ? Math.max(0, demand.count - others) : state.size;
      const { now, generated } = state;
      const waits = now !== undefined && this.#postponed.has(now.object.uid);
      // What it is to give back in a moment is told then.
      const size = waits ? { wanted: now.generated.wanted, reason: now.generated.reason } : { wanted, reason };
      state.generated = { subnet: generated.subnet, application, interface: ifName, reclaim, ...size };
    }
  }

  /** Pools that nobody wants. */
  #removeUnused(wanted: ReadonlySet<PlannedPool>): void {
    for (const state of this.#states) {
      if (wanted.has(state) || state.isDeleting || state.now === undefined) continue;
      const { application, reclaim } = state.generated;
      const key = poolOwnerKey(application);
      const liveness = this.#view.liveness.get(key);
      if (liveness === undefined) this.#ask.set(key, application);
      else if (liveness === "gone" && reclaim) this.#remove.add(state);
      else if (liveness === "alive") this.#shrinkIdle(state);
    }
  }

  /** Its workload goes on without it, and has done so for a while: it shrinks as its pods go. */
  #shrinkIdle(state: PlannedPool): void {
    const uid = state.now?.object.uid ?? "";
    this.#excess.add(uid);
    if (this.#view.excessMs(uid) < SHRINK_AFTER_MS) {
      this.#postponed.add(uid);
      return;
    }
    state.keepOnly([], this.#isHeldFor(state));
    state.generated = { ...state.generated, wanted: 0, reason: "the workload does not ask for it any more" };
    if (state.target.length === 0) this.#remove.add(state);
    else this.#waiting.add(state.name);
  }

  #networks(): NetworkPlan[] {
    const networks = new Map<Network | undefined, PoolTarget[]>();
    for (const { network } of this.#capacities.values()) if (!networks.has(network)) networks.set(network, []);
    for (const state of this.#states) {
      if (this.#remove.has(state) && state.now === undefined) continue;
      const target = this.#remove.has(state) ? unchangedTarget(state) : targetOf(state);
      const list = networks.get(state.capacity?.network) ?? [];
      networks.set(state.capacity?.network, list);
      list.push(target);
    }
    return [...networks].map(([network, targets]) => ({
      subnets: network?.capacities ?? [],
      targets,
      grows: targets.some(
        ({ now, spans }) => withoutSpans(spans, now === undefined ? [] : spansOf(now.spec.ranges)).length > 0,
      ),
    }));
  }
}

/** A demand, the pools that serve it in the order of its Subnets, and those Subnets that can serve it. */
interface PoolRequest {
  readonly demand: PoolDemand;
  readonly capacities: readonly SubnetCapacity[];
  readonly pools: PlannedPool[];
}

/** What is there now comes before what is left of it; equal ones in the order of their names. */
function compareDemands(a: PoolDemand, b: PoolDemand): number {
  const nameOf = ({ application, ifName, family }: PoolDemand): string =>
    [application.namespace, application.name, application.kind, ifName, family].join("/");
  return Number(b.isCurrent) - Number(a.isCurrent) || (nameOf(a) < nameOf(b) ? -1 : 1);
}

/** Into the order of the demand's Subnets. */
function addPool(pools: PlannedPool[], state: PlannedPool, { subnets }: PoolDemand): PlannedPool {
  pools.push(state);
  const rank = ({ generated }: PlannedPool): number => subnets.indexOf(generated.subnet);
  pools.sort((a, b) => rank(a) - rank(b));
  return state;
}

function sizeOfAll(pools: readonly PlannedPool[]): number {
  return pools.reduce((sum, { size }) => sum + size, 0);
}

function usersOf(requests: readonly PoolRequest[]): Map<PlannedPool, PoolRequest[]> {
  const users = new Map<PlannedPool, PoolRequest[]>();
  for (const request of requests)
    for (const state of request.pools) users.set(state, [...(users.get(state) ?? []), request]);
  return users;
}
