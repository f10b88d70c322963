/**
 * One time of leading: from the renewal that began it to its deadline, which each further renewal puts off.
 * Effects: a wait on the clock.
 */

/** Time as an election has it. */
export interface ElectionClock {
  /** Monotonic, milliseconds. */
  readonly nowMs: () => number;
  /** Rejects with the signal's reason. */
  readonly pause: (waitMs: number, signal: AbortSignal) => Promise<void>;
}

/** Why a signal `leading` was aborted. */
export class LeadingEnded extends Error {
  override readonly name = "LeadingEnded";
}

/** What whoever acts as the leader has of it. */
export interface Leading {
  /** Aborted before another could lead. */
  readonly signal: AbortSignal;
  /**
   * Looks at the clock, too: a process that was stopped for a while finds its timers late. Throws the signal's reason when leading has
   * ended.
   */
  require(): void;
}

export class LeadingTime implements Leading {
  readonly #clock: ElectionClock;
  readonly #controller = new AbortController();
  #deadlineMs: number;
  #waiting = new AbortController();

  constructor(clock: ElectionClock, deadlineMs: number) {
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
    this.#wait();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasEnded(): boolean {
    if (!this.signal.aborted && this.#clock.nowMs() >= this.#deadlineMs) this.#expire();
    return this.signal.aborted;
  }

  require(): void {
    if (this.hasEnded) throw this.signal.reason;
  }

  /** A time that has ended does not begin again. */
  extend(deadlineMs: number): void {
    if (this.hasEnded || deadlineMs <= this.#deadlineMs) return;
    this.#deadlineMs = deadlineMs;
    this.#wait();
  }

  end(why: string): void {
    this.#waiting.abort();
    this.#controller.abort(new LeadingEnded(why));
  }

  #wait(): void {
    this.#waiting.abort();
    this.#waiting = new AbortController();
    this.#clock.pause(this.#deadlineMs - this.#clock.nowMs(), this.#waiting.signal).then(
      () => this.#expire(),
      () => {},
    );
  }

  #expire(): void {
    this.end("The lease could not be renewed in time");
  }
}
