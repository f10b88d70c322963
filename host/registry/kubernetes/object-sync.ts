/**
 * Writes the API server's object of an address until it agrees with the journal's row: one loop over the decision table
 * (decide.ts), through one queue for each address (sandbox-restart). Claims wait for it; everything else runs in the
 * background, and failed syncs stay in the backlog.
 */
import { randomUUID } from "node:crypto";
import { ConfigError } from "../../config/config-error.ts";
import { BACKGROUND_ATTEMPT_MS, lengthen } from "../../kubernetes/http/retry.ts";
import { ApiError, ApiUnavailable, isConflict, isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { RefusedWrite } from "../../kubernetes/refused-writes.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Log } from "../../lib/log.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import type { AllocationState, IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { isSameMember, type Workload } from "../../resources/member.ts";
import { claimAfter, isNewClaim, renewClaim } from "../claims.ts";
import type { Journal } from "../journal.ts";
import { type Allocation, type PublishOutcome, RegistryError } from "../registry.ts";
import { AddressStates, isLater, isProber } from "./address-states.ts";
import {
  type CallTerms,
  createAllocation,
  deleteAllocation,
  readAllocation,
  replaceAllocation,
} from "./allocation-objects.ts";
import { Backlog } from "./backlog.ts";
import {
  decide,
  type LiveStatus,
  type ResolvedAction,
  reclaim,
  recover,
  type SyncAction,
  type SyncInputs,
  specWithout,
  takeOver,
} from "./decide.ts";
import type { ForeignObjects } from "./foreign-objects.ts";
import {
  type AddressKey,
  findLastHolder,
  findLostNode,
  findMissingOwner,
  findRecreatedOwner,
  hasChanged,
  isOfSameNic,
  isRecorded,
  nameOf,
  PROBE_FIRST,
  rowVersionOf,
  specOf,
  unreadableOf,
} from "./known-object.ts";
import type { TightPools } from "./pool-usage.ts";
import type { SeenOwners } from "./seen-owners.ts";

/** Most steps of one sync. More are needed only if others keep writing to the same object. */
const MAX_STEPS = 12;

/** Interval at which an object that another finalizer or pod holds is read until it is gone: milliseconds. */
const HELD_RETRY_MS = 30_000;

/** Interval at which an address owner that could not be read is read again: milliseconds. */
const OWNER_RETRY_MS = 1_000;

/**
 * Times at which a name is looked at again after a write without an answer: milliseconds. First soon; then after twice
 * the time within which an API server ends a request (`--request-timeout`, 60 s). A write that is carried out later
 * still leaves an object of a claim that no row has: the next comparison finds it.
 */
export const LOOK_AGAIN_MS: readonly number[] = [5_000, 120_000];

/** Most undone claims that are remembered. The first is forgotten first: a late object of it is adopted. */
const MAX_UNDONE_CLAIMS = 1_024;

/** Hears of addresses of this node whose objects are another pod's. */
export interface LostObserver {
  /** Another pod has the object of an address that a pod of this node uses (recreate). Nothing is changed. */
  readonly onLost: (row: Allocation, by: Allocation) => void;
  /**
   * Returns whether {@link onLost} was called with the row and that still holds: an ADD then publishes the row again.
   * Default: never.
   */
  readonly isLost?: ((row: Allocation) => boolean) | undefined;
  /** A row was deleted, and its object is another pod's of this node. Default: the next comparison finds it. */
  readonly onOrphan?: ((name: string) => void) | undefined;
}

interface ObjectSyncOptions {
  readonly api: KubeApi;
  readonly live: LiveStatus;
  readonly lost: LostObserver;
  readonly journal: Journal;
  readonly foreign: ForeignObjects;
  readonly tight: TightPools;
  readonly owners: SeenOwners;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly log: Log;
}

/** One sync of one address, with the results of its calls. */
interface SyncTask {
  readonly name: string;
  readonly address: AddressKey;
  readonly terms: CallTerms;
  /** Of a claim; undefined in the background. */
  row?: Allocation;
  /** The address owner that the object of a claim names unless the row does. */
  readonly owner?: Workload | undefined;
  /** As in {@link Proposal}. */
  readonly replaces?: number | undefined;
  object: IpAllocation | "absent" | undefined;
  /** Whether it is the answer to a call of this task; else it is remembered. */
  isRead: boolean;
  isPast: boolean;
  isNew: boolean;
}

/** The sync of a claim's row, which is not read again meanwhile. */
export interface ClaimTask extends SyncTask {
  /** As recorded last: with another claim once it is written over its member's record. */
  row: Allocation;
}

/** An action that is a call to the API server. */
type Call = Extract<ResolvedAction, { kind: "read" | "create" | "replace" | "leave" | "delete" }>;

/** The row at the end of the loop, and the remaining action. */
interface LoopEnd {
  readonly row: Allocation | undefined;
  readonly action: Exclude<ResolvedAction, Call>;
}

export class ObjectSync {
  readonly #options: ObjectSyncOptions;
  readonly #queues = new KeyedSerialQueue();
  readonly #backlog: Backlog;
  readonly #states: AddressStates;
  readonly #running = new Set<Promise<unknown>>();
  /** Names to look at again, with the times when that is due. */
  readonly #looks = new Map<string, { readonly address: AddressKey; readonly dueMs: readonly number[] }>();
  /** Rows whose claims were undone, by the claim: an object of one has come late. */
  readonly #undone = new BoundedMap<string, Allocation>(MAX_UNDONE_CLAIMS);
  /**
   * Claims that are published only when a probe finds the address silent: until then the object stays that of the
   * earlier pod, whose node, the row's `predecessorNode`, is lost.
   */
  readonly #toProbe = new Map<string, ClaimTask>();
  readonly #closing = new AbortController();
  #hasGoneBack = false;

  constructor(options: ObjectSyncOptions) {
    this.#options = options;
    this.#backlog = new Backlog(options.random);
    this.#states = new AddressStates(options.live.node);
  }

  /** Makes the object what the Bound row says, or finds out which other pod has the address. Rejects otherwise. */
  async publish(task: ClaimTask): Promise<PublishOutcome> {
    const { name, row, replaces } = task;
    // A NIC that has its address again has it by another claim if a write under the old one may be carried out yet.
    if (this.#states.get(name).isSent && !isNewClaim(row)) {
      const renewed = { ...row, claim: renewClaim(row, randomUUID()) };
      [task.row = row] = await this.#options.journal.record([renewed]);
    }
    return this.#queues.run(name, async () => {
      const remembered = replaces === undefined ? undefined : this.#options.foreign.find(name);
      const isOffered = remembered !== undefined && rowVersionOf(remembered) === replaces;
      task.object = isOffered ? remembered : this.#states.find(name);
      const { action } = await this.#callUntilDecided(task);
      if (action.kind !== "synced") return { kind: "taken", by: await this.#readTaker(action, task.row, task) };
      this.#finish(task);
      const isShared = typeof task.object === "object" && task.object.spec.holders.length > 1;
      return { kind: "published", isNew: task.isNew, isShared };
    });
  }

  /** Returns how {@link publish} would end: it reads the object, and neither writes nor waits. */
  async foresee(task: ClaimTask): Promise<PublishOutcome> {
    const { row } = task;
    const object = (await readAllocation(this.#options.api, task.name, task.terms)) ?? "absent";
    task.object = object;
    task.isRead = true;
    const action = await this.#resolve(decide(this.#inputsOf(row, task)), row, task);
    if (!isCall(action) && action.kind !== "synced")
      return { kind: "taken", by: await this.#readTaker(action, row, task) };
    if (object === "absent") return { kind: "published", isNew: true };
    const isTakenOver = action.kind === "replace" && isRetained(object, row);
    return { kind: "published", isNew: false, claim: isTakenOver ? claimAfter(row, object.spec.number) : undefined };
  }

  /** Starts to sync the address in the background, and again until it succeeds. */
  syncLater(address: AddressKey): void {
    const running = this.sync(address).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Makes the object match the row. Never rejects: a failure stays in the backlog. */
  async sync({ space, ip }: AddressKey): Promise<void> {
    const address = { space, ip };
    const name = nameOf(address);
    this.#backlog.add(name, address);
    try {
      await this.#queues.run(name, () => this.#sync(address));
    } catch (error) {
      const restMs = error instanceof RefusedWrite ? error.restMs : undefined;
      this.#backlog.fail(name, address, this.#options.nowMs(), restMs);
      const isQuiet = error instanceof ApiUnavailable || restMs !== undefined || this.#closing.signal.aborted;
      const level = isQuiet ? "debug" : "warn";
      this.#options.log[level]({ err: error, address: name }, "Publishing an allocation failed; retrying");
    }
  }

  /** Syncs the due ones of the backlog, and these. */
  async syncDue(addresses: readonly AddressKey[]): Promise<void> {
    const nowMs = this.#options.nowMs();
    const own = addresses.filter((address) => !this.#backlog.isWaiting(nameOf(address), nowMs));
    const due = [...this.#backlog.due(nowMs), ...(await this.#lookAgain(nowMs)), ...own];
    const all = new Map(due.map((address) => [nameOf(address), address]));
    await Promise.all([...all.values()].map((address) => this.sync(address)));
  }

  /** Returns the addresses with a row that are due to be looked at; an object without one is an orphan, if any. */
  async #lookAgain(nowMs: number): Promise<readonly AddressKey[]> {
    const found: AddressKey[] = [];
    for (const [name, { address, dueMs }] of this.#looks) {
      const left = dueMs.filter((each) => each > nowMs);
      if (left.length === dueMs.length) continue;
      if (left.length === 0) this.#looks.delete(name);
      else this.#looks.set(name, { address, dueMs: left });
      if ((await this.#options.journal.findAddress(address.space, address.ip)) === undefined)
        this.#options.lost.onOrphan?.(name);
      else found.push(address);
    }
    return found;
  }

  /** Resolves when nothing runs in the background. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** A claim of an address that an earlier pod on a lost node has is not published before the address was probed. */
  noteToProbe(task: ClaimTask, needsProbe: boolean): void {
    const { name, row, replaces = 0 } = task;
    const object = this.#options.foreign.find(name);
    this.#toProbe.delete(name);
    if (!needsProbe || replaces >= 0 || object === undefined) return;
    const predecessorNode = findLostNode(object.spec) || object.spec.node;
    this.#toProbe.set(name, { ...task, row: { ...row, predecessorNode } });
  }

  findToProbe(row: Allocation): ClaimTask | undefined {
    const found = row.quarantine === undefined ? undefined : this.#toProbe.get(nameOf(row));
    return found?.row.owner === row.owner ? found : undefined;
  }

  /** Returns whether the row was to be probed. */
  forgetProbe(row: Allocation): boolean {
    return this.findToProbe(row) !== undefined && this.#toProbe.delete(nameOf(row));
  }

  /** Adds a row of an earlier agent to the backlog. */
  resume({ space, ip, isConfirmed }: Pick<Allocation, "space" | "ip" | "isConfirmed">): void {
    const name = nameOf({ space, ip });
    this.#backlog.add(name, { space, ip });
    if (isConfirmed === true) this.#states.noteSent(name);
    else this.#noteUnanswered(name, { space, ip });
  }

  /** An agent that is no more may have sent a write that is not carried out yet. */
  noteSent(address: AddressKey): void {
    this.#states.noteSent(nameOf(address));
  }

  /** The claim is undone. If a write of it had no answer, an object of it may come late. */
  noteUndone(row: Allocation): void {
    if (row.claim !== undefined && this.#looks.has(nameOf(row))) this.#undone.set(row.claim.id, row);
  }

  /** Returns the row of the claim if it was undone, as far as is remembered. */
  findUndone(claim: string): Allocation | undefined {
    return this.#undone.get(claim);
  }

  /** Returns whether the object of a claim's row that is not new may differ from it. */
  isUnpublished(row: Allocation): boolean {
    const { isSent } = this.#states.get(nameOf(row));
    return isSent || row.isConfirmed !== true || this.#options.lost.isLost?.(row) === true;
  }

  /**
   * Reads the object of a row that an ADD was answered with. Resolves with whether there is none, or this node has
   * written it before the row, or a read one is older than its known state: the API server's history is another one.
   * `row`: undefined if none is to be read; `isHere`: its sandbox exists, so the journal is not an older one.
   */
  async isMissing(row: Allocation | undefined, terms: CallTerms, isHere: boolean): Promise<boolean> {
    if (row === undefined) return this.#hasGoneBack;
    const task: SyncTask = taskOf(row, terms);
    await this.#queues.run(task.name, () => this.#read(task));
    const { object } = task;
    return typeof object !== "object" || this.#hasGoneBack || (isHere && this.#isBefore(row, object));
  }

  #isBefore(row: Allocation, { spec }: IpAllocation): boolean {
    const { node, state, holders } = spec;
    if (node !== this.#options.live.node || holders.length > 1) return false;
    return state === "Bound" ? holders[0]?.podUid !== row.owner : state === "Cooling" && row.state === "Bound";
  }

  /** The object has left its known state: the next sync reads it. */
  invalidate(address: AddressKey): void {
    this.#states.invalidate(nameOf(address));
  }

  /** No object is as it was known: the API server's history is another one. */
  forgetObjects(): void {
    this.#hasGoneBack = false;
    this.#states.forgetObjects();
    this.#options.owners.forgetMissing();
  }

  /** Ends the calls under way. None are begun after this. */
  close(): void {
    this.#closing.abort(new Error("The registry is closed"));
  }

  /** Takes in an object of this node that was read outside the queue of its address, unless that knows a later one. */
  observe(object: IpAllocation): void {
    const { name, spec } = object;
    if (spec.node !== this.#options.live.node) return;
    const before = this.#states.find(name);
    if (this.#states.noteSeen(name, object) && hasChanged(before, object))
      this.syncLater({ space: spec.addressSpace, ip: spec.ip });
  }

  /** Drops retained objects that are not among this node's: other nodes have taken them over. */
  forgetRetained(names: Pick<ReadonlySet<string>, "has">): void {
    this.#states.forgetRetained(names);
  }

  get size(): { readonly known: number; readonly backlog: number } {
    return { known: this.#states.known, backlog: this.#backlog.size };
  }

  async #sync(address: AddressKey): Promise<void> {
    // One attempt, because the row may change; a longer one after each failure, because a webhook may keep the write.
    const attemptMs = lengthen(BACKGROUND_ATTEMPT_MS, this.#backlog.failures(nameOf(address)));
    const terms = { lane: "background" as const, patienceMs: 0, attemptMs, signal: this.#closing.signal };
    const task: SyncTask = taskOf(address, terms);
    task.object = this.#states.find(task.name);
    // The next round handles a row that has changed while its object was deleted.
    for (let round = 0; round < MAX_STEPS; round++) {
      const { row, action } = await this.#callUntilDecided(task);
      if (row === undefined || action.kind === "synced") return this.#finish(task);
      if (action.kind === "wait") return this.#wait(row, task);
      if (action.kind === "forget" && !(await this.#forget(row, task))) continue;
      if (action.kind !== "forget") await this.#reportLoss(row, task);
      return this.#finish(task);
    }
    throw unstable(task.name);
  }

  /** Calls the API server until the table says something that is no call. */
  async #callUntilDecided(task: SyncTask): Promise<LoopEnd> {
    for (let step = 0; step < MAX_STEPS; step++) {
      const row = await this.#rowOf(task);
      if (row === undefined || (task.row === undefined && isUnconfirmed(row))) return { row, action: { kind: "wait" } };
      const decided = decide(this.#inputsOf(row, task));
      const action: ResolvedAction = mayBeOutdated(decided, row, task)
        ? { kind: "read" }
        : await this.#resolve(decided, row, task);
      const { object } = task;
      // A later row's address is none of an undone claim.
      if (action.kind === "synced" && typeof object === "object")
        this.#undone.delete(object.spec.holders[0]?.claim ?? "");
      if (!isCall(action)) return { row, action };
      const mayTakeOver = task.row !== undefined && action.kind === "replace";
      try {
        const written = mayTakeOver && isRetained(object, row) ? await this.#takeOver(task, row, object) : row;
        await this.#execute(action, written, task);
      } catch (error) {
        // The object in a claim's way cannot be decoded.
        if (task.row === undefined || !(error instanceof ConfigError)) throw error;
        return { row, action: { kind: "taken", isUnreadable: true } };
      }
      // Once its object is deleted, the row is deleted only if it has not changed.
      if (decided.kind === "delete" && task.object === "absent") return { row, action: { kind: "forget" } };
    }
    throw unstable(task.name);
  }

  /**
   * Precedes the write over the object of an earlier pod of the row's member, or one that is retained for it: whatever
   * becomes of the claim, the address is retained again. A claim that was released meanwhile takes nothing over.
   */
  async #takeOver(task: SyncTask, row: Allocation, { spec }: IpAllocation): Promise<Allocation> {
    task.row = { ...row, claim: claimAfter(row, spec.number) };
    const [recorded] = await this.#options.journal.record([task.row]);
    if (recorded === undefined)
      throw new RegistryError(`Interface "${row.ifName}" was released while its addresses were claimed`);
    return task.row;
  }

  /** Returns the row, with the known address owner. */
  async #rowOf(task: SyncTask): Promise<Allocation | undefined> {
    const { row: claimed, owner, address, object } = task;
    if (claimed !== undefined)
      return owner === undefined || claimed.workload !== undefined ? claimed : { ...claimed, workload: owner };
    const row = await this.#options.journal.findAddress(address.space, address.ip);
    if (row === undefined) return undefined;
    const missing =
      typeof object === "object" ? findMissingOwner(row, object.spec, this.#options.live.node) : undefined;
    const workload = missing ?? findRecreatedOwner(row, object, this.#options.live.findOwnerOf?.(row));
    if (workload === undefined) return row;
    const [recorded] = await this.#options.journal.record([{ ...row, workload }]);
    // Its DEL may have come meanwhile.
    return recorded ?? this.#rowOf(task);
  }

  /** Says when the address is looked at again, if that is no event's. */
  #wait(row: Allocation, { name, address, object }: SyncTask): void {
    const { nowMs } = this.#options;
    const isOf = ({ spec, deleting }: IpAllocation): boolean =>
      !deleting && (spec.state !== "Bound" || spec.holders[0]?.podUid === row.owner);
    // No ADD was answered with it: its claim, or that of the pod's next ADD, publishes it.
    if (isUnconfirmed(row)) this.#backlog.done(name);
    else if (this.#awaitOwner(row)) this.#backlog.postpone(name, address, nowMs() + OWNER_RETRY_MS);
    else if (typeof object !== "object" || isOf(object)) this.#backlog.done(name);
    else {
      // Another finalizer holds it, or another pod lives; its end is not reported.
      this.#states.invalidate(name);
      this.#backlog.postpone(name, address, nowMs() + HELD_RETRY_MS);
    }
  }

  /** Returns whether the row's address owner has to be read first; its sync follows when that is done. */
  #awaitOwner({ state, space, ip, workload }: Allocation): boolean {
    const { owners } = this.#options;
    if (state !== "Cooling" || workload === undefined || owners.isSeen(workload) !== undefined) return false;
    const isRead = (): boolean => owners.isSeen(workload) !== undefined && !this.#closing.signal.aborted;
    void owners.read(workload).then(() => isRead() && this.syncLater({ space, ip }));
    return true;
  }

  /** Returns whether the row was deleted: it had not changed. */
  async #forget(row: Allocation, { name, object }: SyncTask): Promise<boolean> {
    // A retained address counts as free: its member's next pod is to find it without a lookup.
    const isTaken = typeof object === "object" && object.spec.state !== "Kept";
    if (!(await this.#options.journal.forget(row, isTaken))) return false;
    this.#states.noteForgotten(name);
    if (isTaken && object.spec.node === this.#options.live.node) this.#options.lost.onOrphan?.(name);
    return true;
  }

  /** A live pod keeps the address of its ADD, even if another pod has taken the object meanwhile (retention). */
  async #resolve(action: SyncAction, row: Allocation, task: SyncTask): Promise<ResolvedAction> {
    const { live } = this.#options;
    if (action.kind === "recover") return recover(live, row);
    if (action.kind !== "takeOver" && action.kind !== "reclaim") return action;
    // A pod that is gone takes nothing over, whatever the object is by now.
    const mayBeGone = action.kind === "takeOver" && !task.isRead;
    if (mayBeGone && !(await live.isLivePod(row.namespace, row.pod, row.owner))) return { kind: "taken" };
    if (!task.isRead || typeof task.object !== "object") return { kind: "read" };
    return action.kind === "takeOver" ? takeOver(live, row, task.object) : reclaim(live, row, task.object, action);
  }

  /** Another pod has the object, which stays as it is. */
  async #reportLoss(row: Allocation, task: SyncTask): Promise<void> {
    const by = await this.#readHolder(task);
    if (!isSameMember(row.workload, by.workload)) this.#options.lost.onLost(row, by);
  }

  /** Returns why a claim does not get the address. */
  async #readTaker(action: LoopEnd["action"], row: Allocation, task: SyncTask): Promise<Allocation> {
    // The pod of the ADD is not the live one.
    if (action.kind === "wait") return this.#readHolder(task);
    invariant(action.kind === "taken", `A claim's row is Bound, which never leads to ${action.kind}`);
    if (action.isUnreadable === true) return unreadableOf(row);
    const { needsProbe, predecessor, by: named } = action;
    const by = await this.#readHolder(task);
    const { namespace, pod } = named ?? predecessor ?? by;
    return {
      ...{ ...by, namespace, pod },
      ...(needsProbe === true ? { quarantine: PROBE_FIRST } : {}),
      ...(predecessor === undefined ? {} : { predecessorNode: predecessor.node }),
    };
  }

  /** Returns the object that is in the way, as a row. */
  async #readHolder(task: SyncTask): Promise<Allocation> {
    if (!task.isRead || typeof task.object !== "object") await this.#read(task);
    if (typeof task.object === "object") return this.#options.foreign.remember(task.object);
    throw new RegistryError(`IPAllocation ${task.name} was created and deleted by another writer; try again`);
  }

  /** Executes one call. The task has its result. */
  async #execute(action: Call, row: Allocation, task: SyncTask): Promise<void> {
    if (action.kind === "read") return this.#read(task);
    const { name, object } = task;
    const before = typeof object === "object" ? object : undefined;
    try {
      await this.#write(action, row, task, before);
    } catch (error) {
      const isOutdated = isConflict(error) || (isNotFound(error) && action.kind !== "create");
      // The object may be of this very call, whose answer was lost (undo).
      if (isOutdated || !(error instanceof ApiError)) this.#states.invalidate(name);
      if (isOutdated) return this.#read(task);
      throw error;
    }
    task.isRead = true;
    this.#states.noteSent(name, false);
    if (task.object !== undefined) this.#states.noteAnswer(name, task.object, before);
  }

  /**
   * A write may be carried out late, after its row is gone. And one without an answer is repeated before it is relied
   * on: another node may have read its object, and that node's write be on the way.
   */
  #noteUnanswered(name: string, address: AddressKey): void {
    const nowMs = this.#options.nowMs();
    this.#states.noteSent(name);
    this.#looks.set(name, { address, dueMs: LOOK_AGAIN_MS.map((ms) => nowMs + ms) });
  }

  async #write(
    action: Exclude<Call, { kind: "read" }>,
    row: Allocation,
    task: SyncTask,
    before: IpAllocation | undefined,
  ): Promise<void> {
    const { name, address } = task;
    const terms = { ...task.terms, onUnanswered: () => this.#noteUnanswered(name, address) };
    if (action.kind === "create") {
      task.isNew = true;
      const spec = this.#specOf(row, row.state === "Cooling" ? "Bound" : row.state);
      task.object = await createAllocation(this.#options.api, spec, terms);
      return;
    }
    invariant(before !== undefined, `An object that is not known is not subject to ${action.kind}`);
    if (action.kind === "replace") {
      const isKept = action.state === "Kept";
      const lastHolder = isKept ? findLastHolder(row, before.spec, this.#options.live.node) : undefined;
      const spec = this.#specOf(row, action.state, before.spec);
      const holders = [...spec.holders, ...(action.sharers ?? [])];
      task.object = await this.#replace({ ...spec, lastHolder, holders }, before, terms);
      task.isNew = false;
    } else if (action.kind === "leave") {
      const spec = specWithout(this.#specOf(row, "Bound"), before.spec, action.others);
      task.object = await this.#replace(spec, before, terms);
    } else {
      task.object = (await deleteAllocation(this.#options.api, name, before, terms)) ?? "absent";
    }
  }

  /**
   * Writes the object over the known one. A write that changes nothing leaves the version as it is, and with it an
   * earlier write that is carried out late would succeed: then it is repeated with another `since`.
   */
  async #replace(spec: IpAllocationSpec, before: IpAllocation, terms: CallTerms): Promise<IpAllocation> {
    const object = await replaceAllocation(this.#options.api, spec, before, terms);
    if (object.resourceVersion !== before.resourceVersion) return object;
    const { since: written = new Date().toISOString() } = spec;
    const since = new Date(Date.parse(written) + 1).toISOString();
    return replaceAllocation(this.#options.api, { ...spec, since }, before, terms);
  }

  async #read(task: SyncTask): Promise<void> {
    const known = this.#states.versionOf(task.name);
    task.object = (await readAllocation(this.#options.api, task.name, task.terms)) ?? "absent";
    task.isRead = true;
    task.isPast = this.#states.versionOf(task.name) === known && isLater(known, task.object);
    this.#hasGoneBack ||= task.isPast;
    this.#states.noteAnswer(task.name, task.object);
  }

  /** The object matches the row, or neither exists. */
  #finish({ name }: SyncTask): void {
    this.#backlog.done(name);
    this.#states.noteSent(name, false);
  }

  #inputsOf(row: Allocation, { name, object, isPast, replaces }: SyncTask): SyncInputs {
    const { live, nowMs, tight, owners } = this.#options;
    const state = this.#states.get(name);
    return {
      isOwnerSeen: row.workload && owners.isSeen(row.workload),
      row,
      object,
      isPast,
      isProber: row.state === "Quarantined" && isProber(state, live.node),
      isSent: state.isSent,
      node: live.node,
      machine: live.machine?.(),
      isDue: row.freeAtMs !== undefined && row.freeAtMs <= nowMs(),
      isPublic: row.state === "Cooling" && tight.isTight(row.pool),
      replaces,
    };
  }

  #specOf(row: Allocation, state: AllocationState, before?: IpAllocationSpec): IpAllocationSpec {
    const { node, machine } = this.#options.live;
    return specOf(row, state, { node, machine: machine?.(), since: new Date().toISOString() }, before);
  }
}

/** Returns a sync that has not begun. */
export function taskOf({ space, ip }: AddressKey, terms: CallTerms) {
  const address = { space, ip };
  const nothing = { object: undefined, isRead: false, isPast: false, isNew: false };
  return { name: nameOf(address), address, terms, ...nothing };
}

function isCall(action: ResolvedAction): action is Call {
  return ["read", "create", "replace", "leave", "delete"].includes(action.kind);
}

/** Returns whether no ADD is known to have been answered with the row. */
function isUnconfirmed({ state, isConfirmed }: Allocation): boolean {
  return state === "Bound" && isConfirmed !== true;
}

/**
 * Returns whether the decision about a claim needs the object's present state: the remembered one may have been freed
 * since, and another address be retained for the row's member.
 */
function mayBeOutdated(decided: SyncAction, row: Allocation, task: SyncTask): boolean {
  const { replaces, isRead, object } = task;
  if (task.row === undefined || isRead) return false;
  if (decided.kind === "taken") return true;
  const isOffered = typeof object === "object" && rowVersionOf(object) === replaces;
  // No write follows, whose precondition would fail.
  if (decided.kind === "synced") return isOffered;
  const takesOver = decided.kind === "takeOver" || decided.kind === "replace";
  return takesOver && !isOffered && isRetained(object, row);
}

/** Returns whether the row's member had the address before, or its pod by a claim that may have taken it over. */
function isRetained(object: SyncTask["object"], row: Allocation): object is IpAllocation {
  if (typeof object !== "object" || object.spec.state === "Cooling" || !isOfSameNic(row, object.spec)) return false;
  const [holder] = object.spec.holders;
  return holder?.podUid !== row.owner || (holder.claim !== undefined && !isRecorded(row, holder.claim));
}

function unstable(name: string): RegistryError {
  return new RegistryError(`IPAllocation ${name} was changed by other writers ${MAX_STEPS} times in a row; try again`);
}
