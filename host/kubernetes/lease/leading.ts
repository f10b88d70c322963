/** One time of leading: from the renewal that started it to its deadline, which each renewal extends. */

/** The clocks of an election. */
export interface ElectionClock {
  /** Monotonic, milliseconds. */
  readonly nowMs: () => number;
  /** Rejects with the signal's reason. */
  readonly pause: (waitMs: number, signal: AbortSignal) => Promise<void>;
}

/** The reason of an aborted `leading` signal. */
class LeadingEnded extends Error {
  override readonly name = "LeadingEnded";
}

/** The context of the leader's work. */
export interface Leading {
  /** Aborted before another process can lead. */
  readonly signal: AbortSignal;
  /** Checks the clock, too: a suspended process has late timers. Throws the signal's reason after the end. */
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

  /** Has no effect after the end. */
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
