/**
 * Objects of other nodes that this one has met: what may be taken over, and since when it was seen so.
 * Effects: reads of the API server by the searches; none by the rest.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import {
  allocationName,
  type IpAllocation,
  isSameMember,
  OWNER_LABEL,
  ownerLabelOf,
  type Workload,
} from "../../resources/ip-allocation.ts";
import type { AddressSpan, Allocation } from "../registry.ts";
import { AllocationObjects, type CallTerms } from "./allocation-objects.ts";
import { foreignOf, type KnownObject, knownOf, specOf } from "./known-object.ts";

/** A pool is marked as wanted at most so often: milliseconds. @limit */
export const WANTED_INTERVAL_MS = 10_000;

/** Most objects of other nodes that are remembered; the one met longest ago is forgotten first. @limit */
export const MAX_FOREIGN_OBJECTS = 4_096;

/** How often an ADD looks whether an earlier pod's node has let go of an address that it waits for: milliseconds. @limit */
export const HAND_OVER_LOOK_MS = 200;

interface Met {
  readonly object: KnownObject;
  /** When this version was first met, on this machine's monotonic clock (allocation rule 10). */
  readonly sinceMs: number;
}

export interface ForeignObjectsOptions {
  readonly api: KubeApi;
  readonly node: string;
  readonly nowMs: () => number;
}

export class ForeignObjects {
  readonly #objects: AllocationObjects;
  readonly #options: ForeignObjectsOptions;
  readonly #met = new Map<string, Met>();
  readonly #markedMs = new Map<string, number>();

  constructor(options: ForeignObjectsOptions) {
    this.#objects = new AllocationObjects(options.api);
    this.#options = options;
  }

  /** Notes the object, and gives it as the rest of the agent sees it. */
  meet(object: IpAllocation): Allocation {
    const before = this.#met.get(object.name);
    const known = knownOf(object);
    const isSame = before?.object.uid === known.uid && before.object.resourceVersion === known.resourceVersion;
    const met = isSame ? before : { object: known, sinceMs: this.#options.nowMs() };
    this.#met.delete(object.name);
    this.#met.set(object.name, met);
    for (const oldest of this.#met.keys()) {
      if (this.#met.size <= MAX_FOREIGN_OBJECTS) break;
      this.#met.delete(oldest);
    }
    return foreignOf(object, met.sinceMs);
  }

  find(name: string): KnownObject | undefined {
    return this.#met.get(name)?.object;
  }

  forget(name: string): void {
    this.#met.delete(name);
  }

  /**
   * Cooling addresses of other nodes in the spans, those seen longest ago first. Those of the pool's name are asked for first: the list is short. Without
   * one, all that cool, as an address counts and not the name that its pool had.
   */
  async findCooling(spans: readonly AddressSpan[], pool: string, terms: CallTerms): Promise<readonly Allocation[]> {
    const ofPool = await this.#listCooling(spans, { "spec.pool": pool }, terms);
    return ofPool.length > 0 ? ofPool : this.#listCooling(spans, {}, terms);
  }

  async #listCooling(
    spans: readonly AddressSpan[],
    more: Readonly<Record<string, string>>,
    terms: CallTerms,
  ): Promise<readonly Allocation[]> {
    const fields = { "spec.state": "Cooling", ...more };
    const found = (await this.#objects.list({ fields }, terms)).filter(({ spec }) => spec.node !== this.#options.node);
    const within = found.filter(
      ({ deleting, spec }) => !deleting && spans.some((span) => isWithin(span, spec.addressSpace, spec.ip)),
    );
    return within.map((object) => this.meet(object)).sort((a, b) => a.sinceMs - b.sinceMs);
  }

  /** Allocation rule 8: what is kept for the member, and what an earlier pod of it has. */
  async findRetained(workload: Workload, terms: CallTerms): Promise<readonly Allocation[]> {
    const labels = { [OWNER_LABEL]: ownerLabelOf(workload) };
    const found = await this.#objects.list({ labels }, terms);
    const isHeld = ({ state, quarantine }: IpAllocation["spec"]): boolean =>
      state === "Kept" || state === "Bound" || quarantine?.reason === "NodeLost";
    const own = found.filter(({ spec }) => isHeld(spec) && isSameMember(workload, spec.workload));
    return own.map((object) => this.meet(object));
  }

  /** Kept → Cooling, on this node, which then sees to it. False when it is not the object that was met, or is not Kept. */
  async giveUp(kept: Allocation, terms: CallTerms): Promise<boolean> {
    const object = this.find(nameOf(kept));
    if (object?.state !== "Kept" || Number(object.resourceVersion) !== -kept.version) return false;
    const place = { node: this.#options.node, since: new Date().toISOString() };
    try {
      // Whose it is stays in it: only for the same member may it go to another node.
      const spec = { ...specOf(kept, "Cooling", place), workload: kept.workload };
      await this.#objects.replace(spec, object, terms);
      return true;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return false;
      throw error;
    }
  }

  /** Whether several pods have the address. */
  async isShared(place: Pick<Allocation, "space" | "ip">, terms: CallTerms): Promise<boolean> {
    const object = await this.#objects.get(nameOf(place), terms);
    return object !== undefined && object.spec.holders.length > 1;
  }

  /** Looks at the object of an address that was met until it is another one; false when it is not in time. */
  async awaitChange(met: Allocation, withinMs: number, terms: CallTerms): Promise<boolean> {
    const untilMs = performance.now() + withinMs;
    for (;;) {
      const object = await this.#objects.get(nameOf(met), terms);
      if (object === undefined || Number(object.resourceVersion) !== -met.version) return true;
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      await sleep(
        Math.min(HAND_OVER_LOOK_MS, leftMs),
        undefined,
        terms.signal === undefined ? {} : { signal: terms.signal },
      );
    }
  }

  /** Allocation rule 10: whoever has cooling addresses of the pool shows them. At most once in a while for each pool. */
  async markWanted(pool: string, since: string, terms: CallTerms): Promise<void> {
    const nowMs = this.#options.nowMs();
    if (nowMs - (this.#markedMs.get(pool) ?? Number.NEGATIVE_INFINITY) < WANTED_INTERVAL_MS) return;
    this.#markedMs.set(pool, nowMs);
    await this.#objects.markWanted(pool, since, terms);
  }
}

function isWithin({ space, family, first, last }: AddressSpan, addressSpace: string, ip: Allocation["ip"]): boolean {
  return space === addressSpace && family === ip.family && first <= ip.value && ip.value <= last;
}

/** The name of the object of an address. */
export function nameOf({ space, ip }: Pick<Allocation, "space" | "ip">): string {
  return allocationName(ip, space);
}
