/**
 * What this node remembers of its objects between two calls. None of it is more than a guess: the API server compares each call's precondition.
 * Called by publisher.ts.
 * Effects: none.
 */
import { DOUBT_MS } from "../limits.ts";
import type { KnownObject } from "./known-object.ts";

const NOBODY: ReadonlySet<string> = new Set();

export class ObjectMemory {
  readonly #node: string;
  readonly #nowMs: () => number;
  /** Objects of this node, as of the last answer or event, by name. */
  readonly #known = new Map<string, KnownObject>();
  /** Whose objects on this node may be written over: their rows were released, and another pod has the row now. */
  readonly #former = new Map<string, Set<string>>();
  /** What was written to without an answer, and until when that may still be carried out. */
  readonly #doubts = new Map<string, number>();
  /** Rows that were claimed anew and undone: with a workload, too, nothing is kept. */
  readonly #discarded = new Set<string>();

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

  /** Of two versions the later one stays: an event may come after the answer to a later call. */
  remember(name: string, object: KnownObject | "absent"): void {
    if (object === "absent" || object.node !== this.#node) {
      this.#known.delete(name);
      return;
    }
    const before = this.#known.get(name);
    if (before !== undefined && Number(before.resourceVersion) > Number(object.resourceVersion)) return;
    this.#known.set(name, object);
  }

  distrust(name: string): void {
    this.#known.delete(name);
  }

  /** A write had no answer: it may have been carried out, or may still be. */
  doubt(name: string): void {
    this.#known.delete(name);
    this.#doubts.set(name, this.#nowMs() + DOUBT_MS);
  }

  /** Until when such a write may yet be carried out. */
  doubtfulUntilMs(name: string): number {
    return this.#doubts.get(name) ?? 0;
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

  /** The object is what the row says, or there is neither: what was true of earlier owners is no longer needed. */
  conclude(name: string): void {
    this.#former.delete(name);
    this.#doubts.delete(name);
    this.#discarded.delete(name);
  }
}
