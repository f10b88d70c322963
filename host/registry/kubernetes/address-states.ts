/**
 * This node's knowledge of the objects of its addresses: one value per address. All of it may be outdated; the API
 * server checks the precondition of every call.
 */
import type { IpAllocation } from "../../resources/ip-allocation.ts";
import { findLostNode } from "./known-object.ts";

/** Most ended objects remembered to recognise late reads. The one that ended first is dropped first. */
export const MAX_ENDED_OBJECTS = 4_096;

/**
 * `isProber`: this node was told to probe the address on behalf of a lost node. Outlives the object, but no restart
 * of the agent.
 */
type ObjectState =
  | { readonly kind: "unknown"; readonly last?: Version | undefined; readonly isProber: boolean }
  /** This node has the object. */
  | { readonly kind: "known"; readonly object: IpAllocation }
  /** The object was deleted or went to another node. A read of this version or an earlier one is late. */
  | { readonly kind: "ended"; readonly last: Version; readonly isProber: boolean };

type Version = Pick<IpAllocation, "uid" | "resourceVersion">;

interface AddressState {
  readonly object: ObjectState;
  /**
   * A change or deletion was sent that had no answer, maybe by an earlier agent. It may still be carried out, until
   * another write makes its precondition fail.
   */
  readonly isSent: boolean;
}

/** The state of an unknown address. */
const INITIAL_STATE: AddressState = { object: { kind: "unknown", isProber: false }, isSent: false };

/** Returns whether this node was told to probe the address on behalf of a lost node. */
export function isProber({ object }: AddressState, node: string): boolean {
  if (object.kind !== "known") return object.isProber;
  const lost = findLostNode(object.object.spec);
  return lost !== undefined && lost !== node;
}

export class AddressStates {
  readonly #node: string;
  /** Without those that equal {@link INITIAL_STATE}. */
  readonly #states = new Map<string, AddressState>();
  /** Names in state `ended`, the earliest first. */
  readonly #ended = new Set<string>();

  constructor(node: string) {
    this.#node = node;
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
  find(name: string): IpAllocation | undefined {
    const { object } = this.get(name);
    return object.kind === "known" ? object.object : undefined;
  }

  /** An answer of the API server. `before`: the object that the answered call deleted or changed. */
  noteAnswer(name: string, object: IpAllocation | "absent", before = this.find(name)): void {
    const state = this.get(name);
    if (object !== "absent" && object.spec.node === this.#node) {
      if (state.object.kind === "known" && isLater(state.object.object, object)) return;
      this.#put(name, { ...state, object: { kind: "known", object } });
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

  /** A list or read beside the calls for the address. Returns false if it is older than a later call's answer. */
  noteSeen(name: string, object: IpAllocation): boolean {
    const state = this.get(name);
    const before = versionOf(state.object);
    if (isLater(before, object) || before?.resourceVersion === object.resourceVersion) return false;
    this.#put(name, { ...state, object: { kind: "known", object } });
    return true;
  }

  /** Retained objects that this node no longer has: all but these. */
  forgetRetained(names: Pick<ReadonlySet<string>, "has">): void {
    for (const [name, { object }] of this.#states)
      if (object.kind === "known" && object.object.spec.state === "Kept" && !names.has(name)) this.#forgetObject(name);
  }

  /** The known object is not as it was known: the next call reads it. */
  invalidate(name: string): void {
    const known = this.find(name);
    if (known !== undefined) this.#forgetObject(name, known);
  }

  /** Returns the last version that was known. */
  versionOf(name: string): Version | undefined {
    return versionOf(this.get(name).object);
  }

  /** No object is as it was known: the API server's history is another one. */
  forgetObjects(): void {
    for (const name of [...this.#states.keys()]) this.#forgetObject(name);
  }

  /**
   * A change or deletion failed, or an earlier agent may have sent one: it may still be carried out. `isSent` false: a
   * write was answered, so that one sent before it can no longer be.
   */
  noteSent(name: string, isSent = true): void {
    const state = this.get(name);
    if (state.isSent !== isSent) this.#put(name, { ...state, isSent });
  }

  /** The row was forgotten: a later row of the address is none that this node was told to probe. */
  noteForgotten(name: string): void {
    const { object, isSent } = this.get(name);
    if (object.kind === "unknown") this.#put(name, { ...INITIAL_STATE, isSent });
    else if (object.kind === "ended" && object.isProber)
      this.#put(name, { object: { ...object, isProber: false }, isSent });
  }

  #forgetObject(name: string, last?: Version): void {
    const state = this.get(name);
    this.#put(name, { ...state, object: { kind: "unknown", last, isProber: isProber(state, this.#node) } });
  }

  #put(name: string, state: AddressState): void {
    const before = this.get(name);
    const { object, isSent } = state;
    const isInitial = object.kind === "unknown" && object.last === undefined && !object.isProber && !isSent;
    if (isInitial) this.#states.delete(name);
    else this.#states.set(name, state);
    if (object === before.object) return;
    this.#ended.delete(name);
    if (object.kind !== "ended") return;
    this.#ended.add(name);
    const [oldest = name] = this.#ended;
    if (this.#ended.size > MAX_ENDED_OBJECTS) this.#forgetObject(oldest);
  }
}

function versionOf(object: ObjectState): Version | undefined {
  return object.kind === "known" ? object.object : object.last;
}

export function isLater(one: Version | undefined, other: IpAllocation | "absent"): boolean {
  return one !== undefined && other !== "absent" && Number(one.resourceVersion) > Number(other.resourceVersion);
}
