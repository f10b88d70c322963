/** How often something may be done for each key: a burst at once, and then so much a second. */
import { BoundedMap } from "./bounded-map.ts";

interface RateLimitOptions {
  readonly burst: number;
  readonly perSecond: number;
  /** Most keys that are remembered; one that is forgotten has its burst again. */
  readonly maxKeys: number;
  /** Monotonic: milliseconds. */
  readonly nowMs: () => number;
}

export class RateLimit {
  readonly #options: RateLimitOptions;
  /** What was left at a time. */
  readonly #left: BoundedMap<string, { readonly count: number; readonly atMs: number }>;

  constructor(options: RateLimitOptions) {
    this.#options = options;
    this.#left = new BoundedMap(options.maxKeys);
  }

  /** Returns whether `cost` may be spent for the key, and has been. */
  take(key: string, cost = 1): boolean {
    const left = this.#count(key);
    if (left < cost) return false;
    this.#left.set(key, { count: left - cost, atMs: this.#options.nowMs() });
    return true;
  }

  giveBack(key: string, cost = 1): void {
    this.#left.set(key, { count: this.#count(key) + cost, atMs: this.#options.nowMs() });
  }

  #count(key: string): number {
    const { burst, perSecond, nowMs } = this.#options;
    const { count, atMs } = this.#left.get(key) ?? { count: burst, atMs: 0 };
    return Math.min(burst, count + ((nowMs() - atMs) / 1000) * perSecond);
  }
}
