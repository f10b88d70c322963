/**
 * The parts of the Subnets for which the last pass had nothing to do, or only new pools whose turn had not come
 * (write-turns.ts). Until something changes of what they were planned from, planning them again would find the same,
 * and is left out: in a roll-out of ten thousand workloads each pass would plan all pools for the sake of a few.
 */
import type { Labels } from "../../config/label-selector.ts";
import type { Change } from "../../kubernetes/mirror.ts";
import { isSameList } from "../../lib/same-list.ts";
import { poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import type { ControlledPool } from "../objects.ts";
import type { NetworkPlan, SubnetsPlan, SubnetsView } from "./model.ts";
import { planSubnets } from "./plan/plan-subnets.ts";
import { splitView } from "./plan/split-view.ts";

/**
 * For how long a plan is kept whose new pools wait: one of the addresses that they are to get may be in use by then.
 * Milliseconds.
 */
export const WAITING_PLAN_MS = 5_000;

/** A part that was planned. */
interface PlannedPart {
  readonly view: SubnetsView;
  /** Labels of the demands' namespaces, which a Subnet may be restricted to. */
  readonly labels: readonly Labels[];
  readonly plan: SubnetsPlan;
  readonly plannedMs: number;
  /**
   * The plan changes nothing, and says so until its input changes: nothing in it depends on time, on addresses in
   * use, or on what is unknown.
   */
  readonly isFinal: boolean;
  /**
   * The plan changes nothing but that it makes pools, and says so until its input changes, or one of their addresses
   * is used.
   */
  readonly onlyCreates: boolean;
}

export interface PartialPlan extends SubnetsPlan {
  /** The parts that are not at rest. */
  readonly parts: readonly PlannedPart[];
  /** The plans among those that come from an earlier pass, which had nothing to write for them. */
  readonly kept: ReadonlySet<NetworkPlan>;
}

const NO_PLAN: SubnetsPlan = {
  ...{ ask: [], networks: [], remove: [], shortfalls: [] },
  ...{ excess: new Set(), postponed: new Set(), waiting: new Set() },
};

export class PartsAtRest {
  readonly #nowMs: () => number;
  /** By the UID of the part's first Subnet. */
  readonly #resting = new Map<string, PlannedPart>();
  /** The values from which all parts were planned. */
  #common: readonly unknown[] = [];

  /** `nowMs`: monotonic, milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Plans all parts that are not at rest. */
  plan(view: SubnetsView): PartialPlan {
    const common = [view.closedTo, view.maxPoolSize, view.maxPerNamespace, ...view.others, ...view.strays];
    if (!isSameList(common, this.#common)) this.#resting.clear();
    this.#common = common;
    const all = splitView(view);
    const keys = new Set(all.map(keyOf));
    for (const key of this.#resting.keys()) if (!keys.has(key)) this.#resting.delete(key);
    const before = new Map(all.map((part) => [part, this.#find(part)]));
    const awake = all.filter((part) => before.get(part)?.isFinal !== true);
    const parts = awake.map((part) => before.get(part) ?? this.#planPart(part));
    const plans = parts.map(({ plan }) => plan);
    return {
      parts,
      kept: new Set(awake.flatMap((part) => before.get(part)?.plan.networks ?? [])),
      // A workload may have pools in several parts.
      ask: [...new Map(plans.flatMap(({ ask }) => ask.map((owner) => [poolOwnerKey(owner), owner]))).values()],
      networks: plans.flatMap(({ networks }) => networks),
      remove: plans.flatMap(({ remove }) => remove),
      shortfalls: plans.flatMap(({ shortfalls }) => shortfalls),
      excess: union(plans.map(({ excess }) => excess)),
      postponed: union(plans.map(({ postponed }) => postponed)),
      waiting: union(plans.map(({ waiting }) => waiting)),
    };
  }

  /**
   * Whether a pass would find nothing new: the pool's part is at rest, and planning reads nothing of what has
   * changed. A status is written often.
   */
  ignores(change: Change<ControlledPool>): boolean {
    if (change.kind === "gone" || change.before === undefined) return false;
    const { generated } = change.value.value?.spec ?? {};
    return generated !== undefined && isSamePool(change.before, change.value) && this.#rests(generated.subnet);
  }

  #rests(subnet: string): boolean {
    return this.#resting
      .values()
      .some(({ isFinal, view }) => isFinal && view.subnets.some(({ object }) => object.name === subnet));
  }

  /** Nothing was written for the part: there was nothing to write, or its turn had not come. */
  rest(part: PlannedPart): void {
    const key = keyOf(part.view);
    if (key === undefined) return;
    // The plan of very many pools takes as much memory as they do, and a final one is not asked for again.
    if (part.isFinal) this.#resting.set(key, { ...part, plan: NO_PLAN });
    else if (part.onlyCreates) this.#resting.set(key, part);
  }

  /** Returns the part as it was planned, if planning it again would find the same. */
  #find(view: SubnetsView): PlannedPart | undefined {
    const key = keyOf(view);
    const before = key === undefined ? undefined : this.#resting.get(key);
    if (key === undefined || before === undefined) return undefined;
    const isNew = before.isFinal || this.#nowMs() - before.plannedMs < WAITING_PLAN_MS;
    if (isNew && isSamePart(before, view)) {
      // Some of the waiting writes may be made now.
      if (!before.isFinal) this.#resting.delete(key);
      return before;
    }
    this.#resting.delete(key);
    return undefined;
  }

  #planPart(view: SubnetsView): PlannedPart {
    const plannedMs = this.#nowMs();
    const labels = labelsIn(view);
    let asksAddress = false;
    let asksWorkload = false;
    const plan = planSubnets({
      ...view,
      isHeld: (...address) => {
        asksAddress = true;
        return view.isHeld(...address);
      },
      livenessOf: (application) => {
        const liveness = view.livenessOf(application);
        // A workload that is gone stays gone.
        if (liveness !== "gone") asksWorkload = true;
        return liveness;
      },
    });
    const isQuiet =
      plan.ask.length === 0 &&
      plan.remove.length === 0 &&
      plan.shortfalls.length === 0 &&
      plan.excess.size === 0 &&
      plan.waiting.size === 0 &&
      !asksWorkload;
    const onlyCreates =
      isQuiet && plan.networks.every(({ targets }) => targets.every(({ now, isChanged }) => !isChanged || !now));
    const isFinal =
      onlyCreates &&
      !asksAddress &&
      plan.networks.every(({ targets }) => targets.every(({ now }) => now !== undefined));
    return { view, labels, plan, plannedMs, isFinal, onlyCreates };
  }
}

function keyOf({ subnets: [first] }: SubnetsView): string | undefined {
  return first?.object.uid;
}

function isSamePart({ view: before, labels }: PlannedPart, now: SubnetsView): boolean {
  return (
    isSameList(before.subnets, now.subnets) &&
    isSameList(before.demands, now.demands) &&
    isSameList(before.pools, now.pools, ({ object: a }, { object: b }) => isSamePool(a, b)) &&
    isSameList(labels, labelsIn(now))
  );
}

/** Compares what planning reads: a status is nothing of it. */
function isSamePool(a: ControlledPool, b: ControlledPool): boolean {
  if (a === b) return true;
  return a.uid === b.uid && a.deleting === b.deleting && a.generation > 0 && a.generation === b.generation;
}

function labelsIn({ demands, labelsOf }: SubnetsView): Labels[] {
  return [...new Set(demands.map(({ application }) => application.namespace))].map(labelsOf);
}

function union<T>(sets: readonly ReadonlySet<T>[]): Set<T> {
  return new Set(sets.flatMap((set) => [...set]));
}
