/**
 * The checker of a registry's history: gets every write to every IPAllocation in order, and from the test which pods
 * have which address, and reports what must not have happened (docs/allocation.md: I1, and the table of states).
 *
 *   const checker = new AllocationChecker({ minReuseMs: 2_000 });
 *   checker.written({ name, revision, object });       // each revision of each object; undefined: deleted
 *   checker.answered(attachment, nowMs);               // an ADD was answered: the address is on a NIC from here
 *   checker.mustHold(attachment);                      // from here on the object has to be Bound to the pod
 *   checker.leaving(attachment, nowMs);                // its DEL is about to be called
 *   checker.breaches                                   // texts; none: all is well
 */

import { allocationName, type Holder, type IpAllocation } from "../../../host/resources/ip-allocation.ts";
import type { Workload } from "../../../host/resources/member.ts";

/** One write as etcd keeps it. */
export interface Write {
  /** The object's name, which is its address. */
  readonly name: string;
  /** Of etcd's whole store; grows with every write. */
  readonly revision: number;
  /** Undefined: deleted. */
  readonly object: IpAllocation | undefined;
}

/** A NIC that has an address. */
export interface Attachment {
  /** The name of the address's object. */
  readonly name: string;
  readonly podUid: string;
  readonly ifName: string;
  /** Of a pod that keeps its addresses: what the next pod of the same name has in common with it. */
  readonly identity?: string | undefined;
}

export interface CheckerOptions {
  /** How long no other pod may have an address after its DEL was called; 0: not checked. */
  readonly minReuseMs?: number;
}

/** A NIC of which the test says that it has the address now. */
interface Live extends Attachment {
  /** The history has come to the place from which the object has to say so too. */
  isBinding: boolean;
}

interface Departure extends Pick<Attachment, "podUid" | "identity"> {
  readonly atMs: number;
}

/** Breaches beyond these are counted only: one mistake often makes thousands. */
const MAX_TEXTS = 50;

export class AllocationChecker {
  readonly #options: CheckerOptions;
  readonly #objects = new Map<string, IpAllocation>();
  readonly #live = new Map<string, Live[]>();
  readonly #departures = new Map<string, Departure>();
  readonly #texts: string[] = [];
  #breaches = 0;
  #writes = 0;

  constructor(options: CheckerOptions = {}) {
    this.#options = options;
  }

  get breaches(): readonly string[] {
    const more = this.#breaches - this.#texts.length;
    return more === 0 ? this.#texts : [...this.#texts, `and ${more} more`];
  }

  /** The objects as the last write of each left them, by name. */
  get objects(): ReadonlyMap<string, IpAllocation> {
    return this.#objects;
  }

  get writes(): number {
    return this.#writes;
  }

  /** An object that was there before the history began: nothing is said about how it came. */
  begin({ name, object }: Write): void {
    if (object !== undefined) this.#objects.set(name, object);
  }

  written({ name, revision, object }: Write): void {
    this.#writes++;
    const before = this.#objects.get(name);
    const breach = faultOfObject(name, object) ?? faultOfTransition(before, object);
    if (breach !== undefined)
      this.#breach(`revision ${revision}, ${name}: ${breach} (${describe(before)} → ${describe(object)})`);
    if (object === undefined) this.#objects.delete(name);
    else this.#objects.set(name, object);
    for (const live of this.#live.get(name) ?? []) {
      if (live.isBinding && !isBoundTo(object, live)) {
        this.#breach(`revision ${revision}, ${name}: ${describe(object)} while ${nicOf(live)} lives with it`);
      }
    }
  }

  answered(attachment: Attachment, nowMs: number): void {
    const { name, podUid, ifName } = attachment;
    const live = this.#live.get(name) ?? [];
    const others = live.filter((other) => other.podUid !== podUid || other.ifName !== ifName);
    for (const other of others) this.#breach(`${name}: given to ${nicOf(attachment)} while ${nicOf(other)} has it`);
    this.#live.set(name, [...others, { ...attachment, isBinding: false }]);
    const gone = this.#departures.get(name);
    const { minReuseMs = 0 } = this.#options;
    if (gone !== undefined && !isSamePod(gone, attachment) && nowMs - gone.atMs < minReuseMs) {
      const ageMs = Math.round(nowMs - gone.atMs);
      this.#breach(`${name}: given to ${nicOf(attachment)} ${ageMs} ms after the DEL of ${gone.podUid}`);
    }
  }

  /** Nothing happens when the attachment has left by now. */
  mustHold(attachment: Attachment): void {
    const live = this.#live
      .get(attachment.name)
      ?.find(({ podUid, ifName }) => podUid === attachment.podUid && ifName === attachment.ifName);
    if (live === undefined || live.isBinding) return;
    live.isBinding = true;
    const object = this.#objects.get(live.name);
    if (!isBoundTo(object, live)) this.#breach(`${live.name}: ${describe(object)} when ${nicOf(live)} was answered`);
  }

  leaving({ name, podUid, ifName, identity }: Attachment, nowMs: number): void {
    const live = this.#live.get(name) ?? [];
    const rest = live.filter((other) => other.podUid !== podUid || other.ifName !== ifName);
    if (rest.length === live.length)
      this.#breach(`${name}: ${nicOf({ podUid, ifName })} leaves, but was never answered`);
    if (rest.length === 0) this.#live.delete(name);
    else this.#live.set(name, rest);
    this.#departures.set(name, { podUid, identity, atMs: nowMs });
  }

  /** Attachments that live now. */
  get attachments(): readonly Attachment[] {
    return [...this.#live.values()].flat();
  }

  /** For what the caller has found out by itself. */
  report(breach: string): void {
    this.#breach(breach);
  }

  #breach(text: string): void {
    this.#breaches++;
    if (this.#texts.length < MAX_TEXTS) this.#texts.push(text);
  }
}

/** What is wrong with the object by itself. */
function faultOfObject(name: string, object: IpAllocation | undefined): string | undefined {
  if (object === undefined) return undefined;
  const { ip, addressSpace, state, holders, node, quarantine } = object.spec;
  const wanted = allocationName(ip, addressSpace);
  if (name !== wanted) return `the name is not the address, which is called ${wanted}`;
  if (state === "Bound" && holders.length === 0) return "Bound without a holder";
  if (state !== "Bound" && holders.length > 0) return `${state}, but it has a holder`;
  if ((state === "Quarantined") !== (quarantine !== undefined)) return "a quarantine and its reason go together";
  if (state === "Bound" && !holders.some((holder) => holder.node === node)) return `node ${node} holds none of it`;
  return undefined;
}

/** What is wrong with going from one to the other in one write. */
function faultOfTransition(before: IpAllocation | undefined, after: IpAllocation | undefined): string | undefined {
  if (before === undefined) {
    const isLegal = after === undefined || after.spec.state === "Bound" || after.spec.state === "Quarantined";
    return isLegal ? undefined : `created as ${after.spec.state}`;
  }
  if (after !== undefined && after.spec.addressSpace !== before.spec.addressSpace) return "another address space";
  const from = before.spec.state;
  const to = after?.spec.state ?? "absent";
  switch (from) {
    case "Bound":
      return to === "Bound"
        ? faultOfRebinding(before, after)
        : to === "Kept"
          ? faultOfKeeping(before, after)
          : undefined;
    case "Cooling":
      return to === "Kept" || to === "Quarantined" ? `from Cooling to ${to}` : undefined;
    case "Kept":
      if (to === "Bound" || to === "Kept") {
        return isSameMember(before.spec.workload, after?.spec.workload) ? undefined : "kept for another identity";
      }
      return to === "Cooling" ? undefined : `from Kept to ${to}`;
    case "Quarantined":
      if (to === "Kept") return "from quarantine to Kept";
      return to === "Cooling" && before.spec.quarantine?.reason !== "NodeLost" ? "a conflict made Cooling" : undefined;
  }
}

/**
 * Bound stays Bound: a second NIC of the holder's, the same identity in a new pod, or a release and the next claim in
 * one write, which only the node of both can do. That the holder before does not live any more is seen by its
 * attachment.
 */
function faultOfRebinding(before: IpAllocation, after: IpAllocation | undefined): string | undefined {
  const { holders: were, workload } = before.spec;
  const { holders: are = [], workload: now } = after?.spec ?? {};
  const isKnown = ({ podUid }: Holder): boolean => were.some((holder) => holder.podUid === podUid);
  if (are.some(isKnown) || isSameMember(workload, now) || before.spec.node === after?.spec.node) return undefined;
  return "another node's pod's while it was Bound";
}

function faultOfKeeping(before: IpAllocation, after: IpAllocation | undefined): string | undefined {
  return isSameMember(before.spec.workload, after?.spec.workload)
    ? undefined
    : "kept for a member that did not have it";
}

/** The same one, or the next one of its identity. */
function isSamePod(a: Departure, b: Attachment): boolean {
  return a.podUid === b.podUid || (a.identity !== undefined && a.identity === b.identity);
}

function isSameMember(a: Workload | undefined, b: Workload | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.kind === b.kind && a.namespace === b.namespace && a.uid === b.uid && a.member === b.member;
}

function isBoundTo(object: IpAllocation | undefined, { podUid, ifName }: Attachment): boolean {
  if (object?.spec.state !== "Bound") return false;
  return object.spec.holders.some((holder) => holder.podUid === podUid && holder.ifName === ifName);
}

function nicOf({ podUid, ifName }: Pick<Attachment, "podUid" | "ifName">): string {
  return `${ifName} of ${podUid}`;
}

function describe(object: IpAllocation | undefined): string {
  if (object === undefined) return "absent";
  const { state, holders, workload } = object.spec;
  const whose = [...holders.map(nicOf), ...(workload === undefined ? [] : [workload.member])];
  return whose.length === 0 ? state : `${state} ${whose.join(", ")}`;
}
