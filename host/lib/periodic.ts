/** Repeats a piece of work in the background, at times that it names and when it is woken. Runs never overlap. */
import { messageOf } from "./describe.ts";
import type { Log } from "./log.ts";

export interface PeriodicOptions {
  /** A clause for the log and for `problems`: `Draining the spool failed`. */
  readonly failure: string;
  /** Level of the log line. Default: warn. */
  readonly level?: "warn" | "error";
  /** One run. Returns after how many milliseconds the next one is due; undefined: only `wake` starts another. */
  readonly work: () => Promise<number | undefined>;
  /**
   * Checked before each run: while it returns false the run is skipped, and due again after `checkMs`. A failure
   * persists meanwhile.
   */
  readonly isDue?: () => boolean;
  readonly checkMs?: number;
  /**
   * Time to wait after a run that failed, for the `failures`th time in succession: milliseconds. An error may say it
   * itself, as `restMs`: it concerns one of many things, and `wake` still starts a run.
   */
  readonly retryMs: (failures: number) => number;
  /** Shortest time between the end of a run and the start of the next: milliseconds. Default: 0. */
  readonly restMs?: () => number;
  /** Delay of the first run: milliseconds. Default: 0. */
  readonly firstMs?: number;
  /** When it aborts, no run starts any more, and a failure is not reported. */
  readonly signal?: AbortSignal;
  readonly log: Log;
}

export class PeriodicWorker {
  readonly #options: PeriodicOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isWoken = false;
  #isClosed = false;
  #failures = 0;
  #problem: string | undefined;

  constructor(options: PeriodicOptions) {
    this.#options = options;
    this.#schedule(options.firstMs ?? 0);
  }

  /** Why the last run failed, as sentences; empty after a successful one. */
  get problems(): readonly string[] {
    return this.#problem === undefined ? [] : [this.#problem];
  }

  /** Guarantees a run that starts after this call, after the rest. The pause after a failure is not shortened. */
  wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    if (this.#running === undefined) this.#scheduleWoken();
  }

  /** Starts no further run; resolves when the current one has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  get #isOver(): boolean {
    return this.#isClosed || this.#options.signal?.aborted === true;
  }

  get #restMs(): number {
    return this.#options.restMs?.() ?? 0;
  }

  #scheduleWoken(): void {
    if (this.#isWoken && this.#failures === 0) this.#schedule(this.#restMs);
  }

  #schedule(milliseconds: number): void {
    if (this.#isOver) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#run().finally(() => {
        this.#running = undefined;
        // Not at the end of #run: a wake between that and here would be lost.
        this.#scheduleWoken();
      });
    }, milliseconds).unref();
  }

  async #run(): Promise<void> {
    if (this.#isOver) return;
    const { isDue, checkMs = 0, work } = this.#options;
    this.#isWoken = false;
    if (isDue?.() === false) return this.#schedule(checkMs);
    try {
      const nextMs = await work();
      this.#failures = 0;
      this.#problem = undefined;
      if (nextMs !== undefined) this.#schedule(Math.max(nextMs, this.#restMs));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Logs a persistent failure only once. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    const { failure, level = "warn", log, retryMs } = this.#options;
    const problem = `${failure}: ${messageOf(error)}`;
    const restMs = restOf(error);
    // The code that lets work rest has reported the reason.
    if (restMs === undefined && problem !== this.#problem) log[level]({ err: error }, `${failure}; retrying`);
    this.#problem = problem;
    this.#failures = restMs === undefined ? this.#failures + 1 : 0;
    this.#schedule(restMs === undefined ? retryMs(this.#failures) : Math.max(restMs, this.#restMs));
  }
}

function restOf(error: unknown): number | undefined {
  const { restMs } = (error ?? {}) as { readonly restMs?: unknown };
  return typeof restMs === "number" ? restMs : undefined;
}
