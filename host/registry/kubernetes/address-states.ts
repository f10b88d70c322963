/**
 * This node's knowledge of the objects of its addresses, and the differences that may still separate each object from
 * its row: one state per address. All of it may be outdated; the API server checks the precondition of every call.
 */
import type { KnownObject } from "./known-object.ts";

/**
 * Time within which a write whose answer was lost may still be carried out: milliseconds. Until then an object that
 * is absent may yet appear.
 */
export const LATE_WRITE_MS = 5_000;

/** Most ended objects remembered to recognise late reads. The one that ended longest ago is forgotten first. */
export const MAX_ENDED_OBJECTS = 4_096;

/**
 * `isProber`: this node was told to probe the address on behalf of a lost node. Outlives the object, but no restart
 * of the agent.
 */
type ObjectState =
  | { readonly kind: "unknown"; readonly isProber: boolean }
  /**
   * This node has the object, according to an answer to a call for the address, or only to a list or read beside these.
   */
  | { readonly kind: "known"; readonly object: KnownObject; readonly source: "answer" | "seen" }
  /** The object was deleted or went to another node. A read of this version or an earlier one is late. */
  | { readonly kind: "ended"; readonly last: Version; readonly isProber: boolean };

type Version = Pick<KnownObject, "uid" | "resourceVersion">;

/** The differences that may separate the object from the row, until the two agree. */
export interface Pending {
  /** Earlier owners of the address on this node. Their rows were released, so their objects may be overwritten. */
  readonly formerOwners: ReadonlySet<string>;
  /**
   * A change or deletion had no answer. The object is certain only after another write, which makes the precondition
   * of that one fail.
   */
  readonly isUnanswered: boolean;
  /**
   * Until when a create or change whose answer was lost may still be carried out: milliseconds of the monotonic
   * clock, 0 if there is none.
   */
  readonly lateUntilMs: number;
}

export interface AddressState {
  readonly object: ObjectState;
  readonly pending: Pending;
}

const NOTHING_PENDING: Pending = { formerOwners: new Set(), isUnanswered: false, lateUntilMs: 0 };

/** The state of an address of which nothing is known. */
const INITIAL_STATE: AddressState = { object: { kind: "unknown", isProber: false }, pending: NOTHING_PENDING };

/** Returns whether this node was told to probe the address on behalf of a lost node. */
export function isProber({ object }: AddressState, node: string): boolean {
  if (object.kind !== "known") return object.isProber;
  return object.object.lost !== undefined && object.object.lost !== node;
}

export class AddressStates {
  readonly #node: string;
  readonly #nowMs: () => number;
  /** Without those that equal {@link INITIAL_STATE}. */
  readonly #states = new Map<string, AddressState>();
  /** Names in state `ended`, the earliest first. */
  readonly #ended = new Set<string>();

  constructor({ node, nowMs }: { readonly node: string; readonly nowMs: () => number }) {
    this.#node = node;
    this.#nowMs = nowMs;
  }

  /** Number of known objects. */
  get known(): number {
    return this.#states.values().reduce((count, { object }) => (object.kind === "known" ? count + 1 : count), 0);
  }

  copyFrom(other: AddressStates): void {
    for (const [name, state] of other.#states) this.#put(name, state);
  }

  get(name: string): AddressState {
    return this.#states.get(name) ?? INITIAL_STATE;
  }

  /** Returns the object if it is known. */
  find(name: string): KnownObject | undefined {
    const { object } = this.get(name);
    return object.kind === "known" ? object.object : undefined;
  }

  /**
   * Returns the object that a claim may rely on: not one that was only seen, unless this node's journal knows an
   * earlier owner.
   */
  findForClaim(name: string): KnownObject | undefined {
    const { object, pending } = this.get(name);
    if (object.kind !== "known") return undefined;
    return object.source === "seen" && pending.formerOwners.size === 0 ? undefined : object.object;
  }

  /**
   * Returns whether the object is known only of a list or read beside the calls for the address: it may have changed
   * since.
   */
  isOnlySeen(name: string): boolean {
    const { object } = this.get(name);
    return object.kind === "known" && object.source === "seen";
  }

  /** An answer of the API server. `before`: the object that the answered call deleted or changed. */
  noteAnswer(name: string, object: KnownObject | "absent", before = this.find(name)): void {
    const state = this.get(name);
    if (object !== "absent" && object.node === this.#node) {
      if (state.object.kind === "known" && isLater(state.object.object, object)) return;
      this.#put(name, { ...state, object: { kind: "known", object, source: "answer" } });
      return;
    }
    const last = object === "absent" ? before : object;
    if (last === undefined) return;
    const { uid, resourceVersion } = last;
    this.#put(name, {
      ...state,
      object: { kind: "ended", last: { uid, resourceVersion }, isProber: isProber(state, this.#node) },
    });
  }

  /**
   * A list or read beside the calls for the address. Returns false if it is late: the answer to a later call may
   * arrive before it.
   */
  noteSeen(name: string, object: KnownObject): boolean {
    const state = this.get(name);
    const before = versionOf(state.object);
    if (isLater(before, object) || before?.resourceVersion === object.resourceVersion) return false;
    this.#put(name, { ...state, object: { kind: "known", object, source: "seen" } });
    return true;
  }

  /** Retained objects that this node no longer has: all but these. */
  forgetRetained(names: Pick<ReadonlySet<string>, "has">): void {
    for (const [name, { object }] of this.#states)
      if (object.kind === "known" && object.object.state === "Kept" && !names.has(name)) this.#forgetObject(name);
  }

  /** The known object is not as it was known: the next call reads it. */
  invalidate(name: string): void {
    if (this.get(name).object.kind === "known") this.#forgetObject(name);
  }

  /** A write was answered: an unanswered one before it can no longer be carried out. */
  noteWritten(name: string): void {
    this.#change(name, { isUnanswered: false });
  }

  /** A write failed. `isAnswered`: the API server refused it. */
  noteWriteFailed(name: string, write: "create" | "change" | "delete", isAnswered: boolean): void {
    if (write !== "create") this.#change(name, { isUnanswered: true });
    if (write === "delete") this.invalidate(name);
    else if (!isAnswered) {
      this.invalidate(name);
      this.noteUnanswered(name);
    }
  }

  /** An attempt of a create or change had no answer, whatever becomes of the next one. */
  noteUnanswered(name: string): void {
    this.#change(name, { lateUntilMs: this.#nowMs() + LATE_WRITE_MS });
  }

  /** An earlier agent may have sent a write that is not carried out yet. */
  noteRestart(name: string): void {
    this.#change(name, { isUnanswered: true });
  }

  /** The row has a new owner. */
  noteFormerOwner(name: string, owner: string): void {
    const { formerOwners } = this.get(name).pending;
    this.#change(name, { formerOwners: new Set([...formerOwners, owner]) });
  }

  /**
   * The object is what the row says, or neither exists. A write that may still be carried out would succeed once the
   * object is deleted again.
   */
  noteSynced(name: string): void {
    const state = this.get(name);
    const { lateUntilMs } = state.pending;
    const isLate = state.object.kind === "known" && lateUntilMs > this.#nowMs();
    const pending = isLate ? { ...NOTHING_PENDING, lateUntilMs } : NOTHING_PENDING;
    if (state.pending !== pending) this.#put(name, { ...state, pending });
  }

  /** The row was forgotten: a later row of the address is none that this node was told to probe. */
  noteForgotten(name: string): void {
    const state = this.get(name);
    if (state.object.kind === "known" || !state.object.isProber) return;
    this.#put(name, { ...state, object: { ...state.object, isProber: false } });
  }

  #change(name: string, change: Partial<Pending>): void {
    const state = this.get(name);
    this.#put(name, { ...state, pending: { ...state.pending, ...change } });
  }

  #forgetObject(name: string): void {
    const state = this.get(name);
    this.#put(name, { ...state, object: { kind: "unknown", isProber: isProber(state, this.#node) } });
  }

  #put(name: string, state: AddressState): void {
    const before = this.get(name);
    if (isInitial(state)) this.#states.delete(name);
    else this.#states.set(name, state);
    if (state.object === before.object) return;
    this.#ended.delete(name);
    if (state.object.kind !== "ended") return;
    this.#ended.add(name);
    const [oldest = name] = this.#ended;
    if (this.#ended.size > MAX_ENDED_OBJECTS) this.#forgetObject(oldest);
  }
}

function isInitial({ object, pending }: AddressState): boolean {
  if (object.kind !== "unknown" || object.isProber) return false;
  const { formerOwners, isUnanswered, lateUntilMs } = pending;
  return formerOwners.size === 0 && !isUnanswered && lateUntilMs === 0;
}

function versionOf(object: ObjectState): Version | undefined {
  if (object.kind === "unknown") return undefined;
  return object.kind === "known" ? object.object : object.last;
}

function isLater(one: Version | undefined, other: KnownObject): boolean {
  return one !== undefined && Number(one.resourceVersion) > Number(other.resourceVersion);
}
