/** The tracked objects by workload, and the demands of each workload until a change of it. */
import type { PoolOwner } from "../../resources/fields/subnet-pool.ts";
import type { DemandSettings, Demands } from "../types.ts";
import { planDemands } from "./plan-demands.ts";
import { type ProviderLookup, planNicRequests } from "./plan-nic-requests.ts";
import { applySettings, type TrackedObject } from "./tracked-object.ts";

interface Entry {
  /** By the object's kind and name. */
  readonly objects: Map<string, TrackedObject>;
  /** The last planned demands; undefined after a change. */
  known: Demands | undefined;
}

export class TrackedOwners {
  readonly #attachments: ProviderLookup;
  readonly #entries = new Map<string, Entry>();
  /** The settings of all cached demands. */
  #settings = "";
  /** The demands of all workloads; undefined after a change. */
  #known: Demands | undefined;

  constructor(attachments: ProviderLookup) {
    this.#attachments = attachments;
  }

  /** `key` is the object's. `now` is undefined if the object is gone, or names no Subnets any more. */
  update(key: string, before: TrackedObject | undefined, now: TrackedObject | undefined): void {
    // A workload that stays keeps its place in the order.
    if (now !== undefined) this.#add(key, now);
    const [former, place] = [before, now].map((each) => each && placeOf(each.application));
    if (former !== undefined && former !== place) this.#drop(key, former);
    this.#known = undefined;
  }

  /** Drops all cached demands: networks have changed, and with them the NICs that `subnet` refers to. */
  invalidate(): void {
    for (const entry of this.#entries.values()) entry.known = undefined;
    this.#known = undefined;
  }

  has(application: Pick<PoolOwner, "namespace" | "uid">): boolean {
    return this.#entries.has(placeOf(application));
  }

  demands(settings: DemandSettings): Demands {
    const text = JSON.stringify(settings);
    if (text !== this.#settings) this.invalidate();
    this.#settings = text;
    this.#known ??= this.#collect(settings);
    return this.#known;
  }

  #collect(settings: DemandSettings): Demands {
    const plan = (template: Parameters<typeof planNicRequests>[0]) =>
      planNicRequests(template, settings, this.#attachments);
    const all = [...this.#entries.values()].map((entry) => {
      entry.known ??= planDemands(groupOf(entry, settings), plan);
      return entry.known;
    });
    return { demands: all.flatMap(({ demands }) => demands), faults: all.flatMap(({ faults }) => faults) };
  }

  #drop(key: string, place: string): void {
    const entry = this.#entries.get(place);
    if (entry === undefined) return;
    entry.objects.delete(key);
    entry.known = undefined;
    if (entry.objects.size === 0) this.#entries.delete(place);
  }

  #add(key: string, tracked: TrackedObject): void {
    const place = placeOf(tracked.application);
    const entry = this.#entries.getOrInsertComputed(place, () => ({ objects: new Map(), known: undefined }));
    entry.objects.set(key, tracked);
    entry.known = undefined;
  }
}

/** A tenant may forge a UID: workloads of different namespaces are never the same. */
function placeOf({ namespace, uid }: Pick<PoolOwner, "namespace" | "uid">): string {
  return `${namespace}/${uid}`;
}

function groupOf({ objects }: Entry, settings: DemandSettings) {
  const all = [...objects.values()].map((tracked) => ({
    ...tracked,
    template: applySettings(tracked.template, settings),
  }));
  const members = all.filter(({ isOwner }) => !isOwner);
  return { own: all.find(({ isOwner }) => isOwner), members };
}
