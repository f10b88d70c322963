/**
 * Requests of one container, one after the other: a DEL waits until its pair is gone, and an ADD that looked meanwhile would take the
 * pair for its own.
 */

export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Does the work once all that was asked for the same container before has ended, however it did. */
  take<T>(containerId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(containerId);
    const turn = before === undefined ? work() : before.then(work);
    const ended = turn.then(
      () => {},
      () => {},
    );
    this.#last.set(containerId, ended);
    void ended.then(() => {
      if (this.#last.get(containerId) === ended) this.#last.delete(containerId);
    });
    return turn;
  }

  /** Containers that somebody waits for. */
  get size(): number {
    return this.#last.size;
  }
}
