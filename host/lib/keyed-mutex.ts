/**
 * One thing at a time for each key, in the order of the calls; different keys do not wait for each other.
 */

export class KeyedMutex {
  /** The end of each key's queue; settles, never rejects. */
  readonly #tails = new Map<string, Promise<void>>();

  /** How many keys have work. */
  get size(): number {
    return this.#tails.size;
  }

  /** Runs `work` when all earlier work of the key has ended, however it ended. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const result = before.then(work);
    const tail: Promise<void> = result.then(
      () => this.#leave(key, tail),
      () => this.#leave(key, tail),
    );
    this.#tails.set(key, tail);
    return result;
  }

  #leave(key: string, tail: Promise<void>): void {
    if (this.#tails.get(key) === tail) this.#tails.delete(key);
  }
}
