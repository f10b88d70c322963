/** The history of a run: every line goes into the hash, the last ones are kept to be read. */
import { createHash, type Hash } from "node:crypto";

/** Lines that are kept; older ones are in the hash only. */
const KEPT_LINES = 40_000;

export class Timeline {
  readonly #hash: Hash = createHash("sha256");
  readonly #lines: string[] = [];
  readonly #nowMs: () => number;
  #count = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** For people: events that a reader of the history has to know. */
  note(text: string): void {
    const line = `${(this.#nowMs() / 1000).toFixed(3).padStart(9)} ${text}`;
    this.mark(line);
    this.#lines.push(line);
    this.#count++;
    if (this.#lines.length > 2 * KEPT_LINES) this.#lines.splice(0, KEPT_LINES);
  }

  /** For the hash alone. */
  mark(text: string): void {
    this.#hash.update(text).update("\n");
  }

  /** Digest of everything so far. */
  get digest(): string {
    return this.#hash.copy().digest("hex").slice(0, 16);
  }

  /** The last lines; with `pattern` those that it matches. */
  last(count: number, pattern?: RegExp): readonly string[] {
    const found = pattern === undefined ? this.#lines : this.#lines.filter((line) => pattern.test(line));
    return found.slice(-count);
  }

  get count(): number {
    return this.#count;
  }
}
