/**
 * The core's batch forms, per address, and single operations by address: what an embedding pays that has addresses, not ordinals.
 * Effects: instances' memory.
 */
import { type Case, FIRST_SEED, fillCase, nextSeed } from "./cases.ts";
import { median, openPool } from "./contestants.ts";

/** Addresses per call. */
export const BATCH = 4096;

/** Batches that do not count: the engine compiles meanwhile. */
const WARM_ROUNDS = 60;

export interface BatchTimings {
  /** How many addresses one call took: fewer than BATCH when no more were free. */
  readonly taken: number;
  /** Nanoseconds per address. */
  readonly allocateMany: number;
  readonly releaseMany: number;
  /** Nanoseconds per call: an address written to the exchange buffer, and a test of it. */
  readonly testAddress: number;
}

function elapsed(work: () => void): number {
  const started = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - started);
}

export function timeBatches(core: WebAssembly.Module, work: Case, rounds: number): BatchTimings {
  const { exports, pool } = openPool(core, work.size);
  const { pool_claim_at, pool_allocate_many, pool_release_many, pool_test, exchange } = exports;
  if (!pool_claim_at || !pool_allocate_many || !pool_release_many || !pool_test || !exchange)
    throw new Error("exports");
  fillCase(work, (ordinal) => pool_claim_at(pool, ordinal));
  const allocations: number[] = [];
  const releases: number[] = [];
  const tests: number[] = [];
  let taken = 0;
  let seed = FIRST_SEED;
  for (let round = -WARM_ROUNDS; round < rounds * 20; round++) {
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
    if (round < 0) continue;
    allocations.push(allocation / taken);
    releases.push(release / taken);
  }
  const input = new DataView(exports.memory.buffer, exchange(0), 16);
  input.setBigUint64(0, work.size.family === 6 ? 0x20010db8n << 32n : 0n);
  input.setUint32(8, 0);
  const shift = 32 - work.size.bits;
  const at = work.size.family === 4 ? 0 : 12;
  const base = work.size.family === 4 ? 0x0a000000 : 0;
  for (let round = 0; round < rounds; round++) {
    const ns = elapsed(() => {
      for (let i = 0; i < 20_000; i++) {
        seed = nextSeed(seed);
        input.setUint32(at, base + (seed >>> shift));
        pool_test(pool);
      }
    });
    tests.push(ns / 20_000);
  }
  return { taken, allocateMany: median(allocations), releaseMany: median(releases), testAddress: median(tests) };
}
