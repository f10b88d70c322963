/**
 * An event that happens once or never and that many callers await. An abandoned wait leaves nothing behind, while a
 * promise keeps a reaction for every caller until it resolves.
 */

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export class Latch {
  readonly #waiting = new Set<Waiter>();
  #end: ((waiter: Waiter) => void) | undefined;

  /** Number of callers that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves all waits. Only the first call of `open` or `fail` counts. */
  open(): void {
    this.#finish(({ resolve }) => resolve());
  }

  /** Rejects all waits. */
  fail(reason: unknown): void {
    this.#finish(({ reject }) => reject(reason));
  }

  /** Resolves when the latch opens. Rejects with the reason of `fail`, or of the signal if it aborts first. */
  wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const giveUp = () => waiter.reject(signal?.reason);
      const leave = () => {
        this.#waiting.delete(waiter);
        signal?.removeEventListener("abort", giveUp);
      };
      const waiter: Waiter = {
        resolve: () => {
          leave();
          resolve();
        },
        reject: (reason) => {
          leave();
          reject(reason);
        },
      };
      if (this.#end !== undefined) return this.#end(waiter);
      this.#waiting.add(waiter);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  #finish(end: (waiter: Waiter) => void): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    for (const waiter of this.#waiting) end(waiter);
  }
}
