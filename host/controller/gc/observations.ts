/**
 * Since when each allocation has been seen in the situation that it is in: the first of the two looks of allocation rule 16. Memory only: who
 * leads anew observes anew.
 */

interface Observation {
  /** Object, version and situation: anything else is another observation. */
  readonly key: string;
  readonly sinceMs: number;
  /** When it is worth the next look. */
  readonly dueMs: number;
  /** Whose readiness it rests on. */
  readonly node: string;
}

export class Observations {
  readonly #seen = new Map<string, Observation>();

  get size(): number {
    return this.#seen.size;
  }

  /** For how long it has been seen so; undefined when it has not. */
  ageMs(name: string, key: string, nowMs: number): number | undefined {
    const before = this.#seen.get(name);
    return before?.key === key ? nowMs - before.sinceMs : undefined;
  }

  /** The first time counts. */
  note(
    name: string,
    { key, node, pauseMs, nowMs }: { key: string; node: string; pauseMs: number; nowMs: number },
  ): void {
    const before = this.#seen.get(name);
    const sinceMs = before?.key === key ? before.sinceMs : nowMs;
    this.#seen.set(name, { key, node, sinceMs, dueMs: sinceMs + pauseMs });
  }

  /** It was looked at in vain: not again before then. */
  postpone(name: string, dueMs: number): void {
    const before = this.#seen.get(name);
    if (before !== undefined) this.#seen.set(name, { ...before, dueMs });
  }

  /** Something was heard of it: looked at now. What was seen stands. */
  hasten(name: string, { node, nowMs }: { node: string; nowMs: number }): void {
    const before = this.#seen.get(name) ?? { key: "", node, sinceMs: nowMs };
    this.#seen.set(name, { ...before, dueMs: nowMs });
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }

  /** The node has shown itself: what was seen of its addresses while it was away does not count. */
  forgetNode(node: string): void {
    for (const [name, seen] of this.#seen) if (seen.node === node) this.#seen.delete(name);
  }

  /** The others are not there any more. */
  keepOnly(names: ReadonlySet<string>): void {
    for (const name of this.#seen.keys()) if (!names.has(name)) this.#seen.delete(name);
  }

  due(nowMs: number): readonly string[] {
    return [...this.#seen].flatMap(([name, { dueMs }]) => (dueMs <= nowMs ? [name] : []));
  }
}
