/**
 * Writes this node's pods' addresses to a registry that has just appeared or went back in time (registry-epoch). The
 * journal is the truth about this node: an address that it lacks is not this node's any more, and makes room for the
 * pod that has it elsewhere. Waits for other nodes to do the same where their records are in the way.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isConfigError } from "../../config/config-error.ts";
import type { KubeApi } from "../../kubernetes/kube-api.ts";
import { listPages } from "../../kubernetes/list.ts";
import { collectionPath, NODES } from "../../kubernetes/paths.ts";
import { inParallel } from "../../lib/in-parallel.ts";
import type { Log } from "../../lib/log.ts";
import { orElse } from "../../lib/try-or.ts";
import type { KnownEpoch } from "../../registry/epoch/known-epoch.ts";
import type { Epoch, EpochRows, WritingCourse } from "../../registry/epoch/registry-epoch.ts";
import { UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import {
  type CallTerms,
  deleteAllocation,
  listNodeAllocations,
  readAllocation,
  replaceAllocation,
} from "../../registry/kubernetes/allocation-objects.ts";
import { nameOf } from "../../registry/kubernetes/known-object.ts";
import type { KubernetesRegistry } from "../../registry/kubernetes/kubernetes-registry.ts";
import { listRows } from "../../registry/list-rows.ts";
import { type Allocation, RegistryError } from "../../registry/registry.ts";
import { type Holder, type IpAllocation, NO_NODE } from "../../resources/ip-allocation.ts";
import { isOfMachine } from "../../resources/machine.ts";
import { isSameMember } from "../../resources/member.ts";
import { decodeNode } from "../../resources/node.ts";
import { markOf } from "../../resources/registry-epoch.ts";
import type { NicAccess } from "../fences/orphan-nics.ts";
import type { OwnAllocations } from "./own-allocations.ts";

/** Interval at which an object that is in the way is read again: milliseconds. */
const RETRY_MS = 500;

/** Most rows that are looked at at once. */
const ROWS_AT_ONCE = 16;

/** First claims of all nodes wait for these calls. A write may take as long as an admission webhook keeps it. */
const WRITE_TERMS: CallTerms = { lane: "pod" };
const TERMS: CallTerms = { ...WRITE_TERMS, patienceMs: 10_000 };

interface EpochRowsDeps {
  readonly api: KubeApi;
  readonly node: string;
  readonly registry: KubernetesRegistry;
  /** Returns the machine that this agent runs on; undefined while it is unknown. */
  readonly machine: () => string | undefined;
  readonly allocations: Pick<OwnAllocations, "reconcile">;
  readonly nics: Pick<NicAccess, "readNetnsStatus">;
  readonly known: Pick<KnownEpoch, "note">;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export class OwnEpochRows implements EpochRows {
  readonly #deps: EpochRowsDeps;

  constructor(deps: EpochRowsDeps) {
    this.#deps = deps;
  }

  async write({ epoch, cause }: Epoch, course: WritingCourse): Promise<void> {
    const { known, allocations, log, signal } = this.#deps;
    const { onWritten, isOutdated } = course;
    this.#deps.registry.objects.forgetObjects();
    if (course.isWhole || course.isNewer) await this.#makeRoom(course);
    await allocations.reconcile();
    // Only the lost journal knew which of the records from the past are this node's.
    if (cause === "history") known.note({ unverified: await this.#takenIn() });
    for (let attempt = 0; ; attempt++) {
      const open = await this.#publish(epoch);
      if (open.length === 0 || isOutdated()) return;
      if (attempt === 0) await onWritten();
      log.debug({ addresses: open }, "Other nodes still have to take back records of addresses that pods here have");
      await sleep(RETRY_MS, undefined, { signal });
    }
  }

  async isNewestMissing(): Promise<boolean> {
    const { registry, nics, signal, log } = this.#deps;
    while (!signal.aborted) {
      try {
        const newest = await this.#findNewest();
        // Another sandbox than it knows would show that the journal went back.
        const isHere = newest !== undefined && ["there", "inUse"].includes(await nics.readNetnsStatus(newest));
        const isMissing = await registry.objects.isMissing(newest, { ...TERMS, signal }, isHere);
        // Another row is the newest if it has changed meanwhile. No node deletes a member's retained address.
        if (newest === undefined || (isMissing && newest.workload !== undefined)) return isMissing;
        if ((await registry.findAddress(newest.space, newest.ip))?.version === newest.version) return isMissing;
      } catch (error) {
        if (isConfigError(error)) return false;
        log.debug({ err: error }, "This node's newest record could not be read");
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
      }
    }
    return false;
  }

  async #findNewest(): Promise<Allocation | undefined> {
    let newest: Allocation | undefined;
    for await (const row of listRows(this.#deps.registry)) {
      // Its pod may have gone with the same past. A cooling address has its row for as long as its record.
      const isPublished = row.isConfirmed && row.state !== "Quarantined" && row.containerId !== UNKNOWN_CONTAINER;
      if (isPublished && row.version > (newest?.version ?? 0)) newest = row;
    }
    return newest;
  }

  async #own(): Promise<readonly IpAllocation[]> {
    const { api, node, signal } = this.#deps;
    return listNodeAllocations(api, node, { ...TERMS, signal });
  }

  /**
   * Ends objects of this node that the journal does not have, if it is whole, or has for another pod: no NIC here has
   * these addresses for that pod, and one elsewhere may. They need no cooldown. A member's stay the member's. Those
   * that cool here are shown as cooling.
   */
  async #makeRoom({ isWhole }: Pick<WritingCourse, "isWhole">): Promise<void> {
    const { registry, node, machine, log, signal } = this.#deps;
    // Another machine that had this node's name may still have its addresses.
    const isHere = (holder: Holder): boolean => holder.node === node && isOfMachine(holder, machine());
    await inParallel(await this.#own(), ROWS_AT_ONCE, async (object) => {
      const { addressSpace, ip, state, holders, workload } = object.spec;
      if (!(state === "Bound" || state === "Cooling") || object.deleting || !holders.every(isHere)) return;
      const row = await registry.findAddress(addressSpace, ip);
      if (row === undefined ? !isWhole : row.state === "Quarantined") return;
      // An address that a member's pod has or had is the member's, whatever the registry says.
      if (state === "Cooling" && row?.workload === undefined) return;
      if (row === undefined && workload !== undefined && holders.length === 1) await this.#keep(object);
      // The row's own record, if any, is made in its place.
      else if (row === undefined || state === "Cooling" || holders.some(({ podUid }) => podUid !== row.owner)) {
        if (workload !== undefined && isSameMember(row?.workload, workload)) return;
        await deleteAllocation(this.#deps.api, object.name, object, { ...WRITE_TERMS, signal });
        log.info({ address: object.name }, "A record that came back with the registry's past was ended");
        if (row?.state === "Cooling") await registry.republish(row);
      } else if (row.state === "Cooling") await this.#showCooling(row, object);
    });
  }

  /** The pod has ended since the copy was made, and the member may come again. */
  async #keep(object: IpAllocation): Promise<void> {
    const spec = { ...object.spec, state: "Kept" as const, holders: [], lastHolder: object.spec.holders[0] };
    await replaceAllocation(this.#deps.api, spec, object, { ...WRITE_TERMS, signal: this.#deps.signal });
    this.#deps.log.info({ address: object.name }, "A member's record that came back with the registry's past is kept");
  }

  /** Another node may have taken it over since. Rejects unless that is done. */
  async #showCooling(row: Allocation, { name, uid }: IpAllocation): Promise<void> {
    await this.#deps.registry.republish(row);
    const now = await readAllocation(this.#deps.api, name, { ...TERMS, signal: this.#deps.signal });
    if (now?.uid === uid && now.spec.state === "Bound" && !now.deleting)
      throw new RegistryError(`IPAllocation ${name}, which cools on this node, is still Bound; try again`);
  }

  async #takenIn(): Promise<string[]> {
    const rows = await Array.fromAsync(listRows(this.#deps.registry));
    return rows.filter((row) => row.state === "Bound" && row.containerId === UNKNOWN_CONTAINER).map(nameOf);
  }

  /** Publishes its pods' addresses, and its members' retained ones. Returns those whose objects are in the way now. */
  async #publish(epoch: string): Promise<readonly string[]> {
    const { registry } = this.#deps;
    const rows = await Array.fromAsync(listRows(registry));
    // No NIC answers for addresses collected from members' pods.
    const collected = rows.filter(({ state, workload }) => state === "Cooling" && workload !== undefined);
    await inParallel(collected, ROWS_AT_ONCE, (row) => registry.objects.sync(row));
    const bound = rows.filter(({ state, isConfirmed }) => state === "Bound" && isConfirmed !== false);
    if (bound.length === 0) return [];
    const own = new Map((await this.#own()).map((object) => [object.name, object]));
    const open = await inParallel(bound, ROWS_AT_ONCE, async (row) => {
      const name = nameOf(row);
      const object = own.get(name);
      // No pod gets an address in quarantine, and the comparison has decided about it.
      const isWritten = isRecorded(row, object) || object?.spec.state === "Quarantined";
      return isWritten || (await this.#settle(row, epoch)) ? undefined : name;
    });
    return open.filter((name) => name !== undefined);
  }

  /** Returns whether the address is recorded for the row's pod now, or another's for good. */
  async #settle(row: Allocation, epoch: string): Promise<boolean> {
    const { registry, node, signal } = this.#deps;
    await registry.republish(row);
    const reading = readAllocation(this.#deps.api, nameOf(row), { ...TERMS, signal });
    const found = await reading.catch(orElse(isConfigError, "unreadable" as const));
    if (found === "unreadable" || found?.spec.state === "Quarantined" || isRecorded(row, found)) return true;
    const now = await registry.findAddress(row.space, row.ip);
    // It was released meanwhile.
    if (now?.state !== "Bound" || now.owner !== row.owner) return true;
    if (found === undefined) return false;
    if (found.spec.state === "Cooling" && found.spec.node !== node) return registry.takeBack(row, found);
    const { lastHolder: _, ...spec } = found.spec;
    if (spec.state === "Kept" && spec.node !== NO_NODE && (await registry.isLive(row))) {
      // For a member that had it before this pod; it would be another's for good. The row of a pod that is gone goes.
      await replaceAllocation(this.#deps.api, { ...spec, node, state: "Cooling" }, found, { ...WRITE_TERMS, signal });
      return this.#settle(row, epoch);
    }
    return spec.state === "Bound" && (await this.#isFinal(found, epoch));
  }

  /** Whether the object's node has ended records that are no longer its own, or never will. */
  async #isFinal({ spec }: IpAllocation, epoch: string): Promise<boolean> {
    const { api, node, signal } = this.#deps;
    if (spec.node === node) return true;
    const query = { fieldSelector: `metadata.name=${spec.node}` };
    for await (const { items } of listPages(api, { ...TERMS, path: collectionPath(NODES), query, signal }))
      for (const item of items) return markOf(decodeNode(item, `Node "${spec.node}"`), epoch) !== "behind";
    return true;
  }
}

function isRecorded({ owner, ifName }: Allocation, object: IpAllocation | undefined): boolean {
  if (object?.spec.state !== "Bound") return false;
  return object.spec.holders.some((holder) => holder.podUid === owner && holder.ifName === ifName);
}
