/** Invariants of addresses, after every step and at the end. It sees NICs and objects, never the product's memory. */

import { ErrorCode } from "../../host/cni/error.ts";
import { formatIp } from "../../host/net/ip.ts";
import type { Mac } from "../../host/net/mac.ts";
import { parseAllocationName } from "../../host/resources/ip-allocation.ts";
import type { StoredObject } from "../fakes/memory-api-server.ts";
import type { PodObject } from "./kubelet.ts";
import { addressIn, type Nic, type Segment } from "./namespaces.ts";

interface Spec {
  readonly state: string;
  readonly node: string;
  readonly holders?: readonly { readonly podUID: string; readonly interface: string; readonly node: string }[];
  readonly workload?: { readonly uid: string; readonly member: string; readonly interface?: string };
  readonly quarantine?: {
    readonly reason: string;
    readonly mac?: string;
    readonly holder?: { readonly podUID: string };
  };
}

interface Missing {
  /** When it was deleted: milliseconds. */
  readonly atMs: number;
  /** Milliseconds since then without a break in which all agents and a controller acted and a NIC had the address. */
  forMs: number;
}

/** An address that a NIC has released is on no other pod's NIC sooner than this: milliseconds (cooling). */
const REST_MS = 2_000;
/** When the record of an address is deleted that goes with the whole registry, or with its present: milliseconds. */
const LOST = Number.NEGATIVE_INFINITY;
/** Time for which no pod is made after a record was deleted by hand, unless it is back: milliseconds. */
const RECREATED_WITHIN_MS = 5_000;
/** The same after a change of the leading controller, which agents notice at their next question. */
const IDLE_MS = 15_000;
/**
 * A pod whose new sandbox gets its addresses so soon after their release has the same ones: milliseconds
 * (sandbox-restart).
 */
const OWN_MS = 3_000;
/** A machine that leaves may have been heard so long ago, by a node that was on since: milliseconds. */
const HEARD_MS = 10_000;
/** Most addresses of a family that one node has in quarantine because of a machine that answers for all (conflict). */
const PROXY_ARP_MOST = 3;
/**
 * While all agents and a controller act, a record that was deleted by hand while a NIC has its address is back
 * within: milliseconds (recreate).
 */
const RECREATED_MS = 20_000;
/** The same if another controller leads since: agents notice that when they ask next for the leader. */
const RECREATED_UNTOLD_MS = 240_000;
/**
 * While all agents and a controller act, a member waits no longer than this for the node of an earlier pod of it:
 * milliseconds (retention).
 */
const AWAITED_MS = 20_000;
/**
 * The same if its record was restored by hand while the earlier pod was there, or another controller leads since:
 * until a sweep has found that.
 */
const AWAITED_UNTOLD_MS = 120_000;
/** Most writes of a record for one ADD. */
const WRITES_MOST = 16;
const PROXY_MAC = "0a:00:00:00:00:77" as Mac;

/** Another machine of the segment that has an address. */
interface Foreign {
  readonly sinceMs: number;
  untilMs: number;
}

/** Time for which agents may still take a node for lost that has come back: milliseconds. */
const BACK_MS = 30_000;

interface LedgerOptions {
  readonly nowMs: () => number;
  /** Whether the API server has the pod with this UID, and it has not finished. */
  readonly isRunning: (podUID: string) => boolean;
  /** Addresses of the pools. */
  readonly addresses: readonly string[];
  /** Nothing but the scarcity of addresses is in the way of an ADD. */
  readonly isStrict: boolean;
  /** There are always free addresses, so that no pod gets one that another has just released. */
  readonly keepsOwn: boolean;
  /** Of its agents a migration's target may get what its IPAMClaim reports, which the machine has left behind. */
  readonly hasLastRelease: boolean;
  /** A write may be carried out so long after its caller ended: milliseconds. */
  readonly lateMs: number;
  readonly sharing?: Sharing;
  /** When a node's agent knows of a pool or reservation that was written then, and nothing of before is under way. */
  readonly knownMs: (node: string, atMs: number) => number;
  /** Whether the member's NIC may have the address, or any, in place of a former one; by {@link memberKey}. */
  readonly mayChange?: (key: string, address?: string) => boolean;
}

/** Pods of one virtual machine. */
interface Sharing {
  /** By name; another pod's is its name. */
  readonly identityOf: (pod: string) => string;
  /** Whether both may have an address at a time, and no third one. */
  readonly mayShare: (one: Nic, other: Nic) => boolean;
}

export class Ledger implements Segment {
  readonly problems: string[] = [];
  readonly #live = new Map<string, Set<Nic>>();
  /** Objects by address. */
  readonly #objects = new Map<string, Spec>();
  /** By node; infinite while it is lost. */
  readonly #lostUntilMs = new Map<string, number>();
  /** By node. */
  readonly #bootedMs = new Map<string, number>();
  /** Records that were deleted by hand, until the product has made them again. */
  readonly #deletedByHand = new Map<string, Missing>();
  /** `db-0 eth0 4`: the first address that the member's pods have shown. */
  readonly #members = new Map<string, string>();
  /**
   * By the same: addresses that the member's pods left on lost nodes, that were in no pool for a time, that were
   * restored, and that it need not get again.
   */
  readonly #leftBehind = new Map<string, Set<string>>();
  /**
   * By the same: recorded for it when the journal of their node was lost, which alone knew which of them was answered.
   */
  readonly #undecided = new Map<string, Set<string>>();
  /**
   * By address: the pod that its record names, or named last, and the writes of the record since it does, or since
   * the pod's last ADD.
   */
  readonly #holds = new Map<string, { readonly podUID: string; readonly writers: Set<string>; writes: number }>();
  /** Most writes of a record for one ADD. */
  mostWrites = 0;
  adds = 0;
  restarts = 0;
  readonly #options: LedgerOptions;
  /** When each address came off its last NIC, or is about to, and whose that was. */
  readonly #left = new Map<string, { readonly pod: string; readonly atMs: number }>();
  /** Since when no pod has needed the address: undefined while one does. */
  readonly #idleSinceMs = new Map<string, number | undefined>();
  readonly #foreign = new Map<string, Foreign>();
  #answersAllUntilMs = Number.NEGATIVE_INFINITY;
  /** Since when it does so without a break. */
  #answersAllSinceMs = Number.NEGATIVE_INFINITY;
  /** When each address in quarantine was put there. */
  readonly #quarantinedMs = new Map<string, number>();
  /** The last address of each NIC of a pod. */
  readonly #own = new Map<string, string>();
  /** Addresses that each NIC of a pod has ever had. */
  readonly #everHad = new Set<string>();
  /** Since when no pool gives the address to pods. */
  readonly #outsideSinceMs = new Map<string, number>();
  readonly #poolsChangedMs = new Map<4 | 6, number>();
  readonly #withoutJournal = new Set<string>();
  /** By address that was in quarantine for a lost node: until when that may still be in force for an ADD. */
  readonly #backUntilMs = new Map<string, number>();
  /** By node: the addresses of the members' pods when its journal was copied. */
  readonly #copied = new Map<string, ReadonlyMap<string, string>>();
  readonly #finished = new Set<string>();
  /**
   * By UID of a pod whose last ADD was refused because an earlier pod of the member has the address on another node:
   * for how long: milliseconds.
   */
  readonly #awaiting = new Map<string, { readonly text: string; readonly address: string; forMs: number }>();
  /** By node: when its journal was lost. */
  readonly #journalLostMs = new Map<string, number>();
  /**
   * By address: when its record was left to the one of two pods that had it, or written late for a node without its
   * journal: the node is told of it.
   */
  readonly #leftToMs = new Map<string, number>();
  /** By address: when its record was written by hand, or very late. */
  readonly #restoredMs = new Map<string, number>();
  #checkedMs = 0;
  /** Addresses whose records were once deleted by hand. */
  readonly #touchedByHand = new Set<string>();

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  onUp(nic: Nic): void {
    const nowMs = this.#options.nowMs();
    for (const address of nic.addresses) {
      this.#idleSinceMs.set(address, undefined);
      const left = this.#left.get(address);
      this.#left.delete(address);
      if (
        left !== undefined &&
        left.pod !== this.#identityOf(nic) &&
        nowMs - left.atMs < REST_MS &&
        !this.#touchedByHand.has(address)
      )
        this.problems.push(
          `${address} is on ${describeNic(nic)} only ${nowMs - left.atMs} ms after ${left.pod} has released it`,
        );
      const foreign = this.#foreign.get(address);
      if (foreign !== undefined && foreign.sinceMs < nic.sinceMs && nowMs < foreign.untilMs)
        this.problems.push(`${address} is on ${describeNic(nic)} and on another machine`);
      const all = this.#live.get(address) ?? new Set();
      all.add(nic);
      this.#live.set(address, all);
      // Its earlier pod's link goes in a moment.
      const isSame = (each: Nic): boolean => this.#identityOf(each) === this.#identityOf(nic);
      const others = [...all].filter((each) => each !== nic && !(each.isReleased && isSame(each)));
      const isShared = others.length === 1 && others.every((each) => this.#options.sharing?.mayShare(each, nic));
      if (others.length > 0 && !isShared)
        this.problems.push(`${address} is on two NICs: ${[...all].map(describeNic).join(" and ")}`);
      this.#requireRecord(address);
    }
  }

  onDown(nic: Nic, addresses: readonly string[]): void {
    for (const address of addresses) {
      this.#noteLeft(nic, address);
      const all = this.#live.get(address);
      all?.delete(nic);
      if (all?.size === 0) this.#live.delete(address);
    }
  }

  onTaken(nic: Nic, from: Parameters<Segment["onTaken"]>[1]): void {
    const of = from === "an orphan" ? from : from.containerId;
    const isRight = from === "an orphan" ? nic.uid !== "" && !this.#options.isRunning(nic.uid) : of === nic.containerId;
    if (!isRight) this.problems.push(`${describeNic(nic)} loses addresses or is set down as if it were ${of}'s`);
  }

  onReleasing(nic: Nic): void {
    for (const address of nic.addresses) this.#noteLeft(nic, address);
  }

  onReleased(nic: Nic): void {
    for (const address of nic.addresses) this.#idleSinceMs.set(address, this.#options.nowMs());
  }

  #noteLeft(nic: Nic, address: string): void {
    const isInUse = [...(this.#live.get(address) ?? [])].some((each) => each !== nic && !each.isReleased);
    if (!isInUse && !this.#left.has(address))
      this.#left.set(address, { pod: this.#identityOf(nic), atMs: this.#options.nowMs() });
  }

  #identityOf({ pod }: Nic): string {
    return this.#options.sharing?.identityOf(pod) ?? pod;
  }

  macOf(address: string): Mac | undefined {
    const nowMs = this.#options.nowMs();
    if (nowMs < this.#answersAllUntilMs) return PROXY_MAC;
    const foreign = this.#foreign.get(address);
    if (foreign !== undefined && nowMs < foreign.untilMs) return `06:00:00:00:${hexOf(address)}` as Mac;
    return this.#live.get(address)?.values().next().value?.mac;
  }

  /** Another machine has one of the addresses that no member of a set had, for so long. */
  addForeign(pick: (from: readonly string[]) => string, forMs: number): void {
    const nowMs = this.#options.nowMs();
    const had = new Set(this.#members.values());
    const free = this.#options.addresses.filter((each) => !had.has(each) && !this.#live.has(each));
    if (free.length > 0) this.#foreign.set(pick(free), { sinceMs: nowMs, untilMs: nowMs + forMs });
  }

  /** A machine answers for every address, for so long. */
  answerAll(forMs: number): void {
    const nowMs = this.#options.nowMs();
    if (nowMs >= this.#answersAllUntilMs) this.#answersAllSinceMs = nowMs;
    this.#answersAllUntilMs = nowMs + forMs;
  }

  /** All other machines are gone. */
  removeForeign(): void {
    const nowMs = this.#options.nowMs();
    for (const each of this.#foreign.values()) each.untilMs = Math.min(each.untilMs, nowMs);
    this.#answersAllUntilMs = Math.min(this.#answersAllUntilMs, nowMs);
  }

  /** An ADD of the pod was refused: the writes for the next one are counted anew. */
  addEnded(uid: string): void {
    for (const [address, { podUID }] of this.#holds) if (podUID === uid) this.#holds.delete(address);
  }

  /** The ADD of a pod was refused. `waiting`: NICs without an address, with its own. */
  refused({ name, uid }: PodObject, error: unknown, expected: readonly PodObject[]): void {
    const [text, awaited = ""] =
      /^Address (\S+) is retained .* still has it on node "\S+"/.exec(String(Object(error).message)) ?? [];
    if (text === undefined) this.#awaiting.delete(uid);
    // Another pod than before: its agent finds out by itself that it is gone.
    else if (this.#awaiting.get(uid)?.text !== `${name} (${uid}): ${text}`)
      this.#awaiting.set(uid, { text: `${name} (${uid}): ${text}`, address: awaited, forMs: 0 });
    // The API server may hear of it later than the pod, or never.
    const [, quarantined] = /^Address (\S+) of pool .* it is quarantined/.exec(String(Object(error).message)) ?? [];
    if (quarantined !== undefined) this.forgetAddress(quarantined);
    if (!this.#options.isStrict || Object(error).code !== ErrorCode.PoolExhausted) return;
    const nowMs = this.#options.nowMs();
    const uids = new Set(expected.map(({ uid }) => uid));
    const isIdle = (address: string): boolean => {
      const sinceMs = this.#idleSinceMs.has(address) ? this.#idleSinceMs.get(address) : 0;
      if (sinceMs === undefined || nowMs - sinceMs < IDLE_MS || this.#live.has(address)) return false;
      const { state, holders = [] } = this.#objects.get(address) ?? {};
      return (
        state === undefined ||
        state === "Cooling" ||
        (state === "Bound" && !holders.some(({ podUID }) => uids.has(podUID)))
      );
    };
    const up = new Set(
      [...this.#live.values()].flatMap((nics) => [...nics].map(({ uid, ifName }) => `${uid} ${ifName}`)),
    );
    const waiting = expected.flatMap(({ uid, nics }) => nics.filter(([ifName]) => !up.has(`${uid} ${ifName}`)));
    for (const isOfFamily of [(each: string) => each.includes(":"), (each: string) => !each.includes(":")]) {
      const idle = this.#options.addresses.filter((each) => isOfFamily(each) && isIdle(each));
      if (idle.length > waiting.length)
        this.problems.push(`${name} is refused, although ${idle[0]} has been out of use for ${IDLE_MS / 1000} s`);
    }
  }

  /**
   * Called every now and then. `isServed`: all agents and kubelets and a controller act, and no webhook keeps writes;
   * `ledSinceMs`: since when that controller leads.
   */
  checkAwaited(isServed: boolean, ledSinceMs: number): void {
    const passedMs = this.#options.nowMs() - this.#checkedMs;
    this.#checkedMs = this.#options.nowMs();
    for (const [uid, awaiting] of this.#awaiting) {
      if (!this.#options.isRunning(uid)) this.#awaiting.delete(uid);
      awaiting.forMs = isServed ? awaiting.forMs + passedMs : 0;
      const isTold = (atMs = Number.POSITIVE_INFINITY): boolean => atMs > ledSinceMs;
      let withinMs = isTold(this.#restoredMs.get(awaiting.address)) ? AWAITED_MS : AWAITED_UNTOLD_MS;
      if (!isTold(this.#leftToMs.get(awaiting.address))) withinMs = RECREATED_UNTOLD_MS;
      if (awaiting.forMs < withinMs) continue;
      this.problems.push(`${awaiting.text}, for ${awaiting.forMs / 1000} s`);
      this.#awaiting.delete(uid);
    }
    for (const [address, missing] of this.#deletedByHand) {
      const nics = this.#live.get(address);
      // It was restored by hand, too, and is correct: the product has nothing to write.
      if (nics !== undefined && [...nics].every((nic) => isRecorded(nic, this.#objects.get(address)))) {
        this.#deletedByHand.delete(address);
        continue;
      }
      missing.forMs = isServed && nics !== undefined ? missing.forMs + passedMs : 0;
      if (missing.forMs < (missing.atMs > ledSinceMs ? RECREATED_MS : RECREATED_UNTOLD_MS)) continue;
      const owners = [...(nics ?? [])].map(describeNic).join(", ");
      this.problems.push(`${address} is on ${owners}, and its record is not back after ${missing.forMs / 1000} s`);
      this.#deletedByHand.delete(address);
    }
  }

  /** Whether no other pod than the allocation's has its address. */
  mayRestore(name: string, spec: StoredObject["spec"]): boolean {
    const holders = (spec as unknown as Spec).holders ?? [];
    const isOf = ({ uid, ifName }: Nic): boolean =>
      holders.some(({ podUID, interface: other }) => podUID === uid && other === ifName);
    return [...(this.#live.get(addressOf(name)) ?? [])].every(isOf);
  }

  /** Its agent has looked for the object for the last time, and finds it with the next comparison of all. */
  createdVeryLate(address: string): void {
    this.#restoredMs.set(address, Number.NEGATIVE_INFINITY);
  }

  /** Notes a write of the API server. */
  written(before: StoredObject | undefined, after: StoredObject | undefined, isByHand: boolean, writer: string): void {
    const address = addressOf((after ?? before)?.metadata.name ?? "");
    if (this.#idleSinceMs.get(address) !== undefined && after?.spec.state !== "Cooling")
      this.#idleSinceMs.set(address, this.#options.nowMs());
    const former = this.#objects.get(address);
    const now = after?.spec as unknown as Spec | undefined;
    if (now === undefined) this.#objects.delete(address);
    else this.#objects.set(address, now);
    if (former?.quarantine?.reason === "NodeLost") this.#backUntilMs.set(address, this.#options.nowMs() + BACK_MS);
    if (!isByHand && former?.workload !== undefined && (now === undefined || !isRecordedFor(former.workload, now)))
      this.#leftBehindOf(memberKey(former.workload.member, former.workload.interface ?? "", address)).delete(address);
    if (after?.spec.state === "Quarantined" && before?.spec.state !== "Quarantined") this.#requireCause(address, after);
    if (isByHand) {
      this.#touchedByHand.add(address);
      this.#holds.delete(address);
      const isTold = now?.holders?.some(({ podUID }) => this.#options.isRunning(podUID)) !== true;
      this.#restoredMs.set(address, isTold ? this.#options.nowMs() : Number.NEGATIVE_INFINITY);
      if (after === undefined) this.#deletedByHand.set(address, { atMs: this.#options.nowMs(), forMs: 0 });
      this.forgetAddress(address);
      const { member, interface: ifName = "" } = now?.workload ?? {};
      if (member !== undefined) this.#leftBehindOf(memberKey(member, ifName, address)).add(address);
    } else {
      this.#countWrite(address, after, writer);
      this.#noteClaim(address, former, now);
      const isLeft = holdersOf(before) > 1 && holdersOf(after) === 1;
      if (isLeft || this.#mayBeLate(after)) this.#leftToMs.set(address, this.#options.nowMs());
    }
    if (after !== undefined && !isByHand && !this.#isStillLost(address)) this.#deletedByHand.delete(address);
    this.#requireRecord(address);
  }

  /** Whether the registry was lost, and the record since then is not the NIC's, which is written later. */
  #isStillLost(address: string): boolean {
    if (this.#deletedByHand.get(address)?.atMs !== LOST) return false;
    const spec = this.#objects.get(address);
    return [...(this.#live.get(address) ?? [])].some((nic) => !nic.isReleased && !isRecorded(nic, spec));
  }

  /**
   * Whether a NIC has an address whose record was deleted by hand just now. Another pod that claims it before the
   * record is back has it, too (recreate).
   */
  get lacksRecord(): boolean {
    const sinceMs = this.#options.nowMs() - RECREATED_WITHIN_MS;
    return [...this.#deletedByHand].some(([address, { atMs }]) => atMs > sinceMs && this.#live.has(address));
  }

  /**
   * All records are gone, or are those of an earlier time: agents have to write their NICs' addresses anew, and pods
   * are made meanwhile.
   */
  loseRegistry(): void {
    for (const missing of this.#deletedByHand.values()) Object.assign(missing, { atMs: LOST });
  }

  /**
   * Checks that the number of writes of a record for one ADD, from the claim to the end, is bounded, whatever goes
   * wrong. An agent that starts claims anew.
   */
  #countWrite(address: string, after: StoredObject | undefined, writer: string): void {
    const [{ podUID } = { podUID: "" }] = (after?.spec as unknown as Spec | undefined)?.holders ?? [];
    const before = this.#holds.get(address);
    const isSame = before !== undefined && (podUID === "" || podUID === before.podUID);
    const hold = isSame ? before : { podUID, writers: new Set<string>(), writes: 0 };
    this.#holds.set(address, hold);
    if (isAgent(writer) && !hold.writers.has(writer)) hold.writes = 0;
    hold.writers.add(writer);
    hold.writes++;
    this.mostWrites = Math.max(this.mostWrites, hold.writes);
    if (hold.writes === WRITES_MOST + 1)
      this.problems.push(`${address} was written more than ${WRITES_MOST} times for ${podUID}`);
  }

  /**
   * The reasons for an address's quarantine: another machine, though one that answers for all only for few (conflict);
   * or a pod that is gone, on a node that has not confirmed it (node-lost).
   */
  #requireCause(address: string, { spec }: StoredObject): void {
    const { quarantine: { reason, mac = "", holder } = { reason: "" }, node } = spec as unknown as Spec;
    if (reason === "NodeLost" && holder !== undefined && this.#options.isRunning(holder.podUID))
      this.problems.push(`${address} is quarantined for a lost node, though its pod ${holder.podUID} is there`);
    if (reason !== "Conflict" || mac === "") return;
    this.#left.delete(address);
    this.forgetAddress(address);
    const nowMs = this.#options.nowMs();
    this.#quarantinedMs.set(address, nowMs);
    const foreign = this.#foreign.get(address);
    const isProxy = mac === PROXY_MAC;
    // A node that was off writes an earlier observation.
    const toldMs = Math.max(foreign?.untilMs ?? Number.NEGATIVE_INFINITY, this.#bootedMs.get(node) ?? 0);
    if (!isProxy && (foreign === undefined || nowMs > toldMs + HEARD_MS))
      this.problems.push(`${address} is quarantined because of ${mac}, which is no other machine`);
    // Addresses that were quarantined before the machine fell silent may be free on a node that cannot write that yet.
    const isCurrent = (other: string): boolean => (this.#quarantinedMs.get(other) ?? 0) >= this.#answersAllSinceMs;
    const isSame = ([other, each]: readonly [string, Spec]): boolean =>
      each.quarantine?.mac === mac && each.node === node && familyOf(other) === familyOf(address) && isCurrent(other);
    const same = [...this.#objects].filter(isSame).length;
    if (isProxy && same > PROXY_ARP_MOST)
      this.problems.push(`${same} addresses of ${node} are quarantined because of one machine that answers for all`);
  }

  /** Every address that a pod shows is recorded as its own, or quarantined because its node is lost. */
  #requireRecord(address: string): void {
    if (this.#deletedByHand.has(address)) return;
    const spec = this.#objects.get(address);
    for (const nic of this.#live.get(address) ?? []) {
      if (nic.isReleased || isRecorded(nic, spec) || this.#finished.has(nic.uid)) continue;
      const found = spec === undefined ? "nothing" : `${spec.state} ${JSON.stringify(spec.holders ?? [])}`;
      this.problems.push(`${address} is on ${describeNic(nic)}, and its record is ${found}`);
    }
  }

  /** A pod has shown the addresses. `member`: those of a workload that retains them. */
  shown({ name, uid, node }: PodObject, ifName: string, addresses: readonly string[], isMember: boolean): void {
    this.adds++;
    this.#awaiting.delete(uid);
    const families = addresses.map((address) => (address.includes(":") ? 6 : 4));
    if (addresses.length !== 2 || new Set(families).size !== 2)
      this.problems.push(`${name} (${uid}) got ${addresses.join(" ")} for ${ifName}: one of each family was due`);
    for (const address of addresses) this.#holds.delete(address);
    for (const address of addresses) this.#requirePool({ name, uid, node }, ifName, address);
    if (this.#options.keepsOwn) this.#requireOwn({ name, uid, node }, ifName, addresses);
    this.#requireFree({ name, uid }, ifName, addresses);
    if (!isMember) return;
    for (const address of addresses) {
      const key = memberKey(name, ifName, address);
      this.#noteLeftBehind(key);
      const had = this.#members.get(key);
      const undecided = this.#undecided.get(key);
      this.#undecided.delete(key);
      // Claims from before the loss of the registry are lost with it, also if they are answered only now.
      if (this.#outsideSinceMs.has(address) || this.#deletedByHand.get(address)?.atMs === LOST) {
        this.#members.delete(key);
        continue;
      }
      if (had === undefined) this.#members.set(key, address);
      else {
        this.restarts++;
        if (had === address) continue;
        this.#members.set(key, address);
        const isUndecided = undecided?.has(had) === true && undecided.has(address);
        const leftBehind = this.#leftBehindOf(key);
        const isOther = leftBehind.has(address) || this.#options.mayChange?.(key, address) === true;
        const mayReturn = isOther && (this.#options.hasLastRelease || !this.#isMigrating(had, uid));
        // Two addresses of the member are retained until one of them counts as surplus.
        if (isUndecided || this.#isLeftBehind(had) || mayReturn) leftBehind.add(had);
        else this.problems.push(`${name} (${uid}) had ${had} on ${ifName}, and has ${address} now`);
      }
    }
  }

  /**
   * Requires that the last address of a machine that is there belongs to no other one, unless it was left on a lost
   * node.
   */
  #requireFree({ name, uid }: Pick<PodObject, "name" | "uid">, ifName: string, addresses: readonly string[]): void {
    for (const [key, had] of this.#members) {
      if (
        this.#options.mayChange?.(key) === true ||
        !key.startsWith("vm-") ||
        !addresses.includes(had) ||
        key === memberKey(name, ifName, had)
      )
        continue;
      if (!this.#isLeftBehind(had) && !this.#leftBehindOf(key).has(had))
        this.problems.push(`${name} (${uid}) got ${had} for ${ifName}, which is ${key}'s`);
    }
  }

  /** Returns the API server's record of the address. */
  recordOf(address: string): Spec | undefined {
    return this.#objects.get(address);
  }

  /** Returns the addresses of the NIC. */
  addressesOf(uid: string, ifName: string): readonly string[] {
    const isOf = (nic: Nic): boolean => nic.uid === uid && nic.ifName === ifName;
    return [...this.#live].flatMap(([address, nics]) => ([...nics].some(isOf) ? [address] : []));
  }

  /** A pod may keep its address, but gets none outside all pools (pool-changes). */
  #requirePool({ name, uid, node }: Pick<PodObject, "name" | "uid" | "node">, ifName: string, address: string): void {
    const key = `${uid} ${ifName} ${address}`;
    const sinceMs = this.#outsideSinceMs.get(address);
    const isNew = !this.#everHad.has(key);
    this.#everHad.add(key);
    // An ADD that is under way during a change may meet a pool of before with ranges of after.
    const changedMs = Math.max(sinceMs ?? 0, this.#poolsChangedMs.get(familyOf(address)) ?? 0);
    if (sinceMs === undefined || !isNew || this.#options.nowMs() < this.#options.knownMs(node, changedMs)) return;
    this.problems.push(`${name} (${uid}) got ${address} for ${ifName}, which no pool gives to pods`);
  }

  /** `usable`: the addresses that pools give to pods from now on; `family`: of the pool that has changed. */
  poolsChanged(usable: ReadonlySet<string>, family: 4 | 6): void {
    this.#poolsChangedMs.set(family, this.#options.nowMs());
    for (const address of this.#options.addresses) {
      if (usable.has(address)) this.#outsideSinceMs.delete(address);
      else if (!this.#outsideSinceMs.has(address)) {
        this.#outsideSinceMs.set(address, this.#options.nowMs());
        // Its ADD may be answered yet.
        for (const { podUID, interface: ifName } of this.#objects.get(address)?.holders ?? [])
          this.#everHad.add(`${podUID} ${ifName} ${address}`);
        for (const [key, had] of this.#members) if (had === address) this.#leftBehindOf(key).add(address);
        this.forgetAddress(address);
      }
    }
  }

  /** The node has reported, or is silent or deleted. */
  nodeWritten(name: string, isReady: boolean): void {
    const isLost = this.#lostUntilMs.get(name) === Number.POSITIVE_INFINITY;
    if (!isReady) this.#lostUntilMs.set(name, Number.POSITIVE_INFINITY);
    else if (isLost) this.#lostUntilMs.set(name, this.#options.nowMs() + BACK_MS);
  }

  /**
   * On a lost node, or one whose agent does not act: the member's next pod, whose NIC cannot probe, gets another
   * address (node-lost).
   */
  #isLeftBehind(address: string): boolean {
    const { node, quarantine } = this.#objects.get(address) ?? {};
    if (quarantine?.reason === "NodeLost" || (this.#backUntilMs.get(address) ?? 0) > this.#options.nowMs()) return true;
    return node !== undefined && (this.#lostUntilMs.get(node) ?? 0) > this.#options.nowMs();
  }

  /**
   * A pod of the member is answered: records for the member that are left behind now may be the next pod's, also if
   * none of its pods has shown them yet.
   */
  #noteLeftBehind(key: string): void {
    for (const [address, { workload }] of this.#objects) {
      const { member = "", interface: ifName = "" } = workload ?? {};
      if (memberKey(member, ifName, address) === key && this.#isLeftBehind(address))
        this.#leftBehindOf(key).add(address);
    }
  }

  /** An address claimed for a member while its own is left behind is the next pod's while it is recorded for it. */
  #noteClaim(address: string, former: Spec | undefined, now: Spec | undefined): void {
    if (now?.workload === undefined) return;
    const key = memberKey(now.workload.member, now.workload.interface ?? "", address);
    const had = this.#members.get(key);
    const isNew = former?.workload === undefined || !isRecordedFor(former.workload, now);
    if (isNew && had !== undefined && this.#isLeftBehind(had)) this.#leftBehindOf(key).add(address);
  }

  /** Whether an agent that had the journal may have sent the write. */
  #mayBeLate(after: StoredObject | undefined): boolean {
    const { node = "", holders = [] } = (after?.spec as unknown as Spec | undefined) ?? {};
    const lostMs = this.#journalLostMs.get(node) ?? Number.NEGATIVE_INFINITY;
    return holders.length > 0 && this.#options.nowMs() - lostMs <= this.#options.lateMs;
  }

  /** Whether another launcher has the address, from which the machine migrates. */
  #isMigrating(address: string, uid: string): boolean {
    const isLauncher = (nic: Nic): boolean => this.#identityOf(nic) !== nic.pod;
    return [...(this.#live.get(address) ?? [])].some((nic) => nic.uid !== uid && !nic.isReleased && isLauncher(nic));
  }

  #leftBehindOf(key: string): Set<string> {
    return this.#leftBehind.getOrInsertComputed(key, () => new Set());
  }

  /**
   * The node is out of service: only its journal knew that an address that it had claimed for a member was not
   * answered yet (retention).
   */
  nodeOff(name: string): void {
    for (const [address, { node, workload }] of this.#objects) {
      if (node !== name || workload === undefined) continue;
      const key = memberKey(workload.member, workload.interface ?? "", address);
      if (this.#members.get(key) !== address) this.#leftBehindOf(key).add(address);
    }
  }

  /** The node's journal is lost. */
  loseJournal(node: string): void {
    this.#withoutJournal.add(node);
    this.#journalLostMs.set(node, this.#options.nowMs());
    for (const [address, { node: of, workload }] of this.#objects) {
      if (of !== node || workload === undefined) continue;
      const key = memberKey(workload.member, workload.interface ?? "", address);
      this.#undecided.set(key, (this.#undecided.get(key) ?? new Set()).add(address));
    }
  }

  /**
   * Another machine has the node's name: members' addresses there stay behind with the former machine, unless the other
   * one finds them silent.
   */
  replaceMachine(node: string): void {
    for (const [key, address] of [...this.#members])
      if (this.#objects.get(address)?.node === node) this.#forget(key, address);
  }

  copyJournal(node: string): void {
    this.#copied.set(node, new Map(this.#members));
  }

  boot(node: string): void {
    this.#bootedMs.set(node, this.#options.nowMs());
  }

  /**
   * The journal may take an address that the member was answered after the copy for unanswered, and so not for the
   * member's.
   */
  restoreJournal(node: string): void {
    const then = this.#copied.get(node);
    for (const [key, address] of [...this.#members]) {
      if (this.#objects.get(address)?.node !== node) continue;
      if (then?.get(key) !== address) this.#forget(key, address);
    }
  }

  #requireOwn(
    { name, uid, node }: Pick<PodObject, "name" | "uid" | "node">,
    ifName: string,
    now: readonly string[],
  ): void {
    for (const address of now) {
      const key = `${uid} ${ifName} ${address.includes(":")}`;
      const had = this.#own.get(key);
      this.#own.set(key, address);
      const left = had === undefined || had === address ? undefined : this.#left.get(had);
      const isRecent = left !== undefined && this.#options.nowMs() - left.atMs < OWN_MS && left.pod === name;
      if (isRecent && !this.#withoutJournal.has(node))
        this.problems.push(`${name} (${uid}) has released ${had} on ${ifName} only just now, and has ${address}`);
    }
  }

  finish(uid: string): void {
    this.#finished.add(uid);
  }

  /** A member whose address another machine has, or whose record was deleted by hand, gets another one. */
  forgetAddress(address: string): void {
    for (const [key, had] of [...this.#members]) if (had === address) this.#members.delete(key);
  }

  /**
   * The set no longer has the member, or its retained address was deleted. A node whose agent does not act may still
   * say that the member has it. `uid`: of a pod of it that keeps its present one.
   */
  forgetMember(name: string, uid?: string): void {
    for (const [key, had] of [...this.#members].filter(([each]) => each.startsWith(`${name} `)))
      if (![...(this.#live.get(had) ?? [])].some((nic) => nic.uid === uid)) this.#forget(key, had);
  }

  /** The member may get another address, and this one again as long as it is recorded for it. */
  #forget(key: string, had: string): void {
    this.#members.delete(key);
    this.#leftBehindOf(key).add(had);
  }

  /** Returns the faults when all is quiet: sentences. `others`: pods that may have addresses, and need not. */
  unfinished(expected: readonly PodObject[], others: readonly PodObject[] = []): string[] {
    const faults: string[] = [];
    const had = new Map<string, number>();
    const uids = new Set([...expected, ...others].map(({ uid }) => uid));
    for (const [address, nics] of this.#live)
      for (const nic of nics) {
        had.set(`${nic.uid} ${nic.ifName}`, (had.get(`${nic.uid} ${nic.ifName}`) ?? 0) + 1);
        if (!uids.has(nic.uid)) faults.push(`${address} is on ${describeNic(nic)}, whose pod is gone`);
      }
    for (const { name, uid, nics } of expected)
      for (const [ifName] of nics) {
        const count = had.get(`${uid} ${ifName}`) ?? 0;
        if (count !== 2) faults.push(`${name} (${uid}) has ${count} addresses on ${ifName}`);
      }
    for (const [address, { state, node, holders = [], workload }] of this.#objects) {
      const isOfPod = state === "Bound" && holders.length > 0 && holders.every(({ podUID }) => uids.has(podUID));
      // A row that was taken in without its journal may be of a NIC, so it stays as long as the pod; so do records that
      // its agent finds only within the hour.
      const isUntold = this.#restoredMs.get(address) === Number.NEGATIVE_INFINITY;
      if (isOfPod && (this.#live.has(address) || this.#withoutJournal.has(node) || isUntold)) continue;
      faults.push(`${address} is still ${state} ${JSON.stringify(holders)} ${workload?.member ?? ""}`);
    }
    for (const address of this.#live.keys()) {
      const spec = this.#objects.get(address);
      if (spec === undefined || spec.state !== "Bound")
        faults.push(`${address} is in use and ${spec?.state ?? "free"}`);
    }
    return faults;
  }
}

/** Returns how many pods the record names. */
function holdersOf(record: StoredObject | undefined): number {
  return (record?.spec as unknown as Spec | undefined)?.holders?.length ?? 0;
}

/** Returns whether the member's next pod may have the address because of the record. */
function isRecordedFor(
  { uid, member, interface: ifName }: NonNullable<Spec["workload"]>,
  { state, workload }: Spec,
): boolean {
  if (state === "Cooling") return false;
  return workload?.uid === uid && workload.member === member && workload.interface === ifName;
}

/** Returns whether the record is the NIC's, or in quarantine. */
function isRecorded({ uid, ifName }: Nic, spec: Spec | undefined): boolean {
  if (spec?.state === "Quarantined") return true;
  return (
    spec?.state === "Bound" && spec.holders?.some((each) => each.podUID === uid && each.interface === ifName) === true
  );
}

function describeNic({ machine, pod, uid, ifName }: Nic): string {
  return `${ifName} of ${pod} (${uid}) on ${machine}`;
}

/** Two bytes of the address. */
function hexOf(address: string): string {
  const number = address.includes(":")
    ? Number.parseInt(address.split(":").at(-1) ?? "0", 16)
    : Number(address.split(".").at(-1)) + 0x8000;
  return `${((number >> 8) & 255).toString(16).padStart(2, "0")}:${(number & 255).toString(16).padStart(2, "0")}`;
}

/** Whether the process is one life of an agent. */
function isAgent(process: string): boolean {
  return process.startsWith("agent of ");
}

function memberKey(name: string, ifName: string, address: string): string {
  return `${name} ${ifName} ${familyOf(address)}`;
}

function familyOf(address: string): 4 | 6 {
  return address.includes(":") ? 6 : 4;
}

/** Returns the address of an allocation, by its name; with its address space ({@link addressIn}). */
export function addressOf(name: string): string {
  const parsed = parseAllocationName(name);
  return parsed === undefined ? name : addressIn(parsed.addressSpace, formatIp(parsed.ip));
}
