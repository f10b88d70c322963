/**
 * Those who want to hear of something, told one after the other.
 * Called by what is watched for several parts: the controller's caches and workloads.
 * Effects: none of its own.
 */
export class Listeners<T> {
  readonly #all = new Set<(news: T) => void>();
  readonly #onFailure: (error: unknown, news: T) => void;

  /** `onFailure`: a listener has thrown, which keeps the others from nothing. */
  constructor(onFailure: (error: unknown, news: T) => void) {
    this.#onFailure = onFailure;
  }

  /** Gives back what ends it. The same function twice is two listeners. */
  add(listener: (news: T) => void): () => void {
    const own = (news: T): void => listener(news);
    this.#all.add(own);
    return () => this.#all.delete(own);
  }

  /** Who leaves while the others are being told hears no more; who comes meanwhile hears of the next news. */
  tell(news: T): void {
    for (const listener of [...this.#all]) {
      if (!this.#all.has(listener)) continue;
      try {
        listener(news);
      } catch (error) {
        this.#onFailure(error, news);
      }
    }
  }
}
