/**
 * The parts of the Subnets for which the last pass found nothing to do. Until something changes of what they were planned from, planning them again would
 * find nothing either, and is left out: in a roll-out of ten thousand workloads each pass would plan all pools for the sake of a few.
 */
import type { Labels } from "../../config/label-selector.ts";
import { isSameList } from "../../lib/same-list.ts";
import { poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { CurrentPool, NetworkPlan, SubnetsPlan, SubnetsView } from "./model.ts";
import { planSubnets } from "./plan/plan-subnets.ts";
import { splitView } from "./plan/split-view.ts";

interface RestingPart {
  readonly view: SubnetsView;
  /** Of the demands' namespaces, which a Subnet may be restricted to. */
  readonly labels: readonly Labels[];
}

/** A part that was planned. */
interface PlannedPart extends RestingPart {
  readonly networks: readonly NetworkPlan[];
  /** The plan changes nothing, and says so until its input changes: nothing in it depends on time, on addresses in use, or on what is unknown. */
  readonly isFinal: boolean;
}

export interface PartialPlan extends SubnetsPlan {
  /** Those that are not at rest. */
  readonly parts: readonly PlannedPart[];
}

export class PartsAtRest {
  /** By the UID of the part's first Subnet. */
  readonly #resting = new Map<string, RestingPart>();
  /** What all parts were planned from. */
  #common: readonly unknown[] = [];

  /** Plans all parts that are not at rest. */
  plan(view: SubnetsView): PartialPlan {
    const common = [view.maxPoolSize, view.maxPerNamespace, ...view.others, ...view.strays];
    if (!isSameList(common, this.#common)) this.#resting.clear();
    this.#common = common;
    const all = splitView(view);
    const keys = new Set(all.map(keyOf));
    for (const key of this.#resting.keys()) if (!keys.has(key)) this.#resting.delete(key);
    const awake = all.filter((part) => !this.#isAtRest(part));
    const plans = awake.map((part) => planPart(part));
    return {
      parts: plans.map(({ part }) => part),
      // A workload may have pools in several parts.
      ask: [...new Map(plans.flatMap(({ plan }) => plan.ask.map((owner) => [poolOwnerKey(owner), owner]))).values()],
      networks: plans.flatMap(({ plan }) => plan.networks),
      remove: plans.flatMap(({ plan }) => plan.remove),
      shortfalls: plans.flatMap(({ plan }) => plan.shortfalls),
      excess: union(plans.map(({ plan }) => plan.excess)),
      postponed: union(plans.map(({ plan }) => plan.postponed)),
      waiting: union(plans.map(({ plan }) => plan.waiting)),
    };
  }

  /** Nothing had to be written for the part either. */
  rest({ view, labels, isFinal }: PlannedPart): void {
    const key = keyOf(view);
    if (isFinal && key !== undefined) this.#resting.set(key, { view, labels });
  }

  #isAtRest(view: SubnetsView): boolean {
    const key = keyOf(view);
    const before = key === undefined ? undefined : this.#resting.get(key);
    if (key === undefined || before === undefined) return false;
    if (isSamePart(before, view)) return true;
    this.#resting.delete(key);
    return false;
  }
}

function keyOf({ subnets: [first] }: SubnetsView): string | undefined {
  return first?.object.uid;
}

function planPart(view: SubnetsView): { readonly part: PlannedPart; readonly plan: SubnetsPlan } {
  const labels = labelsIn(view);
  let isDecided = true;
  const watched: SubnetsView = {
    ...view,
    isHeld: (...address) => {
      isDecided = false;
      return view.isHeld(...address);
    },
    livenessOf: (application) => {
      const liveness = view.livenessOf(application);
      // A workload that is gone stays gone.
      if (liveness !== "gone") isDecided = false;
      return liveness;
    },
  };
  const plan = planSubnets(watched);
  const isQuiet =
    plan.ask.length === 0 &&
    plan.remove.length === 0 &&
    plan.shortfalls.length === 0 &&
    plan.excess.size === 0 &&
    plan.waiting.size === 0 &&
    plan.networks.every(({ grows, targets }) => !grows && targets.every(({ isChanged }) => !isChanged));
  return { plan, part: { view, labels, networks: plan.networks, isFinal: isQuiet && isDecided } };
}

function isSamePart({ view: before, labels }: RestingPart, now: SubnetsView): boolean {
  return (
    isSameList(before.subnets, now.subnets) &&
    isSameList(before.demands, now.demands) &&
    isSameList(before.pools, now.pools, isSamePool) &&
    isSameList(labels, labelsIn(now))
  );
}

/** Compares what planning reads: a status is nothing of it. */
function isSamePool({ object: a }: CurrentPool, { object: b }: CurrentPool): boolean {
  if (a === b) return true;
  return a.uid === b.uid && a.deleting === b.deleting && a.generation > 0 && a.generation === b.generation;
}

function labelsIn({ demands, labelsOf }: SubnetsView): Labels[] {
  return [...new Set(demands.map(({ application }) => application.namespace))].map(labelsOf);
}

function union<T>(sets: readonly ReadonlySet<T>[]): Set<T> {
  return new Set(sets.flatMap((set) => [...set]));
}
