/**
 * The benchmark of the core alone: every operation at every size and fill, from JavaScript, inside Wasm, and by two
 * twins, in one run.
 * Effects: builds into a temporary folder; child processes.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { BatchTimings } from "./batches.ts";
import { CASES, type Case } from "./cases.ts";
import {
  buildToolbox,
  CONTESTANTS,
  type Contestant,
  type Contested,
  median,
  ofOperations,
  type Timings,
} from "./contestants.ts";
import { type Facts, gatherFacts } from "./facts.ts";
import type { LoadTiming } from "./loads.ts";

/** Everything measured over one case. */
export interface Row extends Contested {
  readonly work: Case;
  readonly batches: BatchTimings;
  readonly loads: readonly LoadTiming[];
}

export interface CoreFigures {
  readonly facts: Facts;
  readonly rows: readonly Row[];
}

export interface RunOptions {
  /** Few turns: to see that it works, not to quote. */
  readonly quick?: boolean;
  readonly progress?: (text: string) => unknown;
}

/** Measures one case in a process of its own: an embedding has one instance, and its calls then go to one place only. */
function measure(folder: string, work: Case, count: number, rounds: number): Row {
  const args = [join(import.meta.dirname, "one-case.ts"), folder, CASES.indexOf(work), count, rounds].map(String);
  return { work, ...JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) };
}

/** The medians of what several processes measured over one case. */
export function mergeTurns(rows: readonly [Row, ...Row[]]): Row {
  const [first] = rows;
  const middle = (read: (row: Row) => number): number => median(rows.map(read));
  const ofRows = (read: (row: Row) => Timings): Timings => ofOperations((name) => middle((row) => read(row)[name]));
  return {
    work: first.work,
    turns: Object.fromEntries(CONTESTANTS.map((name) => [name, ofRows(({ turns }) => turns[name])])) as Record<
      Contestant,
      Timings
    >,
    repeated: ofRows(({ repeated }) => repeated),
    times: ofRows(({ times }) => times),
    batches: {
      taken: first.batches.taken,
      allocateMany: middle(({ batches }) => batches.allocateMany),
      releaseMany: middle(({ batches }) => batches.releaseMany),
    },
    loads: first.loads.map(({ bytes }, index) => ({
      bytes,
      ns: middle(({ loads }) => loads[index]?.ns ?? Number.NaN),
    })),
  };
}

/** Measures everything; about six minutes, a twentieth of it when quick. */
export async function runCore({ quick = false, progress = () => {} }: RunOptions = {}): Promise<CoreFigures> {
  const folder = buildToolbox();
  const facts = gatherFacts();
  const cases = quick ? CASES.filter(({ size, fill }) => size.bits <= 16 && fill !== 0.5) : CASES;
  const [count, rounds, turns] = quick ? [20_000, 3, 1] : [200_000, 7, 3];
  const played = Array.from({ length: turns }, (_, turn) =>
    cases.map((work) => {
      progress(`${work.size.name}, ${work.fill * 100} % ${work.pattern}, turn ${turn + 1} of ${turns}`);
      return measure(folder, work, count, rounds);
    }),
  );
  const [first = [], ...others] = played;
  return { facts, rows: first.map((row, index) => mergeTurns([row, ...others.flatMap((rows) => rows[index] ?? [])])) };
}
