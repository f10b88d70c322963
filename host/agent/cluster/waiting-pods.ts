/**
 * Tells the controller how many pods wait for a block of a pool: each pod once, and in a storm all that have begun to
 * wait since the last time together.
 */

/** Shortest time between two marks of a pool: milliseconds. All agents watch pools. */
const MARK_REST_MS = 1_000;

export class WaitingPods {
  readonly #mark: (pool: string, waiting: number) => Promise<void>;
  /** Pods that are not told yet, of each pool that was marked less than MARK_REST_MS ago. */
  readonly #untold = new Map<string, number>();

  /** `mark`: never rejects. */
  constructor(mark: (pool: string, waiting: number) => Promise<void>) {
    this.#mark = mark;
  }

  async add(pool: string): Promise<void> {
    const untold = this.#untold.get(pool);
    if (untold === undefined) await this.#tell(pool, 1);
    else this.#untold.set(pool, untold + 1);
  }

  async #tell(pool: string, waiting: number): Promise<void> {
    this.#untold.set(pool, 0);
    setTimeout(() => {
      const untold = this.#untold.get(pool) ?? 0;
      if (untold > 0) void this.#tell(pool, untold);
      else this.#untold.delete(pool);
    }, MARK_REST_MS).unref();
    await this.#mark(pool, waiting);
  }
}
