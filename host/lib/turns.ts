/** Long work in the thread of the event loop, in pieces. Between them other events have their turn, such as the renewal of a lease. */
import { setImmediate } from "node:timers/promises";

/** Longest piece of work over all objects, and with it how long one controller holds up the renewal of the lease: milliseconds. @limit */
export const TURN_MS = 10;

/** Work that may pause at each `yield`; what it reads may change meanwhile. */
export type Steps<R> = Generator<undefined, R>;

interface TurnsOptions {
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
  /** Ends the work at the next pause. */
  readonly signal: AbortSignal;
}

/** The pauses of one piece of work after the other. The first one begins now. */
export class Turns {
  readonly #options: TurnsOptions;
  #beganMs: number;
  #earlierMs = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#beganMs = options.nowMs();
  }

  /** Whether the piece has been long enough: then wait for {@link next}. */
  get isOver(): boolean {
    return this.#options.nowMs() - this.#beganMs >= TURN_MS;
  }

  /** Time that the pieces took, without the pauses: milliseconds. */
  get tookMs(): number {
    return this.#earlierMs + this.#options.nowMs() - this.#beganMs;
  }

  /** Resolves when other events have had their turn. Rejects with the signal's reason. */
  async next(): Promise<void> {
    const { nowMs, signal } = this.#options;
    this.#earlierMs = this.tookMs;
    await setImmediate();
    signal.throwIfAborted();
    this.#beganMs = nowMs();
  }

  /** Does the work with pauses, and returns its result. Rejects with the signal's reason. */
  async run<R>(steps: Steps<R>): Promise<R> {
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) return step.value;
      if (this.isOver) await this.next();
    }
  }
}
