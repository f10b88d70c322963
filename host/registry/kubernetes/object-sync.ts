/**
 * Makes the API server's object of one address equal to the journal's row of it, through one queue for each address (allocation rule 3).
 * Called by kubernetes-registry.ts: by claims, which wait for it, and behind everything else.
 * Effects: writes objects and the journal; what failed stays in the backlog until {@link ObjectSync.workOff} has done it.
 */

import { ConfigError } from "../../config/config-error.ts";
import { ApiError, ApiUnavailable, isConflict, isNotFound } from "../../kubernetes/kube-api.ts";
import { invariant } from "../../lib/invariant.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import {
  type AllocationState,
  type IpAllocation,
  type IpAllocationSpec,
  isSameMember,
  parseAllocationName,
} from "../../resources/ip-allocation.ts";
import { type Allocation, RegistryError } from "../registry.ts";
import { ObjectMemory } from "./address-states.ts";
import { AllocationObjects, type CallTerms } from "./allocation-objects.ts";
import { Backlog, type Place } from "./backlog.ts";
import { decide, type SyncAction, type SyncInputs } from "./decide.ts";
import { nameOf } from "./foreign-objects.ts";
import { DOUBT, isOther, knownOf, specOf, unknownHolder } from "./known-object.ts";
import { reclaim, specWithout, takeOver } from "./take-over.ts";
import type { ObjectSyncOptions, SyncTask } from "./task.ts";

/** How often one address is looked at again because somebody else has written to its object in the meantime. @limit */
export const MAX_STEPS = 12;

export type PublishOutcome =
  /** `isNew`: the claim made it; false when it was taken over or was there. `isTakenOver`: it cooled before. */
  | { readonly kind: "published"; readonly isNew: boolean; readonly isTakenOver: boolean }
  | { readonly kind: "taken"; readonly by: Allocation };

/** What the watch tells of an object that names this node. */
export type ObjectChange =
  | { readonly kind: "object"; readonly object: IpAllocation }
  | { readonly kind: "gone"; readonly name: string; readonly uid: string };

export class ObjectSync {
  readonly #options: ObjectSyncOptions;
  readonly #objects: AllocationObjects;
  readonly #queues = new KeyedMutex();
  readonly #backlog: Backlog;
  readonly #memory: ObjectMemory;
  readonly #running = new Set<Promise<unknown>>();
  readonly #ending = new AbortController();

  constructor(options: ObjectSyncOptions) {
    this.#options = options;
    this.#objects = new AllocationObjects(options.api);
    this.#backlog = new Backlog(options.random);
    this.#memory = new ObjectMemory(options);
  }

  /** The object becomes what the Bound row says, or it is known who else has the address. Rejects when that cannot be found out. */
  publish(row: Allocation, terms: CallTerms, replaces: number | undefined): Promise<PublishOutcome> {
    const name = nameOf(row);
    const version = replaces !== undefined && replaces < 0 ? String(-replaces) : undefined;
    return this.#queues.run(name, async () => {
      terms.signal?.throwIfAborted();
      const task = this.#begin(name, terms);
      task.object = this.#memory.findAnswered(name);
      const offered = this.#options.foreign.find(name);
      if (version !== undefined && offered?.resourceVersion === version) task.object = offered;
      this.#memory.retain(name);
      for (let step = 0; step < MAX_STEPS; step++) {
        const found = decide(this.#caseOf(row, task, version));
        const verdict = found.kind === "contest" ? await takeOver(this.#options, row, task) : found;
        switch (verdict.kind) {
          case "equal":
            this.#end(task);
            return { kind: "published", isNew: task.isNew, isTakenOver: task.isTakenOver };
          case "taken":
            return {
              kind: "taken",
              by: { ...(await this.#holder(task, verdict.isDoubtful)), ...predecessorNode(verdict) },
            };
          case "look":
          case "create":
          case "replace":
            if (!(await this.#isUnderstood(this.#carryOut(verdict, row, task))))
              return { kind: "taken", by: unknownHolder(row) };
            break;
          default:
            invariant(false, `A claim's row is Bound, which asks for no ${verdict.kind}`);
        }
      }
      throw new RegistryError(`IPAllocation ${name} was written by somebody else ${MAX_STEPS} times in a row`);
    });
  }

  /** Sees to the address behind the caller's back: now, and again until it is done. */
  settleLater(place: Place): void {
    const running = this.settle(place).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** The object becomes what the row says. Never rejects: what fails is in the backlog. */
  async settle({ space, ip }: Place): Promise<void> {
    const place = { space, ip };
    const name = nameOf(place);
    this.#backlog.add(name, place);
    try {
      await this.#queues.run(name, () => this.#settle(name, place));
    } catch (error) {
      this.#backlog.fail(name, place, this.#options.nowMs());
      const level = error instanceof ApiUnavailable || this.#ending.signal.aborted ? "debug" : "warn";
      this.#options.log[level]({ err: error, address: name }, "The address's object is not yet what its row says");
    }
  }

  /** Everything that is due: of the backlog, and these. */
  async workOff(places: readonly Place[]): Promise<void> {
    const nowMs = this.#options.nowMs();
    const fresh = places.filter((place) => !this.#backlog.isWaiting(nameOf(place), nowMs));
    const all = new Map([...this.#backlog.due(nowMs), ...fresh].map((place) => [nameOf(place), place]));
    await Promise.all([...all.values()].map((place) => this.settle(place)));
  }

  /** When nothing runs behind a caller's back. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** The row has a new owner: the objects of the old one are no longer anybody's. */
  supersede(place: Place, owner: string): void {
    this.#memory.supersede(nameOf(place), owner);
  }

  /** The row was claimed anew and is undone: its object goes, whatever keeps others. */
  discard(place: Place): void {
    this.#memory.discard(nameOf(place));
  }

  /** The node of the pod that had the address when its object was last met; undefined when none is known. */
  findFormerNode(place: Place): string | undefined {
    const met = this.#options.foreign.find(nameOf(place));
    return met === undefined ? undefined : met.lost || met.node;
  }

  /** To be looked at with the next {@link workOff}. An earlier agent may have sent what is not carried out yet. */
  recall(place: Place): void {
    const { space, ip } = place;
    this.#backlog.add(nameOf(place), { space, ip });
    this.#memory.leaveUnanswered(nameOf(place));
  }

  /** What is known of the object is not so. */
  distrust(place: Place): void {
    this.#memory.distrust(nameOf(place));
  }

  /** No more calls; those under way end. */
  end(): void {
    this.#ending.abort(new Error("The registry is closed"));
  }

  /** Older news than what is known changes nothing. */
  observe(change: ObjectChange): void {
    if (change.kind === "object") {
      const { name, spec } = change.object;
      if (spec.node !== this.#options.node) return;
      const [before, object] = [this.#memory.find(name), knownOf(change.object)];
      if (this.#memory.observe(name, object) && isOther(before, object))
        this.settleLater({ space: spec.addressSpace, ip: spec.ip });
    } else {
      const place = parseAllocationName(change.name);
      if (place === undefined || !this.#memory.observeEnd(change.name, change.uid)) return;
      this.settleLater({ space: place.addressSpace, ip: place.ip });
    }
  }

  get size(): { readonly known: number; readonly backlog: number } {
    return { known: this.#memory.size, backlog: this.#backlog.size };
  }

  async #settle(name: string, place: Place): Promise<void> {
    const task = this.#begin(name, { lane: "background", patienceMs: 0, signal: this.#ending.signal });
    for (let step = 0; step < MAX_STEPS; step++) {
      const row = await this.#options.journal.findAddress(place.space, place.ip);
      if (row === undefined) return this.#end(task);
      const found = decide(this.#caseOf(row, task, undefined));
      const verdict = await this.#answer(found, row, task);
      switch (verdict.kind) {
        case "nothing":
          return this.#backlog.done(name);
        case "equal":
          if (row.isConfirmed !== true) await this.#options.journal.confirm([row]);
          return this.#end(task);
        case "forget": {
          const untilMs = this.#memory.doubtfulUntilMs(name);
          if (untilMs > this.#options.nowMs()) return this.#backlog.postpone(name, place, untilMs);
          if (await this.#options.journal.forget(row)) this.#memory.forgetAsked(name);
          break;
        }
        case "contest":
        case "taken":
          await this.#lose(row, task);
          if (row.isConfirmed === true) return this.#end(task);
          break;
        default:
          await this.#carryOut(verdict, row, task);
      }
    }
    throw new RegistryError(`IPAllocation ${name} was written by somebody else ${MAX_STEPS} times in a row`);
  }

  /** Whose pod lives has the address, also when somebody has taken it meanwhile: what was answered stays true (allocation rule 8). */
  async #answer(
    found: SyncAction,
    row: Allocation,
    task: SyncTask,
  ): Promise<Exclude<SyncAction, { readonly kind: "reclaim" }>> {
    if (found.kind === "reclaim") return reclaim(this.#options, row);
    return found.kind === "contest" && row.isConfirmed === true ? takeOver(this.#options, row, task) : found;
  }

  /** A row that no ADD was answered with is undone; of another one whoever is responsible is told. An object is never touched. */
  async #lose(row: Allocation, task: SyncTask): Promise<void> {
    if (row.isConfirmed !== true) return this.#undo(row);
    const by = await this.#holder(task);
    if (!isSameMember(row.workload, by.workload)) this.#options.onLost(row, by);
  }

  /** With the row goes what was claimed with it for the same NIC: no ADD is answered with one family of two. */
  async #undo(row: Allocation): Promise<void> {
    const { journal, onUndone } = this.#options;
    const isSibling = ({ state, ifName, isConfirmed }: Allocation): boolean =>
      state === "Bound" && ifName === row.ifName && isConfirmed !== true;
    const claimed = (await journal.findOwner(row.owner)).filter(isSibling);
    // An ADD has written to the row since, and publishes it itself.
    if (!claimed.some(({ version }) => version === row.version)) return;
    await journal.undo(claimed);
    for (const each of claimed) onUndone(each);
    for (const each of claimed) if (each.version !== row.version) this.settleLater(each);
  }

  /** Who has the address, as the rest of the agent sees it. */
  async #holder(task: SyncTask, isDoubtful = false): Promise<Allocation> {
    if (task.seen === undefined) await this.#look(task);
    const by = task.seen && this.#options.foreign.meet(task.seen);
    if (by !== undefined) return isDoubtful ? { ...by, quarantine: DOUBT } : by;
    throw new RegistryError(`IPAllocation ${task.name} came and went; try again`);
  }

  /** One call of the API server. What it finds out is in the task. */
  async #carryOut(verdict: Call, row: Allocation, task: SyncTask): Promise<void> {
    const { name, terms, object } = task;
    if (verdict.kind === "look") return this.#look(task);
    try {
      if (verdict.kind === "create") {
        task.object = knownOf(await this.#objects.create(this.#specOf(row, row.state), terms));
        task.isNew = true;
      } else if (typeof object === "object" && verdict.kind === "replace") {
        const { state, beside = [] } = verdict;
        const spec = this.#specOf(row, state);
        task.object = knownOf(
          await this.#objects.replace({ ...spec, holders: [...spec.holders, ...beside] }, object, terms),
        );
        task.isTakenOver = object.state === "Cooling";
      } else if (typeof object === "object" && verdict.kind === "leave") {
        task.object = knownOf(
          await this.#objects.replace(specWithout(this.#specOf(row, "Bound"), object, verdict.others), object, terms),
        );
      } else if (typeof object === "object") {
        const held = await this.#objects.delete(name, object, terms);
        task.object = held === undefined ? "absent" : knownOf(held);
      }
      this.#memory.noteWritten(name);
      if (task.object !== undefined)
        this.#memory.remember(name, task.object, typeof object === "object" ? object : undefined);
    } catch (error) {
      // Allocation rule 4: the object in the way may be this call's own.
      if (isConflict(error) || (isNotFound(error) && verdict.kind !== "create")) return this.#look(task);
      if (verdict.kind !== "create") this.#memory.leaveUnanswered(name);
      if (verdict.kind === "delete") this.#memory.distrust(name);
      else if (!(error instanceof ApiError)) this.#memory.doubt(name);
      throw error;
    }
  }

  /** Whether the object in the way is one that this agent can read. */
  async #isUnderstood(call: Promise<void>): Promise<boolean> {
    try {
      await call;
      return true;
    } catch (error) {
      if (error instanceof ConfigError) return false;
      throw error;
    }
  }

  async #look(task: SyncTask): Promise<void> {
    task.seen = await this.#objects.get(task.name, task.terms);
    task.object = task.seen === undefined ? "absent" : knownOf(task.seen);
    this.#memory.remember(task.name, task.object);
  }

  #begin(name: string, terms: CallTerms): SyncTask {
    return { name, terms, object: this.#memory.find(name), seen: undefined, isNew: false, isTakenOver: false };
  }

  /** The object is what the row says, or there is neither. */
  #end({ name }: SyncTask): void {
    this.#backlog.done(name);
    this.#memory.conclude(name);
  }

  #caseOf(row: Allocation, { name, object }: SyncTask, replaces: string | undefined): SyncInputs {
    const { node, nowMs, isPublic } = this.#options;
    return {
      ...{ row, node, replaces, object },
      isDue: row.freeAtMs !== undefined && row.freeAtMs <= nowMs(),
      isPublic: isPublic(row.pool),
      isDiscarded: this.#memory.isDiscarded(name),
      isAsked: this.#memory.isAsked(name),
      isUnanswered: this.#memory.isUnanswered(name),
      former: this.#memory.former(name),
    };
  }

  #specOf(row: Allocation, state: AllocationState): IpAllocationSpec {
    return specOf(row, state, { node: this.#options.node, since: new Date().toISOString() });
  }
}

function predecessorNode({
  predecessorNode: node,
}: Extract<SyncAction, { kind: "taken" }>): Pick<Allocation, "predecessorNode"> {
  return node === undefined ? {} : { predecessorNode: node };
}

/** A verdict that is a call. */
type Call = Extract<SyncAction, { kind: "look" | "create" | "replace" | "leave" | "delete" }>;
