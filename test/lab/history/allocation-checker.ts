/**
 * The checker of a registry's history: gets every write to every IPAllocation in order, and from the test the pods'
 * addresses and refused ADDs, and reports breaches of the rules (docs/develop/allocation.md: I1, the table of states,
 * cooling, retention, exhaustion). allocation-rules.ts checks a write alone.
 *
 *   const checker = new AllocationChecker({ minReuseMs: 2_000 });
 *   checker.written({ name, revision, object, atMs });  // each revision of each object; undefined: deleted
 *   checker.owner("uid", { wants: ({ member }) => … });     // a workload as it is now; undefined: deleted
 *   checker.answered(attachment);                       // an ADD was answered: the address is on a NIC from here
 *   checker.mustHold(attachment);                       // from here on the object has to be Bound to the pod
 *   checker.leaving(attachment, nowMs);                 // its DEL is about to be called
 *   const call = checker.asked(choice);                 // an ADD is about to be called
 *   checker.exhausted(call);                            // it was refused, because none of these is free
 *   checker.breaches                                    // texts; none: all is well
 */
import { RETAINED_FREELY } from "../../../host/controller/namespace-shares.ts";
import type { Workload } from "../../../host/resources/member.ts";
import {
  type Allocation,
  describe,
  faultOfObject,
  faultOfTransition,
  faultOfWriter,
  hasSameMember,
  hasSameNic,
  isBoundTo,
  isRecordOf,
  isRetained,
  isSharing,
  type Nic,
  nicOf,
  type Writer,
} from "./allocation-rules.ts";
import type { Period } from "./stream.ts";

/** One write as etcd keeps it. */
export interface Write {
  /** The object's name, which is its address. */
  readonly name: string;
  /** Revision of etcd's whole store; grows with every write. */
  readonly revision: number;
  /** Undefined: deleted. */
  readonly object: Allocation;
  /** Undefined: unknown, so that no rest is measured by it. */
  readonly atMs?: Period;
  /** Undefined: unknown, as with deletions. */
  readonly writer?: Writer | undefined;
}

/** A NIC that has an address. */
export interface Attachment extends Nic {
  /** The name of the address's object. */
  readonly name: string;
}

/** A workload that retains addresses. */
export interface Owner {
  wants(workload: Pick<Workload, "namespace" | "member">): boolean;
}

export interface CheckerOptions {
  /**
   * Time for which an address rests before another pod has it: from the DEL's call, and on another node from the
   * write that showed it as Cooling. 0: not checked.
   */
  readonly minReuseMs?: number;
  /** Shortest time of a conflict: the agent's first probe comes so much later. 0: not checked. */
  readonly minConflictMs?: number;
  /** Shortest time without its pod after which a NIC's node may be taken for lost. 0: not checked. */
  readonly minLostMs?: number;
}

/** A conflict that has lasted so long may be given to a pod that probes. */
const RETRY_CONFLICT_MS = 3_600_000;
/** A machine that answers for so many addresses is a switch with proxy ARP: its quarantined ones are free at once. */
const PROXY_ARP = 3;
/** Breaches beyond these are counted only: one mistake often makes thousands. */
const MAX_TEXTS = 50;

/** A NIC that has the address now, by the test's word. */
interface Live extends Attachment {
  /**
   * `answered`: the history has not come to the place of the answer. `displaced`: the object was deleted by hand, or an
   * older one restored; it is checked again once it has been Bound to the NIC.
   */
  state: "answered" | "recorded" | "displaced";
  /** NICs that had the address at the answer. */
  readonly others: readonly Nic[];
}

/** The last DEL of an address. */
interface Departure {
  readonly nic: Nic;
  readonly atMs: number;
}

/** Addresses that an ADD may be answered with. */
export interface Choice {
  readonly size: bigint;
  has(object: NonNullable<Allocation>): boolean;
}

/** An ADD under way. */
export interface Call {
  readonly choice: Choice;
  /** Number of addresses that have records now, and most at one moment since. */
  taken: number;
  most: number;
}

export class AllocationChecker {
  readonly #options: CheckerOptions;
  readonly #objects = new Map<string, NonNullable<Allocation>>();
  /** Records of an older state, unchanged since it was restored; undefined if none was. */
  #past: Set<string> | undefined;
  /** When the objects came into their state. */
  readonly #since = new Map<string, Period | undefined>();
  readonly #live = new Map<string, Live[]>();
  readonly #departures = new Map<string, Departure>();
  readonly #owners = new Map<string, Owner>();
  /** When pods that the API server had have ended; undefined: they are there. */
  readonly #pods = new Map<string, Period | undefined>();
  /** Addresses with which members were answered, and that are still theirs. */
  readonly #answers = new Set<string>();
  readonly #calls = new Set<Call>();
  /** Addresses for which a MAC address has answered. */
  readonly #answering = new Map<string, Set<string>>();
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
  get objects(): ReadonlyMap<string, NonNullable<Allocation>> {
    return this.#objects;
  }

  get writes(): number {
    return this.#writes;
  }

  /** Attachments that live now. */
  get attachments(): readonly Attachment[] {
    return [...this.#live.values()].flat();
  }

  /** An object that was there before the history began: nothing is said about how it came. */
  begin({ name, object }: Write): void {
    if (object === undefined) return;
    this.#objects.set(name, object);
    this.#past?.add(name);
    for (const live of this.#live.get(name) ?? [])
      if (live.state === "displaced" && isBoundTo(object, live)) live.state = "recorded";
  }

  /** An older state of the store is back, and {@link begin} tells its contents. */
  restored(): void {
    for (const map of [this.#objects, this.#since, this.#departures, this.#owners, this.#answers]) map.clear();
    this.#past = new Set();
    for (const call of this.#calls) call.most = Number.POSITIVE_INFINITY;
    for (const live of [...this.#live.values()].flat()) if (live.state === "recorded") live.state = "displaced";
  }

  /** The member that was answered with the address may get another one. */
  excuse(name: string): void {
    this.#answers.delete(name);
  }

  /** Undefined: deleted, or it retains nothing any more. */
  owner(uid: string, owner: Owner | undefined): void {
    if (owner === undefined) this.#owners.delete(uid);
    else this.#owners.set(uid, owner);
  }

  /** `ended`: it is gone, or will not run any more. */
  pod(uid: string, ended: Period | undefined): void {
    this.#pods.set(uid, ended);
  }

  written(write: Write): void {
    this.#writes++;
    const { name, object, atMs, writer } = write;
    const before = this.#objects.get(name);
    const isByHand = writer?.kind === "hand";
    if (!isByHand) this.#check(before, write);
    if (object === undefined) this.#objects.delete(name);
    else this.#objects.set(name, object);
    // An address that cools since its record is back may have rested before.
    const isUnknown = this.#past?.delete(name) === true || isByHand;
    if (isByHand || !isSameState(before, object)) this.#since.set(name, isUnknown ? undefined : atMs);
    if (isByHand) this.#departures.delete(name);
    if (isByHand || !isRetained(object)) this.#answers.delete(name);
    const mac = object?.spec.quarantine?.mac ?? "";
    if (mac !== "") this.#answering.set(mac, (this.#answering.get(mac) ?? new Set()).add(name));
    for (const live of this.#live.get(name) ?? []) this.#follow(live, write, isByHand);
    for (const call of this.#calls) count(call, before, object);
  }

  #check(before: Allocation, { name, revision, object, atMs, writer }: Write): void {
    const breach =
      faultOfObject(name, object) ??
      faultOfTransition(before, object) ??
      (writer === undefined ? undefined : faultOfWriter(before, object, writer)) ??
      this.#faultOfRelease(before, object) ??
      (atMs === undefined
        ? undefined
        : (this.#faultOfLoss(before, object, atMs) ?? this.#faultOfRest(before, object, atMs)));
    if (breach === undefined) return;
    this.#breach(`revision ${revision}, ${name}: ${breach} (${describe(before)} → ${describe(object)})`);
  }

  /** A member's only address, or the one of its last answer, is released while its owner lives. */
  #faultOfRelease(before: Allocation, after: Allocation): string | undefined {
    if (!isRetained(before) || isRetained(after)) return undefined;
    const { name, spec } = before;
    const isWanted = this.#owners.get(spec.workload.uid)?.wants(spec.workload) ?? false;
    if (!isWanted || (spec.state !== "Kept" && !this.#answers.has(name))) return undefined;
    const ofNamespace = [...this.#objects.values()].flatMap(({ spec: { state, holders, workload } }) =>
      (holders[0] ?? workload)?.namespace === spec.workload.namespace ? [state] : [],
    );
    const kept = ofNamespace.filter((state) => state === "Kept").length;
    // More than its pods explain.
    if (spec.state === "Kept" && kept > Math.max(RETAINED_FREELY, 2 * (ofNamespace.length - kept))) return undefined;
    const others = [...this.#objects.values()].filter(
      (each) => each.name !== name && isRetained(each) && hasSameNic(each, before),
    );
    // A member that lives with the NIC's other family alone is not given this one any more.
    const isOther = (each: NonNullable<Allocation>): boolean =>
      each.spec.state === "Bound" &&
      each.spec.ip.family !== spec.ip.family &&
      hasSameNic({ ...each, spec: { ...each.spec, ip: spec.ip } }, before);
    if (spec.state === "Kept" && [...this.#objects.values()].some(isOther)) return undefined;
    // An address outside all selected pools is given up for an address of another pool.
    const isReplaced = others.some((other) => !this.#answers.has(name) || other.spec.pool !== spec.pool);
    return isReplaced ? undefined : `released while ${spec.workload.kind} ${spec.workload.name} lives`;
  }

  /** A node is taken for lost only if its pod has been gone for a while, and is given up only after another while. */
  #faultOfLoss(before: Allocation, after: Allocation, at: Period): string | undefined {
    const { minLostMs = 0 } = this.#options;
    if (minLostMs === 0 || before === undefined) return undefined;
    const { state, quarantine, holders } = before.spec;
    if (state === "Bound" && after?.spec.quarantine?.reason === "NodeLost") {
      const known = holders.filter(({ podUid }) => this.#pods.has(podUid));
      const early = known.find(
        ({ podUid }) => at.last - (this.#pods.get(podUid)?.first ?? Number.POSITIVE_INFINITY) < minLostMs,
      );
      return early === undefined
        ? undefined
        : `taken for lost less than ${minLostMs} ms after the end of pod ${early.podUid}`;
    }
    const isHanded = quarantine?.reason === "NodeLost" && after?.spec.quarantine?.reason === "NodeLost";
    const restMs = at.last - (this.#since.get(before.name)?.first ?? Number.NEGATIVE_INFINITY);
    if (!isHanded || after.spec.node === before.spec.node || restMs >= minLostMs) return undefined;
    return `handed to another node ${Math.round(restMs)} ms after its node was lost`;
  }

  #faultOfRest(before: Allocation, after: Allocation, at: Period): string | undefined {
    const name = before?.name ?? after?.name ?? "";
    const since = this.#since.get(name);
    const restMs = since === undefined ? Number.POSITIVE_INFINITY : at.last - since.first;
    const { minReuseMs = 0, minConflictMs = 0 } = this.#options;
    const { state, quarantine } = before?.spec ?? {};
    if (quarantine?.reason === "Conflict" && state === "Quarantined" && minConflictMs > 0) {
      const wantedMs = after?.spec.state === "Bound" ? RETRY_CONFLICT_MS : minConflictMs;
      const isProxy = (this.#answering.get(quarantine.mac)?.size ?? 0) >= PROXY_ARP;
      const isOver = after?.spec.state !== "Quarantined" && !isProxy && restMs < wantedMs;
      return isOver ? `${Math.round(restMs)} ms after the conflict` : undefined;
    }
    const isClaim = after?.spec.holders.some((holder) => !isBoundTo(before, holder)) ?? false;
    if (after === undefined || !isClaim || hasSameMember(before, after)) return undefined;
    // A node's own writes lag behind its journal, whose time counts.
    if (state === "Cooling" && before?.spec.node !== after.spec.node && restMs < minReuseMs)
      return `taken over after a rest of ${Math.round(restMs)} ms`;
    const gone = this.#departures.get(name);
    if (gone === undefined || after.spec.holders.some(({ podUid }) => podUid === gone.nic.podUid)) return undefined;
    const goneMs = at.last - gone.atMs;
    return goneMs < minReuseMs ? `claimed ${Math.round(goneMs)} ms after the DEL of ${gone.nic.podUid}` : undefined;
  }

  /** Judges the write for a NIC that has the address. */
  #follow(live: Live, { name, revision, object }: Write, isByHand: boolean): void {
    const isRecorded = isRecordOf(object, live);
    if (live.state === "displaced" && isBoundTo(object, live)) live.state = "recorded";
    if (live.state !== "recorded" || isRecorded) return;
    if (isByHand) live.state = "displaced";
    else this.#breach(`revision ${revision}, ${name}: ${describe(object)} while ${nicOf(live)} lives with it`);
  }

  answered(attachment: Attachment): void {
    const others = this.#without(attachment);
    this.#live.set(attachment.name, [...others, { ...attachment, state: "answered", others }]);
  }

  /** The history has come to the place of the answer. Nothing happens if the attachment has left by now. */
  mustHold(attachment: Attachment): void {
    const { name } = attachment;
    const object = this.#objects.get(name);
    const live = this.#live.get(name)?.find((each) => isSameNic(each, attachment));
    if (live === undefined || live.state !== "answered") return;
    live.state = "recorded";
    if (!isBoundTo(object, live)) this.#breach(`${name}: ${describe(object)} when ${nicOf(live)} was answered`);
    this.#checkSharing(object, live);
    if (object !== undefined) this.#checkReturn(object, live);
  }

  /** Two NICs may have it if the record names both: a machine migrates. */
  #checkSharing(object: Allocation, live: Live): void {
    const has = (nic: Nic): boolean => isBoundTo(object, nic);
    const hasLeft = (nic: Nic): boolean => !this.#live.get(live.name)?.some((each) => isSameNic(each, nic));
    for (const other of live.others)
      if (!(isSharing(object) && has(live) && (has(other) || hasLeft(other))))
        this.#breach(`${live.name}: given to ${nicOf(live)} while ${nicOf(other)} has it`);
  }

  /** A NIC gets its own address, or that of its member's previous NIC, for as long as that is retained. */
  #checkReturn(object: NonNullable<Allocation>, nic: Nic): void {
    for (const other of this.#objects.values()) {
      if (other.name === object.name || other.spec.pool !== object.spec.pool) continue;
      const isOwn = isBoundTo(other, nic) && other.spec.ip.family === object.spec.ip.family;
      const isMembers = this.#answers.has(other.name) && isRetained(other) && hasSameNic(other, object);
      if (isOwn || isMembers)
        this.#breach(`${object.name}: given to ${nicOf(nic)}, whose ${other.name} is ${describe(other)}`);
    }
    if (isRetained(object)) this.#answers.add(object.name);
  }

  leaving(attachment: Attachment, nowMs: number): void {
    const { name } = attachment;
    const rest = this.#without(attachment);
    const live = this.#live.get(name)?.find((each) => isSameNic(each, attachment));
    if (live === undefined) this.#breach(`${name}: ${nicOf(attachment)} leaves, but was never answered`);
    else if (live.state === "answered") this.#checkSharing(this.#objects.get(name), live);
    if (rest.length === 0) this.#live.delete(name);
    else this.#live.set(name, rest);
    this.#departures.set(name, { nic: attachment, atMs: nowMs });
  }

  /** An ADD that may be answered with one of these is about to be called. */
  asked(choice: Choice): Call {
    const taken = [...this.#objects.values()].filter((object) => choice.has(object)).length;
    const call = { choice, taken, most: taken };
    this.#calls.add(call);
    return call;
  }

  /** The history has come to the place of the answer, whatever that is. */
  ended(call: Call): void {
    this.#calls.delete(call);
  }

  /** {@link ended}: it was refused, because none of the addresses is free. `whose`: for the text. */
  exhausted(call: Call, whose = "an ADD"): void {
    this.ended(call);
    const { size } = call.choice;
    if (call.most < size) this.#breach(`${whose} was refused, but never were more than ${call.most} of ${size} taken`);
  }

  /** For breaches that the caller has found. */
  report(breach: string): void {
    this.#breach(breach);
  }

  #without(attachment: Attachment): Live[] {
    return (this.#live.get(attachment.name) ?? []).filter((other) => !isSameNic(other, attachment));
  }

  #breach(text: string): void {
    this.#breaches++;
    if (this.#texts.length < MAX_TEXTS) this.#texts.push(text);
  }
}

/** Follows how many of the call's addresses have records. */
function count(call: Call, before: Allocation, after: Allocation): void {
  const change =
    Number(after !== undefined && call.choice.has(after)) - Number(before !== undefined && call.choice.has(before));
  call.taken += change;
  call.most = Math.max(call.most, call.taken);
}

function isSameNic(a: Nic, b: Nic): boolean {
  return a.podUid === b.podUid && a.ifName === b.ifName;
}

function isSameState(before: Allocation, after: Allocation): boolean {
  return before?.spec.state === after?.spec.state && before?.spec.quarantine?.reason === after?.spec.quarantine?.reason;
}
