/** Calls a set of listeners one after the other. */
export class Listeners<T> {
  readonly #all = new Set<(event: T) => void>();
  readonly #onFailure: (error: unknown, event: T) => void;

  /** `onFailure` is called if a listener throws; the others are called nevertheless. */
  constructor(onFailure: (error: unknown, event: T) => void) {
    this.#onFailure = onFailure;
  }

  /** Returns a function that removes the listener. Adding the same function twice adds two listeners. */
  add(listener: (event: T) => void): () => void {
    const own = (event: T): void => listener(event);
    this.#all.add(own);
    return () => this.#all.delete(own);
  }

  /** Calls all listeners, except for those removed meanwhile; added ones are called from the next event on. */
  tell(event: T): void {
    for (const listener of [...this.#all]) {
      if (!this.#all.has(listener)) continue;
      try {
        listener(event);
      } catch (error) {
        this.#onFailure(error, event);
      }
    }
  }
}
