/** Queues that run one job at a time, in the order of the calls. A job that fails does not stop the ones behind it. */

export class SerialQueue {
  /** Never rejects. */
  #tail: Promise<void> = Promise.resolve();
  /** Number of jobs that run or wait. */
  size = 0;

  /** Runs the job when all earlier ones have ended. Returns its result, or rejects with its error. */
  run<T>(job: () => Promise<T>): Promise<T> {
    this.size++;
    const result = this.#tail.then(job);
    const leave = (): void => {
      this.size--;
    };
    this.#tail = result.then(leave, leave);
    return result;
  }

  /** Resolves when the jobs queued so far have ended. */
  idle(): Promise<void> {
    return this.#tail;
  }
}

/** The same per key: jobs of different keys do not wait for each other. */
export class KeyedSerialQueue {
  /** The end of the last job of each key; never rejects. */
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs the job when all earlier ones of the key have ended. Returns its result, or rejects with its error. */
  run<T>(key: string, job: () => Promise<T>): Promise<T> {
    const result = (this.#tails.get(key) ?? Promise.resolve()).then(job);
    const leave = (): void => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    };
    const tail = result.then(leave, leave);
    this.#tails.set(key, tail);
    return result;
  }
}
