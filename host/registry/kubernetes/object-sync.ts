/**
 * Writes the API server's object of an address until it agrees with the journal's row, through one queue for each
 * address (sandbox-restart). Claims wait for it; everything else runs in the background, and what fails stays in the
 * backlog.
 */
import { ConfigError } from "../../config/config-error.ts";
import { ApiError, ApiUnavailable, isConflict, isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Log } from "../../lib/log.ts";
import { KeyedSerialQueue } from "../../lib/serial.ts";
import type { AllocationState, IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { isSameMember, ownerOf, type Workload } from "../../resources/member.ts";
import type { Journal } from "../journal.ts";
import { type Allocation, RegistryError } from "../registry.ts";
import { AddressStates } from "./address-states.ts";
import { AllocationObjects, type CallTerms } from "./allocation-objects.ts";
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
  findMissingOwner,
  findRecreatedOwner,
  hasChanged,
  isOfSameNic,
  type KnownObject,
  knownOf,
  lastHolderOf,
  nameOf,
  PROBE_FIRST,
  specOf,
  unreadableOf,
} from "./known-object.ts";
import type { TightPools } from "./pool-usage.ts";
import type { SeenOwners } from "./seen-owners.ts";

/** Most steps of one sync. More are needed only if others keep writing to the same object. */
const MAX_STEPS = 12;

/** Interval at which an object that is being deleted is read until it is gone: milliseconds. */
export const DELETING_RETRY_MS = 30_000;

/** Interval at which an address owner that could not be read is read again: milliseconds. */
const OWNER_RETRY_MS = 1_000;

interface ObjectSyncOptions extends LiveStatus {
  readonly api: KubeApi;
  readonly node: string;
  readonly journal: Journal;
  readonly foreign: ForeignObjects;
  readonly tight: TightPools;
  readonly owners: SeenOwners;
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly log: Log;
  /** Another pod has the object of an address that a pod of this node uses (recreate). */
  readonly onLost: (row: Allocation, by: Allocation) => void;
  readonly onOrphan?: ((name: string) => void) | undefined;
}

export type PublishOutcome =
  /**
   * `isNew`: the claim created the object, or tried to. `isTakenOver`: the object was Cooling before. `isShared`:
   * another pod has the address, too.
   */
  | {
      readonly kind: "published";
      readonly isNew: boolean;
      readonly isTakenOver: boolean;
      readonly isShared: boolean;
    }
  | { readonly kind: "taken"; readonly by: Allocation };

/** One sync of one address, with what its calls have found. */
interface SyncTask {
  readonly name: string;
  readonly terms: CallTerms;
  object: KnownObject | "absent" | undefined;
  /** The object in full, if this task has read it. */
  full: IpAllocation | undefined;
  isNew: boolean;
  isTakenOver: boolean;
}

/** An action that is a call to the API server. */
type Call = Extract<SyncAction, { kind: "read" | "create" | "replace" | "leave" | "delete" }>;

export class ObjectSync {
  readonly #options: ObjectSyncOptions;
  readonly #objects: AllocationObjects;
  readonly #queues = new KeyedSerialQueue();
  readonly #backlog: Backlog;
  readonly #states: AddressStates;
  readonly #running = new Set<Promise<unknown>>();
  readonly #suspended = new Set<string>();
  readonly #closing = new AbortController();

  constructor(options: ObjectSyncOptions) {
    this.#options = options;
    this.#objects = new AllocationObjects(options.api);
    this.#backlog = new Backlog(options.random);
    this.#states = new AddressStates(options);
  }

  /**
   * Makes the object what the Bound row says, or finds out which other pod has the address. `replaces`: the version
   * of the allocation to take over. `onTakeOver` ends before the object is taken over from an earlier pod of the
   * row's member, or from what is retained for it; `isFresh`: as the object says ({@link Workload.isFresh}). Rejects
   * if neither is possible.
   */
  publish(
    row: Allocation,
    terms: CallTerms,
    replaces: number | undefined,
    onTakeOver: (isFresh: boolean) => Promise<void> = async () => {},
  ): Promise<PublishOutcome> {
    const name = nameOf(row);
    const version = replaces !== undefined && replaces < 0 ? String(-replaces) : undefined;
    return this.#queues.run(name, async () => {
      terms.signal?.throwIfAborted();
      const task = this.#startTask(name, terms, this.#states.findForClaim(name));
      const offered = this.#options.foreign.find(name);
      if (version !== undefined && offered?.resourceVersion === version) task.object = offered;
      const listed = task.object === offered || this.#states.isOnlySeen(name) ? task.object : undefined;
      for (let step = 0; step < MAX_STEPS; step++) {
        const decided = decide(this.#inputsOf(row, task, version));
        const action = mayBeOutdated(decided, row, task, { offered, listed })
          ? { kind: "read" as const }
          : await this.#resolve(decided, row, task);
        let written = row;
        switch (action.kind) {
          case "synced":
            this.#backlog.done(name);
            this.#states.noteSynced(name);
            return {
              kind: "published",
              isNew: task.isNew,
              isTakenOver: task.isTakenOver,
              isShared: typeof task.object === "object" && task.object.sharers !== undefined,
            };
          case "taken": {
            const by = await this.#readHolder(task);
            const { needsProbe, predecessor, by: { namespace, pod } = predecessor ?? by } = action;
            return {
              kind: "taken",
              by: {
                ...{ ...by, namespace, pod },
                ...(needsProbe === true ? { quarantine: PROBE_FIRST } : {}),
                ...(predecessor === undefined ? {} : { predecessorNode: predecessor.node }),
              },
            };
          }
          // The pod of the ADD is not the live one.
          case "wait":
            return { kind: "taken", by: await this.#readHolder(task) };
          case "read":
          case "create":
          case "replace":
            if (action.kind === "replace" && isRetained(task.object, row)) {
              written = inherit(row, task.object);
              await onTakeOver(written.workload?.isFresh === true);
            }
            if (!(await this.#executeIfReadable(action, written, task)))
              return { kind: "taken", by: unreadableOf(row) };
            break;
          default:
            invariant(false, `A claim's row is Bound, which never leads to ${action.kind}`);
        }
      }
      throw unstable(name);
    });
  }

  /** Knows of the objects what the other one does. */
  copyFrom(other: ObjectSync): void {
    this.#states.copyFrom(other.#states);
  }

  /** Starts to sync the address in the background, and again until it succeeds. */
  syncLater(address: AddressKey): void {
    const running = this.sync(address).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Makes the object what the row says. Never rejects: a failure stays in the backlog. */
  async sync({ space, ip }: AddressKey): Promise<void> {
    const address = { space, ip };
    const name = nameOf(address);
    this.#backlog.add(name, address);
    try {
      await this.#queues.run(name, () => this.#sync(name, address));
    } catch (error) {
      this.#backlog.fail(name, address, this.#options.nowMs());
      const level = error instanceof ApiUnavailable || this.#closing.signal.aborted ? "debug" : "warn";
      this.#options.log[level]({ err: error, address: name }, "Publishing an allocation failed; retrying");
    }
  }

  /** Syncs what is due in the backlog, and these. */
  async syncDue(addresses: readonly AddressKey[]): Promise<void> {
    const nowMs = this.#options.nowMs();
    const fresh = addresses.filter((address) => !this.#backlog.isWaiting(nameOf(address), nowMs));
    const all = new Map([...this.#backlog.due(nowMs), ...fresh].map((address) => [nameOf(address), address]));
    await Promise.all([...all.values()].map((address) => this.sync(address)));
  }

  /** Resolves when nothing runs in the background. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** The row has a new owner: objects of the former one may be overwritten. */
  noteFormerOwner(address: AddressKey, owner: string): void {
    this.#states.noteFormerOwner(nameOf(address), owner);
  }

  /** Returns the node of the pod that had the address when its object was last read; undefined if none is known. */
  findPredecessorNode(address: AddressKey): string | undefined {
    const object = this.#options.foreign.find(nameOf(address));
    return object === undefined ? undefined : object.lost || object.node;
  }

  /** Leaves the object as it is, whatever the row says, until {@link continueSync}. */
  suspend(address: AddressKey): void {
    this.#suspended.add(nameOf(address));
  }

  continueSync(address: AddressKey): void {
    this.#suspended.delete(nameOf(address));
    this.syncLater(address);
  }

  /** Adds a row of an earlier agent to the backlog. That agent may have sent a write that is not carried out yet. */
  resume({ space, ip }: AddressKey): void {
    const name = nameOf({ space, ip });
    this.#backlog.add(name, { space, ip });
    this.#states.noteRestart(name);
  }

  /**
   * The row was made for an object of which the journal knew nothing: the agent that had the journal may have sent a
   * write that is not carried out yet.
   */
  noteAdopted(address: AddressKey): void {
    this.#states.noteRestart(nameOf(address));
  }

  /**
   * The claim's row was forgotten, as another pod has the object: an attempt to create it may still be carried out
   * once that one is gone.
   */
  noteTaken({ space, ip }: AddressKey): void {
    const name = nameOf({ space, ip });
    const { lateUntilMs } = this.#states.get(name).pending;
    if (lateUntilMs > this.#options.nowMs()) this.#backlog.postpone(name, { space, ip }, lateUntilMs);
  }

  /** Returns whether a write that was sent earlier may still change the object. */
  isInDoubt(address: AddressKey): boolean {
    return this.#states.get(nameOf(address)).pending.isUnanswered;
  }

  /** The object is not what it was known to be: the next sync reads it. */
  invalidate(address: AddressKey): void {
    this.#states.invalidate(nameOf(address));
  }

  /** Ends the calls under way. None are begun after this. */
  close(): void {
    this.#closing.abort(new Error("The registry is closed"));
  }

  /** Takes in an object of this node that was read outside the queue of its address, unless that knows a later one. */
  observe(object: IpAllocation): void {
    const { name, spec } = object;
    if (spec.node !== this.#options.node) return;
    const [before, known] = [this.#states.find(name), knownOf(object)];
    if (this.#states.noteSeen(name, known) && hasChanged(before, known))
      this.syncLater({ space: spec.addressSpace, ip: spec.ip });
  }

  /**
   * Forgets what it knows of retained objects that are not among these, which this node has: other nodes have taken
   * them over.
   */
  forgetRetained(names: Pick<ReadonlySet<string>, "has">): void {
    this.#states.forgetRetained(names);
  }

  get size(): { readonly known: number; readonly backlog: number } {
    return { known: this.#states.known, backlog: this.#backlog.size };
  }

  async #sync(name: string, address: AddressKey): Promise<void> {
    if (this.#suspended.has(name)) return;
    const { journal, nowMs } = this.#options;
    const terms = { lane: "background" as const, patienceMs: 0, signal: this.#closing.signal };
    const task = this.#startTask(name, terms, this.#states.find(name));
    const readRow = (): Promise<Allocation | undefined> => journal.findAddress(address.space, address.ip);
    let row = await readRow();
    for (let step = 0; step < MAX_STEPS; step++) {
      if (row === undefined) return this.#endWithoutRow(task, address);
      const workload =
        typeof task.object === "object" ? findMissingOwner(row, task.object, this.#options.node) : undefined;
      const recreated = findRecreatedOwner(row, task.object, this.#options.findOwnerOf?.(row));
      if (workload !== undefined || recreated !== undefined) {
        await journal.inherit([{ ...row, workload: workload ?? recreated }]);
        row = await readRow();
        continue;
      }
      // No ADD was answered with it: its claim, or that of the pod's next ADD, publishes it.
      if (row.state === "Bound" && row.isConfirmed !== true) return this.#backlog.done(name);
      const action = await this.#resolve(decide(this.#inputsOf(row, task, undefined)), row, task);
      switch (action.kind) {
        case "wait":
          if (this.#awaitOwner(row)) return this.#backlog.postpone(name, address, nowMs() + OWNER_RETRY_MS);
          if (typeof task.object !== "object" || task.object.deleting !== true) return this.#backlog.done(name);
          // Another finalizer holds it; its deletion is not reported.
          this.#states.invalidate(name);
          return this.#backlog.postpone(name, address, nowMs() + DELETING_RETRY_MS);
        case "synced":
          return this.#finish(task);
        case "forget": {
          const { lateUntilMs } = this.#states.get(name).pending;
          if (lateUntilMs > nowMs()) {
            // By then the object may be another one than the one known now.
            this.#states.invalidate(name);
            return this.#backlog.postpone(name, address, lateUntilMs);
          }
          // A retained address counts as free: its member's next pod is to find it without a lookup.
          const isTaken = typeof task.object === "object" && task.object.state !== "Kept";
          if (await journal.forget(row, isTaken)) {
            this.#states.noteForgotten(name);
            if (isBoundTo(task.object, this.#options.node)) this.#options.onOrphan?.(name);
            return this.#finish(task);
          }
          row = await readRow();
          break;
        }
        case "takeOver":
        case "taken":
          await this.#reportLoss(row, task);
          return this.#finish(task);
        default:
          await this.#execute(action, row, task);
          // Once its object is deleted, the row is deleted only if it has not changed.
          if (action.kind !== "delete" || task.object !== "absent") row = await readRow();
      }
    }
    throw unstable(name);
  }

  /** Returns whether the row's address owner has to be read first; its sync follows when that is done. */
  #awaitOwner({ state, space, ip, workload }: Allocation): boolean {
    const { owners } = this.#options;
    if (state !== "Cooling" || workload === undefined || owners.isSeen(workload) !== undefined) return false;
    const isRead = (): boolean => owners.isSeen(workload) !== undefined && !this.#closing.signal.aborted;
    void owners.read(workload).then(() => isRead() && this.syncLater({ space, ip }));
    return true;
  }

  /**
   * A live pod keeps the address that its ADD was answered with, even if another pod has taken the object meanwhile
   * (retention).
   */
  async #resolve(action: SyncAction, row: Allocation, task: SyncTask): Promise<ResolvedAction> {
    if (action.kind === "recover") return recover(this.#options, row);
    if (action.kind === "reclaim") return reclaim(this.#options, row, task);
    return action.kind === "takeOver" ? takeOver(this.#options, row, task) : action;
  }

  /** Another pod has the object, which stays as it is. */
  async #reportLoss(row: Allocation, task: SyncTask): Promise<void> {
    const by = await this.#readHolder(task);
    if (!isSameMember(row.workload, by.workload)) this.#options.onLost(row, by);
  }

  /** Returns the object that is in the way, as a row. */
  async #readHolder(task: SyncTask): Promise<Allocation> {
    if (task.full === undefined) await this.#read(task);
    if (task.full !== undefined) return this.#options.foreign.remember(task.full);
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
      if (isConflict(error) || (isNotFound(error) && action.kind !== "create")) {
        // The object in the way may be of this very call, whose answer was lost (undo): what was known of it is
        // outdated, also if the read has no answer.
        this.#states.invalidate(name);
        return this.#read(task);
      }
      const write = action.kind === "create" || action.kind === "delete" ? action.kind : "change";
      this.#states.noteWriteFailed(name, write, error instanceof ApiError);
      throw error;
    }
    this.#states.noteWritten(name);
    if (task.object !== undefined) this.#states.noteAnswer(name, task.object, before);
  }

  async #write(
    action: Exclude<Call, { kind: "read" }>,
    row: Allocation,
    task: SyncTask,
    before: KnownObject | undefined,
  ): Promise<void> {
    const { name, terms } = task;
    if (action.kind === "create") {
      task.isNew = true;
      const onUnanswered = (): void => this.#states.noteUnanswered(name);
      task.object = knownOf(await this.#objects.create(this.#specOf(row, row.state), terms, onUnanswered));
      return;
    }
    invariant(before !== undefined, `An object that is not known is not subject to ${action.kind}`);
    if (action.kind === "replace") {
      const last = action.state === "Kept" ? lastHolderOf(row, before, this.#options.node) : {};
      const spec = { ...this.#specOf(row, action.state), ...last };
      const holders = [...spec.holders, ...(action.sharers ?? [])];
      task.object = await this.#replace({ ...spec, holders }, before, terms);
      task.isTakenOver = before.state === "Cooling";
      task.isNew = false;
    } else if (action.kind === "leave") {
      const spec = specWithout(this.#specOf(row, "Bound"), before, action.others);
      task.object = await this.#replace(spec, before, terms);
    } else {
      const held = await this.#objects.delete(name, before, terms);
      task.object = held === undefined ? "absent" : knownOf(held);
    }
  }

  /**
   * Writes the object over the known one. A write that changes nothing leaves the version as it is, and with it an
   * earlier write that is carried out late would succeed: then it is repeated with another `since`.
   */
  async #replace(spec: IpAllocationSpec, before: KnownObject, terms: CallTerms): Promise<KnownObject> {
    const object = await this.#objects.replace(spec, before, terms);
    if (object.resourceVersion !== before.resourceVersion) return knownOf(object);
    const { since: written = new Date().toISOString() } = spec;
    const since = new Date(Date.parse(written) + 1).toISOString();
    return knownOf(await this.#objects.replace({ ...spec, since }, before, terms));
  }

  /** Executes one call. Returns false if the object in the way cannot be decoded. */
  async #executeIfReadable(action: Call, row: Allocation, task: SyncTask): Promise<boolean> {
    try {
      await this.#execute(action, row, task);
      return true;
    } catch (error) {
      if (error instanceof ConfigError) return false;
      throw error;
    }
  }

  async #read(task: SyncTask): Promise<void> {
    task.full = await this.#objects.get(task.name, task.terms);
    task.object = task.full === undefined ? "absent" : knownOf(task.full);
    this.#states.noteAnswer(task.name, task.object);
  }

  #startTask(name: string, terms: CallTerms, object: KnownObject | undefined): SyncTask {
    return { name, terms, object, full: undefined, isNew: false, isTakenOver: false };
  }

  /** An object that was written late is an orphan, which a comparison finds. */
  #endWithoutRow(task: SyncTask, address: AddressKey): void {
    const { lateUntilMs } = this.#states.get(task.name).pending;
    if (lateUntilMs > this.#options.nowMs()) {
      this.#backlog.postpone(task.name, address, lateUntilMs);
      return;
    }
    if (lateUntilMs > 0) this.#options.onOrphan?.(task.name);
    this.#finish(task);
  }

  /** The object is what the row says, or neither exists. */
  #finish({ name }: SyncTask): void {
    this.#backlog.done(name);
    this.#states.noteSynced(name);
  }

  #inputsOf(row: Allocation, { name, object }: SyncTask, replaces: string | undefined): SyncInputs {
    const { node, nowMs, tight, owners } = this.#options;
    return {
      isOwnerSeen: row.workload && owners.isSeen(row.workload),
      row,
      object,
      state: this.#states.get(name),
      node,
      isDue: row.freeAtMs !== undefined && row.freeAtMs <= nowMs(),
      isPublic: tight.isTight(row.pool),
      replaces,
    };
  }

  #specOf(row: Allocation, state: AllocationState): IpAllocationSpec {
    return specOf(row, state, { node: this.#options.node, since: new Date().toISOString() });
  }
}

/**
 * Returns whether the decision is one that needs the object as it is now: what this node remembers may have been
 * freed since, and another address be retained for the row's member. `offered`: the object as the node remembers it
 * of another one, or of a list; `listed`: the object of this task, if no answer to a call for the address has shown
 * it.
 */
function mayBeOutdated(
  decided: SyncAction,
  row: Allocation,
  task: SyncTask,
  { offered, listed }: Readonly<Record<"offered" | "listed", SyncTask["object"]>>,
): boolean {
  if (task.full !== undefined) return false;
  if (decided.kind === "taken") return true;
  // No write follows, whose precondition would fail.
  if (decided.kind === "synced") return listed !== undefined && task.object === listed;
  const takesOver = decided.kind === "takeOver" || decided.kind === "replace";
  return takesOver && task.object !== offered && isRetained(task.object, row);
}

/** Returns whether the row's member had the address before. */
function isRetained(object: SyncTask["object"], row: Allocation): boolean {
  return (
    typeof object === "object" && object.state !== "Cooling" && object.podUid !== row.owner && isOfSameNic(row, object)
  );
}

/** Returns the row of a claim with what the object says of its address owner: what the member had before stays that. */
function inherit(row: Allocation, object: SyncTask["object"]): Allocation {
  const isFresh = row.workload?.isFresh === true && typeof object === "object" && object.workload?.isFresh === true;
  return row.workload === undefined ? row : { ...row, workload: ownerOf(row.workload, isFresh) };
}

function isBoundTo(object: SyncTask["object"], node: string): boolean {
  return typeof object === "object" && object.state === "Bound" && object.node === node;
}

function unstable(name: string): RegistryError {
  return new RegistryError(`IPAllocation ${name} was changed by other writers ${MAX_STEPS} times in a row; try again`);
}
