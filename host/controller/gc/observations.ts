/**
 * The time since which each allocation has been observed in its current state: the first of the two observations that
 * the rule leak demands. In memory only: a new leader observes anew.
 */

interface Observation {
  /** Object, version and state: a different key is a new observation. */
  readonly key: string;
  readonly sinceMs: number;
  /** When the next check is due. */
  readonly dueMs: number;
  /** The node whose status the observation depends on. */
  readonly node: string;
}

export class Observations {
  readonly #seen = new Map<string, Observation>();

  get size(): number {
    return this.#seen.size;
  }

  /** Returns how long the state has been observed: milliseconds; undefined if it has not. */
  ageMs(name: string, key: string, nowMs: number): number | undefined {
    const before = this.#seen.get(name);
    return before?.key === key ? nowMs - before.sinceMs : undefined;
  }

  /** Keeps the time of the first observation of the same key. */
  note(
    name: string,
    { key, node, pauseMs, nowMs }: { key: string; node: string; pauseMs: number; nowMs: number },
  ): void {
    const before = this.#seen.get(name);
    const sinceMs = before?.key === key ? before.sinceMs : nowMs;
    this.#seen.set(name, { key, node, sinceMs, dueMs: sinceMs + pauseMs });
  }

  /** Delays the next check; the observation stands. */
  postpone(name: string, dueMs: number): void {
    const before = this.#seen.get(name);
    if (before !== undefined) this.#seen.set(name, { ...before, dueMs });
  }

  hasten(name: string, { node, nowMs }: { node: string; nowMs: number }): void {
    const before = this.#seen.get(name) ?? { key: "", node, sinceMs: nowMs };
    this.#seen.set(name, { ...before, dueMs: nowMs });
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }

  /** Drops the observations of a node that is back: they were made while it was away. */
  forgetNode(node: string): void {
    for (const [name, seen] of this.#seen) if (seen.node === node) this.#seen.delete(name);
  }

  /** Drops the observations of all other allocations, which no longer exist. */
  keepOnly(names: ReadonlySet<string>): void {
    for (const name of this.#seen.keys()) if (!names.has(name)) this.#seen.delete(name);
  }

  due(nowMs: number): readonly string[] {
    return [...this.#seen].flatMap(([name, { dueMs }]) => (dueMs <= nowMs ? [name] : []));
  }
}
