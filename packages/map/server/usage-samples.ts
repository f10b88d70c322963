/**
 * The number of addresses of each pool in use, once a minute, in memory: the last day, from the start of the process
 * on.
 */
import type { UsageAnswer } from "./map-records.ts";

/** Time between two samples of the usage that the address map shows: milliseconds. */
export const SAMPLE_MS = 60_000;

/** Samples of a pool that are kept. */
const MAX_SAMPLES = 1_440;

/** Most pools with samples. */
const MAX_SAMPLED_POOLS = 1_000;

/** The newest sample of a ring is before `next`. */
interface Ring {
  readonly values: Uint32Array;
  next: number;
  length: number;
}

export class UsageSamples {
  readonly #rings = new Map<string, Ring>();
  #lastMs = 0;

  /**
   * Takes the used addresses of all pools at a time of the wall clock: milliseconds. Pools that are missing are
   * forgotten.
   */
  take(used: ReadonlyMap<string, number>, nowMs: number): void {
    this.#lastMs = nowMs;
    for (const name of this.#rings.keys()) if (!used.has(name)) this.#rings.delete(name);
    for (const [name, count] of used) {
      const ring = this.#rings.get(name) ?? this.#open(name);
      if (ring === undefined) continue;
      ring.values[ring.next] = count;
      ring.next = (ring.next + 1) % MAX_SAMPLES;
      ring.length = Math.min(ring.length + 1, MAX_SAMPLES);
    }
  }

  read(pool: string): UsageAnswer {
    const { values, next, length } = this.#rings.get(pool) ?? { values: new Uint32Array(), next: 0, length: 0 };
    const step = { stepSeconds: SAMPLE_MS / 1000 };
    if (length === 0) return { ...step, used: [] };
    const used = Array.from({ length }, (_, at) => values[(next - length + at + MAX_SAMPLES) % MAX_SAMPLES] ?? 0);
    return { ...step, from: new Date(this.#lastMs - (length - 1) * SAMPLE_MS).toISOString(), used };
  }

  #open(name: string): Ring | undefined {
    if (this.#rings.size >= MAX_SAMPLED_POOLS) return undefined;
    const ring = { values: new Uint32Array(MAX_SAMPLES), next: 0, length: 0 };
    this.#rings.set(name, ring);
    return ring;
  }
}
