/**
 * Something that happens once, or never, and for which many wait. Of a wait that is given up nothing stays, which a promise cannot do:
 * it keeps all who ever waited for it until it settles.
 */

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export class Latch {
  readonly #waiting = new Set<Waiter>();
  #end: ((waiter: Waiter) => void) | undefined;

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** It has happened. The first end counts. */
  open(): void {
    this.#finish(({ resolve }) => resolve());
  }

  /** It never will. */
  fail(reason: unknown): void {
    this.#finish(({ reject }) => reject(reason));
  }

  /** Rejects with the signal's reason when that ends first, and with what it failed for. */
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
