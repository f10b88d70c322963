/**
 * What this node remembers of its objects between two calls. None of it is more than a guess: the API server compares each call's precondition.
 */
import type { KnownObject } from "./known-object.ts";

/** How long a write whose answer was lost may still be carried out: milliseconds. Until then an object that is not there is not believed to be gone. @limit */
export const DOUBT_MS = 5_000;

/** Most objects that were this node's of which the last version is remembered, so that a late event is known for one; the one that ended longest ago is forgotten first. @limit */
export const MAX_FORMER_OBJECTS = 4_096;

const NOBODY: ReadonlySet<string> = new Set();

export class ObjectMemory {
  readonly #node: string;
  readonly #nowMs: () => number;
  /** Objects of this node, as of the last answer or event, by name. */
  readonly #known = new Map<string, KnownObject>();
  /** Whose objects on this node may be written over: their rows were released, and another pod has the row now. */
  readonly #former = new Map<string, Set<string>>();
  /** What only an event has told of. */
  readonly #hearsay = new Set<string>();
  /** What was written to without an answer, and until when that may still be carried out. */
  readonly #doubts = new Map<string, number>();
  /** What was changed or deleted without an answer: the next write makes the precondition of that one fail, however late it is carried out. */
  readonly #unanswered = new Set<string>();
  /** Of objects that are no longer this node's: the last version. An event that comes late tells of no later one. */
  readonly #ended = new Map<string, Pick<KnownObject, "uid" | "resourceVersion">>();
  /** Rows that were claimed anew and undone: with a workload, too, nothing is kept. */
  readonly #discarded = new Set<string>();
  /** Addresses of other nodes, which are lost, that this one was told to ask for. */
  readonly #asked = new Set<string>();

  constructor({ node, nowMs }: { readonly node: string; readonly nowMs: () => number }) {
    this.#node = node;
    this.#nowMs = nowMs;
  }

  /** How many objects are known. */
  get size(): number {
    return this.#known.size;
  }

  find(name: string): KnownObject | undefined {
    return this.#known.get(name);
  }

  /** Without what only an event has told: of an address that nobody here had, that may be long gone. */
  findAnswered(name: string): KnownObject | undefined {
    return this.#hearsay.has(name) && this.former(name).size === 0 ? undefined : this.#known.get(name);
  }

  /** What an answer says. `before`: the object as it was when it was deleted. */
  remember(name: string, object: KnownObject | "absent", before = this.#known.get(name)): void {
    if (object !== "absent" && object.node === this.#node) {
      if (isLater(this.#known.get(name), object)) return;
      this.#ended.delete(name);
      this.#hearsay.delete(name);
      this.#know(name, object);
      return;
    }
    this.#lose(name);
    const last = object === "absent" ? before : object;
    if (last === undefined) return;
    this.#ended.delete(name);
    this.#ended.set(name, last);
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= MAX_FORMER_OBJECTS) break;
      this.#ended.delete(oldest);
    }
  }

  /** What an event says. False when it is no news: of two versions the later one stays, and an event may come after the answer to a later call. */
  observe(name: string, object: KnownObject): boolean {
    const before = this.#known.get(name) ?? this.#ended.get(name);
    if (isLater(before, object) || before?.resourceVersion === object.resourceVersion) return false;
    this.#ended.delete(name);
    this.#hearsay.add(name);
    this.#know(name, object);
    return true;
  }

  /** The watch will tell nothing more of the object. True when it was known. */
  observeEnd(name: string, uid: string): boolean {
    if (this.#ended.get(name)?.uid === uid) this.#ended.delete(name);
    if (this.#known.get(name)?.uid !== uid) return false;
    this.#lose(name);
    return true;
  }

  distrust(name: string): void {
    this.#lose(name);
  }

  /** A write had no answer: it may have been carried out, or may still be. */
  doubt(name: string): void {
    this.#lose(name);
    this.#doubts.set(name, this.#nowMs() + DOUBT_MS);
  }

  /** Until when such a write may yet be carried out. */
  doubtfulUntilMs(name: string): number {
    return this.#doubts.get(name) ?? 0;
  }

  /** A change or deletion had no answer: until the next one that has, the object may yet become what that one says. */
  leaveUnanswered(name: string): void {
    this.#unanswered.add(name);
  }

  isUnanswered(name: string): boolean {
    return this.#unanswered.has(name);
  }

  /** The object has a new version, or none: what was sent before finds it changed. */
  noteWritten(name: string): void {
    this.#unanswered.delete(name);
  }

  /** Also when its object is gone; not across a start of the agent. */
  isAsked(name: string): boolean {
    return this.#asked.has(name);
  }

  #know(name: string, object: KnownObject): void {
    this.#known.set(name, object);
    if (object.lost !== undefined && object.lost !== this.#node) this.#asked.add(name);
    else this.#asked.delete(name);
  }

  #lose(name: string): void {
    this.#known.delete(name);
    this.#hearsay.delete(name);
  }

  supersede(name: string, owner: string): void {
    this.#former.set(name, (this.#former.get(name) ?? new Set()).add(owner));
  }

  former(name: string): ReadonlySet<string> {
    return this.#former.get(name) ?? NOBODY;
  }

  discard(name: string): void {
    this.#discarded.add(name);
  }

  retain(name: string): void {
    this.#discarded.delete(name);
  }

  isDiscarded(name: string): boolean {
    return this.#discarded.has(name);
  }

  /** The row is gone. */
  forgetAsked(name: string): void {
    this.#asked.delete(name);
  }

  /** The object is what the row says, or there is neither: what was true of earlier owners is no longer needed. */
  conclude(name: string): void {
    this.#former.delete(name);
    this.#doubts.delete(name);
    this.#discarded.delete(name);
    this.#unanswered.delete(name);
  }
}

function isLater(one: Pick<KnownObject, "resourceVersion"> | undefined, other: KnownObject): boolean {
  return one !== undefined && Number(one.resourceVersion) > Number(other.resourceVersion);
}
