/** Objects of other nodes that this node has read: addresses to take over, and the age of each one's state. */
import { setTimeout as sleep } from "node:timers/promises";
import { isOutdated, type KubeApi } from "../../kubernetes/kube-api.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { orElse } from "../../lib/try-or.ts";
import { type IpAllocation, OWNER_LABEL, ownerLabelOf } from "../../resources/ip-allocation.ts";
import { isOfMachine } from "../../resources/machine.ts";
import { isSameMember, type Workload } from "../../resources/member.ts";
import { type AddressSpan, type Allocation, isInSpan } from "../registry.ts";
import { FOR_POD, listAllocations, markPoolWanted, readAllocation, replaceAllocation } from "./allocation-objects.ts";
import type { LiveStatus } from "./decide.ts";
import { type AddressKey, foreignOf, nameOf, rowVersionOf, specOf } from "./known-object.ts";

/** Interval at which a pool may be marked as wanted: milliseconds. */
export const WANTED_INTERVAL_MS = 10_000;

/** Most remembered objects of other nodes. The one read longest ago is forgotten first. */
const MAX_FOREIGN_OBJECTS = 4_096;

/** Interval at which an ADD checks whether an earlier pod's node has released the address: milliseconds. */
const HAND_OVER_POLL_MS = 200;

interface Remembered {
  readonly object: IpAllocation;
  /** When this version was first read, on this machine's monotonic clock (cooling-visibility). */
  readonly sinceMs: number;
}

interface ForeignObjectsOptions {
  readonly api: KubeApi;
  readonly live: Pick<LiveStatus, "node" | "machine">;
  readonly nowMs: () => number;
}

export class ForeignObjects {
  readonly #options: ForeignObjectsOptions;
  readonly #remembered = new BoundedMap<string, Remembered>(MAX_FOREIGN_OBJECTS);
  readonly #markedMs = new Map<string, number>();

  constructor(options: ForeignObjectsOptions) {
    this.#options = options;
  }

  /** Remembers the object, and returns it as a row. */
  remember(object: IpAllocation): Allocation {
    const before = this.#remembered.get(object.name);
    const isSame = before?.object.uid === object.uid && before.object.resourceVersion === object.resourceVersion;
    const remembered = isSame ? before : { object, sinceMs: this.#options.nowMs() };
    this.#remembered.set(object.name, remembered);
    return foreignOf(object, remembered.sinceMs, this.#isOfOtherMachine(object));
  }

  #isOfOtherMachine({ spec }: IpAllocation): boolean {
    const { node, machine } = this.#options.live;
    return spec.holders.some((holder) => holder.node === node && !isOfMachine(holder, machine?.()));
  }

  find(name: string): IpAllocation | undefined {
    return this.#remembered.get(name)?.object;
  }

  /**
   * Returns Cooling addresses of other nodes in the spans, those known longest first. Lists those with the pool's
   * name, which are few; if there are none, all that cool, because an earlier pool of another name may have had the
   * addresses.
   */
  async findCooling(spans: readonly AddressSpan[], pool: string): Promise<readonly Allocation[]> {
    const ofPool = await this.#listCooling(spans, { "spec.pool": pool });
    return ofPool.length > 0 ? ofPool : this.#listCooling(spans, {});
  }

  async #listCooling(
    spans: readonly AddressSpan[],
    more: Readonly<Record<string, string>>,
  ): Promise<readonly Allocation[]> {
    const fields = { "spec.state": "Cooling", ...more };
    const isWanted = ({ deleting, spec }: IpAllocation): boolean =>
      spec.node !== this.#options.live.node &&
      !deleting &&
      spans.some((span) => isInSpan(span, { space: spec.addressSpace, ip: spec.ip }));
    const found = (await listAllocations(this.#options.api, { fields }, FOR_POD)).filter(isWanted);
    return found.map((object) => this.remember(object)).sort((a, b) => a.sinceMs - b.sinceMs);
  }

  /** Returns the addresses that are retained for the member, and those that an earlier pod of it has (retention). */
  async findRetained(workload: Workload, signal?: AbortSignal): Promise<readonly Allocation[]> {
    const labels = { [OWNER_LABEL]: ownerLabelOf(workload) };
    const found = await listAllocations(this.#options.api, { labels }, { ...FOR_POD, signal });
    const isHeld = ({ state, quarantine }: IpAllocation["spec"]): boolean =>
      state === "Kept" || state === "Bound" || quarantine?.reason === "NodeLost";
    const own = found.filter(
      ({ spec, deleting }) => isHeld(spec) && !deleting && isSameMember(workload, spec.workload),
    );
    return own.map((object) => this.remember(object));
  }

  /** Kept → Cooling, on this node, which adopts it. Returns false if the object has changed, or is not Kept. */
  async coolRetained(retained: Allocation): Promise<boolean> {
    const object = this.find(nameOf(retained));
    if (object?.spec.state !== "Kept" || rowVersionOf(object) !== retained.version) return false;
    const place = { node: this.#options.live.node, since: new Date().toISOString() };
    // The workload stays in it: only an object of the same member may move to another node.
    const spec = { ...specOf(retained, "Cooling", place), workload: retained.workload };
    const writing = replaceAllocation(this.#options.api, spec, object, FOR_POD);
    return (await writing.catch(orElse(isOutdated, undefined))) !== undefined;
  }

  /** Returns whether several pods have the address. */
  async isShared(address: AddressKey, signal: AbortSignal): Promise<boolean> {
    const object = await readAllocation(this.#options.api, nameOf(address), { ...FOR_POD, signal });
    return object !== undefined && object.spec.holders.length > 1;
  }

  /** Waits until the object of the address changes. Returns false if it has not changed after so many milliseconds. */
  async awaitChange(row: Allocation, withinMs: number, signal: AbortSignal): Promise<boolean> {
    const untilMs = performance.now() + withinMs;
    for (;;) {
      const object = await readAllocation(this.#options.api, nameOf(row), { ...FOR_POD, signal });
      if (object === undefined || rowVersionOf(object) !== row.version) return true;
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      await sleep(Math.min(HAND_OVER_POLL_MS, leftMs), undefined, { signal });
    }
  }

  /**
   * Asks all nodes to show the addresses of the pool that cool there (cooling-visibility), at most every
   * WANTED_INTERVAL_MS unless pods wait for a block.
   */
  async markWanted(pool: string, waiting?: number): Promise<void> {
    const nowMs = this.#options.nowMs();
    const isFresh = nowMs - (this.#markedMs.get(pool) ?? Number.NEGATIVE_INFINITY) < WANTED_INTERVAL_MS;
    if (isFresh && waiting === undefined) return;
    this.#markedMs.set(pool, nowMs);
    await markPoolWanted(this.#options.api, pool, FOR_POD, waiting);
  }
}
