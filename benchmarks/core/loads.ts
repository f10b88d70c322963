/**
 * What a load from memory takes, without any allocator: the floor under an operation on a random ordinal.
 * Effects: memory of the C twin.
 */
import { median, nanosecondsOf, type Toolbox } from "./contestants.ts";

/** As many bytes as the bits of a /10 and of a /8 have, and as a first and a second level of cache hold. */
const LOGS = [15, 19, 20, 21] as const;

const LOADS = 200_000;

export interface LoadTiming {
  readonly bytes: number;
  /** Nanoseconds of a load from a random place among them. */
  readonly ns: number;
}

/** Times loads that wait for one another, `rounds` times in turns. */
export function timeLoads({ native }: Toolbox, rounds: number): LoadTiming[] {
  const samples = LOGS.map((): number[] => []);
  for (let round = -1; round < rounds; round++) {
    for (const [index, log] of LOGS.entries()) {
      native.load(log, LOADS); // brings them back into the caches
      const ns = nanosecondsOf(() => native.load(log, LOADS)) / LOADS;
      if (round >= 0) samples[index]?.push(ns);
    }
  }
  return LOGS.map((log, index) => ({ bytes: 2 ** log, ns: median(samples[index] ?? []) }));
}
