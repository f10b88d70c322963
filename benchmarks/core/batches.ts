/**
 * The core's batch forms, per address.
 * Effects: instances' memory.
 */
import { type Case, FIRST_SEED, fillCase, nextSeed } from "./cases.ts";
import { median, openPool } from "./contestants.ts";

/** Addresses per call. */
export const BATCH = 4096;

/** How long rounds do not count, in milliseconds: the engine compiles meanwhile, and small batches need many calls for it. */
const WARM_MS = 200;

export interface BatchTimings {
  /** How many addresses one call took: fewer than BATCH when no more were free. */
  readonly taken: number;
  /** Nanoseconds per address. */
  readonly allocateMany: number;
  readonly releaseMany: number;
}

/** Runs rounds that do not count, then `rounds` that do; the round is told which. */
function repeat(rounds: number, round: (counts: boolean) => void): void {
  const end = performance.now() + WARM_MS;
  while (performance.now() < end) round(false);
  for (let done = 0; done < rounds; done++) round(true);
}

function elapsed(work: () => void): number {
  const started = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - started);
}

export function timeBatches(core: WebAssembly.Module, work: Case, rounds: number): BatchTimings {
  const { exports, pool } = openPool(core, work.size);
  const { pool_claim_at, pool_allocate_many, pool_release_many } = exports;
  if (!pool_claim_at || !pool_allocate_many || !pool_release_many) throw new Error("exports");
  fillCase(work, (ordinal) => pool_claim_at(pool, ordinal));
  const allocations: number[] = [];
  const releases: number[] = [];
  let taken = 0;
  let seed = FIRST_SEED;
  repeat(rounds * 20, (counts) => {
    seed = nextSeed(seed);
    const start = seed;
    const allocation = elapsed(() => {
      taken = pool_allocate_many(pool, 2, start, BATCH);
    });
    let released = 0;
    const release = elapsed(() => {
      released = pool_release_many(pool, taken);
    });
    if (released !== taken) throw new Error(`took ${taken}, released ${released}`);
    if (!counts) return;
    allocations.push(allocation / taken);
    releases.push(release / taken);
  });
  return { taken, allocateMany: median(allocations), releaseMany: median(releases) };
}
