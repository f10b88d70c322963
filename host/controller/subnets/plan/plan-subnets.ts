/**
 * How Subnets are divided into pools: which pools there are to be, and which addresses each is to have (docs/subnets.md).
 *
 * A pool that has enough keeps what it has. One that lacks some gets them from the first of its Subnets that has any; one that has had too many
 * for a while gives back those that nobody holds. What the status of a Subnet reserves for one pool no other one gets, whoever wrote it.
 */

import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import type { Family } from "../../../net/ip.ts";
import { spansOf, withoutSpans } from "../../../net/spans.ts";
import { type Application, applicationKey } from "../../../resources/fields/subnet-pool.ts";
import { MAX_POOLS_OF_SUBNET } from "../../../resources/status.ts";
import { refuseNamespace } from "../../../resources/subnet.ts";
import type { Lack, NetworkPlan, PoolTarget, SubnetsPlan, SubnetsView } from "../model.ts";
import { poolNameOf } from "../pool-names.ts";
import { type Network, openSupplies, type Supply, subnetOf } from "./capacity.ts";
import { giveBack, type IsBusy } from "./free-spans.ts";
import { isLeftFor } from "./orphaned-pools.ts";
import { keyOf, PoolState, settleClaims } from "./pool-state.ts";
import { targetOf, unchangedTarget } from "./pool-target.ts";
import { compareDemands, join, sizeOfAll, usersOf, type Wish } from "./requests.ts";
import { explainLack } from "./shortfall.ts";

/** How long a generated pool must have had more addresses than are wanted before it gives them back, unless another one lacks some: milliseconds. @limit */
export const SHRINK_AFTER_MS = 5_000;

export function planSubnets(view: SubnetsView): SubnetsPlan {
  return new Planner(view).plan();
}

class Planner {
  readonly #view: SubnetsView;
  readonly #supplies: Map<string, Supply>;
  readonly #states: PoolState[];
  readonly #byKey: Map<string, PoolState[]>;
  readonly #names: Set<string>;
  readonly #spaceLeft = new Map<string, number>();
  readonly #lacks: Lack[] = [];
  readonly #excess = new Set<string>();
  readonly #postponed = new Set<string>();
  readonly #waiting = new Set<string>();
  readonly #remove = new Set<PoolState>();
  /** Pools that stay without their workload, if it is gone. */
  readonly #left = new Set<PoolState>();
  readonly #ask = new Map<string, Application>();

  constructor(view: SubnetsView) {
    this.#view = view;
    this.#names = new Set(view.poolNames);
    const subnets = new Map(view.subnets.map((subnet) => [subnet.object.name, subnet]));
    const orphans = view.pools.filter((pool) => subnetOf(subnets, pool) === undefined);
    const others = [...view.others, ...orphans.map(({ spec }) => ({ ...spec, spans: spansOf(spec.ranges) }))];
    this.#supplies = openSupplies({ subnets: view.subnets, others });
    this.#states = view.pools.map((now) => {
      const subnet = subnetOf(subnets, now);
      const supply = subnet && this.#supplies.get(subnet.object.name);
      return new PoolState(now.object.name, now, supply, now.generated);
    });
    // The status lists no pool that is empty: it may fill at any time.
    for (const { supply, entry } of this.#states) if (supply !== undefined && entry.length === 0) supply.poolCount++;
    this.#byKey = Map.groupBy(this.#states.filter(({ isDeleting }) => !isDeleting), ({ key }) => key); // biome-ignore format: one thought
  }

  plan(): SubnetsPlan {
    this.#settle();
    const wishes = this.#view.demands.toSorted(compareDemands).map((demand) => this.#wishOf(demand));
    for (const state of this.#states) if (!state.isDeleting && !state.generated.reclaim) this.#left.add(state);
    for (const { pools } of wishes) for (const state of pools) this.#left.delete(state);
    for (const wish of wishes) this.#grow(wish);
    const users = usersOf(wishes);
    for (const wish of wishes) this.#shrink(wish, users);
    for (const wish of wishes.toReversed()) this.#describe(wish);
    this.#retire(new Set(wishes.flatMap(({ pools }) => pools)));
    return {
      ask: [...this.#ask.values()],
      networks: this.#networks(),
      remove: [...this.#remove].flatMap(({ now }) => now ?? []),
      lacks: this.#lacks,
      excess: this.#excess,
      postponed: this.#postponed,
      waiting: this.#waiting,
    };
  }

  /** Each address is one pool's, whatever has happened before; what no Subnet offers any more goes when nobody holds it. */
  #settle(): void {
    const inNetwork = Map.groupBy(this.#states, ({ supply }) => supply?.network);
    for (const [network, states] of inNetwork) {
      if (network === undefined) continue;
      const names = new Set(states.map(({ name }) => name));
      const entries = network.supplies.flatMap((supply) => [...supply.entries]);
      const foreign = entries.flatMap(([name, spans]) => (names.has(name) ? [] : [spans]));
      settleClaims(states, foreign, (state) => this.#isHeldFor(state));
    }
    for (const { entries, network } of this.#supplies.values()) {
      for (const spans of entries.values()) network.has(spans);
    }
    for (const state of this.#states) {
      state.supply?.network.has(state.ranges);
      if (state.supply !== undefined && state.isUnknown) state.supply.network.isClosed = true;
      if (!state.isDeleting && state.supply !== undefined) state.keepOnly(state.supply.offered, this.#isHeldFor(state));
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

  #isHeldFor({ now, supply }: PoolState): IsBusy {
    const { addressSpace, family } = now?.spec ?? supply?.network ?? { addressSpace: "", family: 4 as Family };
    return (address) => this.#view.isHeld(addressSpace, family, address);
  }

  #wishOf(demand: PoolDemand): Wish {
    const { application, ifName, family } = demand;
    const supplies = demand.subnets.flatMap((name) => {
      const supply = this.#supplies.get(name);
      const isOpen = supply?.network.family === family && this.#refuse(supply, application) === undefined;
      return isOpen ? [supply] : [];
    });
    // Those of a former Subnet of the name, which was another network, serve its pods no more.
    const pools = demand.subnets.flatMap((subnet) => {
      const all = this.#byKey.get(keyOf(application, ifName, family, subnet)) ?? [];
      return this.#chooseTwin(all.filter(({ supply }) => supply !== undefined || !this.#supplies.has(subnet)));
    });
    return { demand, supplies, pools };
  }

  /** Why the workload may not name the Subnet. What it has of it already it keeps. */
  #refuse({ subnet }: Supply, { namespace }: Application): string | undefined {
    return refuseNamespace(subnet.spec, namespace, this.#view.labelsOf(namespace));
  }

  /** Two controllers may have made a pool each for the same: the larger one goes on, first in the list, and the others keep what pods hold. */
  #chooseTwin(twins: readonly PoolState[]): readonly PoolState[] {
    const [first, ...others] = twins.toSorted((a, b) => b.size - a.size || (a.name < b.name ? -1 : 1));
    for (const twin of others) {
      const { size } = twin;
      const { namespace } = twin.generated.application;
      twin.keepOnly([], this.#isHeldFor(twin));
      this.#spend(namespace, twin.size - size);
    }
    return first === undefined ? [] : [first, ...others];
  }

  /** First the Subnets that have pools of it or come before, each as far as it goes. */
  #grow({ demand, supplies, pools }: Wish): void {
    const { maxPoolSize } = this.#view;
    const { namespace } = demand.application;
    const reasons = new Set<Lack["reason"]>();
    const missing = (): number => demand.count - sizeOfAll(pools);
    for (const supply of supplies) {
      if (missing() <= 0 && pools.length > 0) break;
      const state = this.#poolIn(supply, { demand, supplies, pools });
      if (state === undefined) continue;
      const most = Math.min(missing(), maxPoolSize - state.size, this.#leftIn(namespace));
      if (maxPoolSize - state.size < missing()) reasons.add("PoolTooLarge");
      if (this.#leftIn(namespace) < missing()) reasons.add("NamespaceLimit");
      if (most <= 0) continue;
      const before = state.size;
      // What is reserved for it already comes first: it is nobody else's.
      const promised = withoutSpans(state.promised, state.target);
      state.add(supply.takePromised(promised, most));
      const rest = most - (state.size - before);
      const taken = rest > 0 ? supply.take(state.target, rest, this.#isHeldFor(state)) : [];
      if (!state.add(taken)) reasons.add("TooScattered");
      this.#spend(namespace, state.size - before);
    }
    if (missing() > 0 && !supplies.some(({ network }) => network.isClosed)) {
      this.#lacks.push(explainLack(this.#view, { demand, supplies, has: sizeOfAll(pools), reasons }));
    }
  }

  /** The pool of the wish in the Subnet; a new one, or one that a former workload of the name has left. Undefined: there can be none, or need not. */
  #poolIn(supply: Supply, { demand, pools }: Wish): PoolState | undefined {
    const { name: subnet } = supply.subnet.object;
    const own = pools.find(({ generated }) => generated.subnet === subnet);
    if (own !== undefined) return own;
    // Another demand of the workload may have got one in this plan.
    const key = keyOf(demand.application, demand.ifName, demand.family, subnet);
    const made = this.#byKey.get(key)?.find((state) => state.supply === supply);
    if (made !== undefined) return join(pools, made, demand);
    if (!supply.isOpen || (pools.length > 0 && supply.free.spans.length === 0)) return undefined;
    const { application, ifName, family } = demand;
    const left = [...this.#left].find((state) => isLeftFor(state, demand, supply));
    const fate = left && this.#view.fates.get(applicationKey(left.generated.application));
    // It is asked for whose pool it was.
    if (left !== undefined && fate !== "gone" && fate !== "lives") return undefined;
    const generated = { subnet, application, interface: ifName, reclaim: demand.reclaim, wanted: 0, reason: "" };
    if (left !== undefined && fate === "gone") {
      left.generated = generated;
      this.#left.delete(left);
      this.#byKey.set(key, [left]);
      return join(pools, left, demand);
    }
    if (supply.poolCount >= MAX_POOLS_OF_SUBNET) return undefined;
    let name = "";
    for (let attempt = 0; name === "" || this.#names.has(name); attempt++) {
      name = poolNameOf({ application, ifName, family, subnet }, attempt);
    }
    const state = new PoolState(name, undefined, supply, generated);
    this.#names.add(name);
    this.#states.push(state);
    this.#byKey.set(key, [state]);
    supply.poolCount++;
    return join(pools, state, demand);
  }

  /** What all who use a pool can spare goes back, the last Subnet's first: after a while, or at once when another one lacks addresses. */
  #shrink({ pools }: Wish, usersOf: ReadonlyMap<PoolState, readonly Wish[]>): void {
    for (const state of pools.toReversed()) {
      const users = usersOf.get(state) ?? [];
      const spare = Math.min(...users.map((wish) => sizeOfAll(wish.pools) - wish.demand.count), state.size);
      if (spare <= 0 || state.now === undefined) continue;
      const { uid } = state.now.object;
      this.#excess.add(uid);
      if (this.#view.excessMs(uid) < SHRINK_AFTER_MS && !this.#isWanted(state)) {
        this.#postponed.add(uid);
        continue;
      }
      const { left, given } = giveBack(state.target, spare, this.#isHeldFor(state));
      state.target = left;
      if (given < spare) this.#waiting.add(state.name);
    }
    // The first one stays, whatever it has: it says what is lacking.
    for (const state of pools.slice(1)) {
      const isFirst = usersOf.get(state)?.some((wish) => wish.pools[0] === state) === true;
      if (state.target.length === 0 && !isFirst) this.#remove.add(state);
    }
  }

  #isWanted({ supply }: PoolState): boolean {
    return this.#lacks.some(({ demand }) =>
      demand.subnets.some((name) => this.#supplies.get(name)?.network === supply?.network),
    );
  }

  /** The first pool of a demand is to have what the others have not. */
  #describe({ demand, pools }: Wish): void {
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
  #retire(wanted: ReadonlySet<PoolState>): void {
    for (const state of this.#states) {
      if (wanted.has(state) || state.isDeleting || state.now === undefined) continue;
      const { application, reclaim } = state.generated;
      const key = applicationKey(application);
      const fate = this.#view.fates.get(key);
      if (fate === undefined) this.#ask.set(key, application);
      else if (fate === "gone" && reclaim) this.#remove.add(state);
      else if (fate === "lives") this.#wane(state);
    }
  }

  /** Its workload goes on without it, and has done so for a while: it shrinks as its pods go. */
  #wane(state: PoolState): void {
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
    for (const { network } of this.#supplies.values()) if (!networks.has(network)) networks.set(network, []);
    for (const state of this.#states) {
      if (this.#remove.has(state) && state.now === undefined) continue;
      const target = this.#remove.has(state) ? unchangedTarget(state) : targetOf(state);
      const list = networks.get(state.supply?.network) ?? [];
      networks.set(state.supply?.network, list);
      list.push(target);
    }
    return [...networks].map(([network, targets]) => ({
      subnets: network?.supplies ?? [],
      targets,
      grows: targets.some(
        ({ now, spans }) => withoutSpans(spans, now === undefined ? [] : spansOf(now.spec.ranges)).length > 0,
      ),
    }));
  }
}
