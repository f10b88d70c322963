/** How often something may be done for each key: a burst at once, and then so much a second. */
import { BoundedMap } from "./bounded-map.ts";

interface RateLimitOptions {
  readonly burst: number;
  readonly perSecond: number;
  /** Most keys that are remembered; one that is forgotten has its burst again. */
  readonly maxKeys: number;
}

export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #nowMs: () => number;
  /** The rest of the burst at a time. */
  readonly #left: BoundedMap<string, { readonly count: number; readonly atMs: number }>;

  /** `nowMs` is monotonic: milliseconds. */
  constructor(options: RateLimitOptions, nowMs: () => number) {
    this.#options = options;
    this.#nowMs = nowMs;
    this.#left = new BoundedMap(options.maxKeys);
  }

  /** Returns whether `cost` may be spent for the key, and has been. */
  take(key: string, cost = 1): boolean {
    const left = this.#count(key);
    if (left < cost) return false;
    this.#left.set(key, { count: left - cost, atMs: this.#nowMs() });
    return true;
  }

  giveBack(key: string): void {
    this.#left.set(key, { count: this.#count(key) + 1, atMs: this.#nowMs() });
  }

  #count(key: string): number {
    const { burst, perSecond } = this.#options;
    const { count, atMs } = this.#left.get(key) ?? { count: burst, atMs: 0 };
    return Math.min(burst, count + ((this.#nowMs() - atMs) / 1000) * perSecond);
  }
}
