/**
 * Work that looks at everything and makes it right, again and again: woken by any change, never two rounds at once, with a rest between two, and a
 * growing pause after one that failed.
 * Opened by the parts that report about pools; each round decides from the caches, so that one which was lost is made up for by the next.
 * Effects: a timer; those of the work.
 */
import { describeFailure, pauseMs } from "../kubernetes/http/retry.ts";
import type { Log } from "../lib/log.ts";

/** How long a part that reports about pools rests after a round that failed, and a random time more: milliseconds. @limit */
export const ROUND_FAILED_MS = 1_000;

export interface RoundsOptions {
  /** For logs and problems: `The usage of pools could not be written`. */
  readonly failure: string;
  /** One round. Gives after how many milliseconds the next one is due if nothing changes; undefined: then none is. */
  readonly work: () => Promise<number | undefined>;
  /** Between the end of a round and the beginning of the next: milliseconds. */
  readonly restMs: () => number;
  /** No round begins when it has ended, and none is reported as failed then. */
  readonly leading: AbortSignal;
  readonly log: Log;
  readonly random: () => number;
}

export class Rounds {
  readonly #options: RoundsOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isWoken = false;
  #isClosed = false;
  #failures = 0;
  #problem: string | undefined;

  /** The first round begins at once. */
  constructor(options: RoundsOptions) {
    this.#options = options;
    this.#after(0);
  }

  /** Why the last round failed, as sentences. */
  get problems(): readonly string[] {
    return this.#problem === undefined ? [] : [this.#problem];
  }

  /** Something has changed: there will be a round that begins after this call. */
  wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    if (this.#running === undefined && this.#failures === 0) this.#after(this.#options.restMs());
  }

  /** Resolves when no round runs, and none will. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** A round that is due earlier stays due. */
  #after(milliseconds: number): void {
    if (this.#isClosed || this.#options.leading.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#round().finally(() => {
        this.#running = undefined;
        // Here and not at the round's end: what wakes it in between would find a round that looks at nothing any more.
        if (this.#isWoken && this.#failures === 0) this.#after(this.#options.restMs());
      });
    }, milliseconds).unref();
  }

  async #round(): Promise<void> {
    const { work, restMs, leading, log, random, failure } = this.#options;
    if (leading.aborted) return;
    this.#isWoken = false;
    let nextMs: number | undefined;
    try {
      nextMs = await work();
      this.#failures = 0;
      this.#problem = undefined;
    } catch (error) {
      if (leading.aborted) return;
      const reason = describeFailure(error);
      if (this.#problem === undefined) log.warn({ reason }, failure);
      this.#problem = `${failure}: ${reason}`;
      this.#failures++;
      return this.#after(restMs() + ROUND_FAILED_MS + pauseMs(this.#failures, random()));
    }
    if (nextMs !== undefined) this.#after(Math.max(nextMs, restMs()));
  }
}
