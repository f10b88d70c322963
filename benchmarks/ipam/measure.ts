/**
 * The measuring itself: every contestant in turn, a few calls at a time, round after round, so that whatever else the
 * machine does falls on all alike; each round begins with another contestant.
 * Effects: runs the contestants.
 */
import { daemonCpuMs, daemonRssMib } from "../../test/lab/statistics.ts";
import { type BatchOutcome, runBatch, type Sample } from "../harness/runner.ts";
import type { Contestant, Work } from "./contestant.ts";

export interface Course {
  /** Rounds that are measured, after `warmUpRounds` that are not. */
  readonly rounds: number;
  readonly warmUpRounds: number;
  /** ADDs, then as many DELs, of each contestant in a round. */
  readonly callsPerRound: number;
  /** Number of calls under way at any time. */
  readonly atOnce: number;
}

export interface Measured {
  readonly name: string;
  readonly add: Sample[];
  readonly del: Sample[];
  /** Output of failed calls, of subjects that may fail; their samples are left out. */
  readonly failures: string[];
  /** ADDs (DELs) per second of each round. */
  readonly addRates: number[];
  readonly delRates: number[];
  /** The daemon's CPU time per call; 0 without a daemon. */
  readonly daemonAddMs: number[];
  readonly daemonDelMs: number[];
  /** Resident memory of the daemon at the end. */
  rssMib: number | undefined;
}

export interface Courses {
  readonly oneAtATime: Course;
  readonly manyAtOnce: Course;
}

/** The same contestants, one call at a time and many at once. */
export interface Series {
  readonly single: readonly Measured[];
  readonly atOnce: readonly Measured[];
}

export async function measureSeries(
  contestants: readonly Contestant<Work>[],
  { oneAtATime, manyAtOnce }: Courses,
): Promise<Series> {
  const single = await measure(contestants, oneAtATime, 0);
  const firstNumber = oneAtATime.callsPerRound * (oneAtATime.warmUpRounds + oneAtATime.rounds);
  return { single, atOnce: await measure(contestants, manyAtOnce, firstNumber) };
}

/** Measures all contestants over one course. Run numbers start at `firstNumber`: no pod may appear twice. */
export async function measure(
  contestants: readonly Contestant<Work>[],
  course: Course,
  firstNumber: number,
): Promise<Measured[]> {
  const all = contestants.map(
    ({ name }): Measured => ({
      name,
      add: [],
      del: [],
      failures: [],
      addRates: [],
      delRates: [],
      daemonAddMs: [],
      daemonDelMs: [],
      rssMib: undefined,
    }),
  );
  for (let round = 0; round < course.warmUpRounds + course.rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const index = (round + turn) % contestants.length;
      const [contestant, measured] = [contestants[index], all[index]];
      if (contestant === undefined || measured === undefined) continue;
      const outcome = await runTurn(contestant, course, firstNumber + round * course.callsPerRound);
      if (round >= course.warmUpRounds) record(measured, outcome, course.callsPerRound);
    }
  }
  for (const [index, { daemonPid }] of contestants.entries()) {
    const measured = all[index];
    if (measured !== undefined && daemonPid !== undefined) measured.rssMib = daemonRssMib(daemonPid);
  }
  return all;
}

interface Turn {
  readonly add: BatchOutcome;
  readonly del: BatchOutcome;
  readonly daemonAddMs: number;
  readonly daemonDelMs: number;
}

async function runTurn(contestant: Contestant<Work>, course: Course, wanted: number): Promise<Turn> {
  const { add, del, daemonPid, netns, prepare, terminate, finish } = contestant;
  const cpuMs = (): number => (daemonPid === undefined ? 0 : daemonCpuMs(daemonPid));
  const first = (await prepare?.(wanted, course.callsPerRound)) ?? wanted;
  const batch = { atOnce: course.atOnce, first, count: course.callsPerRound };
  const run = (work: Work): Promise<BatchOutcome> =>
    typeof work === "function" ? work(batch) : runBatch({ subject: work, ...batch }, netns);
  const beforeMs = cpuMs();
  const added = await run(add);
  const addedMs = cpuMs();
  await terminate?.(first, course.callsPerRound);
  const betweenMs = cpuMs();
  const deleted = await run(del);
  const afterMs = cpuMs();
  await finish?.(first, course.callsPerRound);
  return { add: added, del: deleted, daemonAddMs: addedMs - beforeMs, daemonDelMs: afterMs - betweenMs };
}

function record(measured: Measured, turn: Turn, calls: number): void {
  const done = { add: succeeded(turn.add.samples), del: succeeded(turn.del.samples) };
  measured.add.push(...done.add);
  measured.del.push(...done.del);
  measured.failures.push(...[...turn.add.samples, ...turn.del.samples].flatMap(failureOf));
  measured.addRates.push((done.add.length * 1000) / turn.add.wallMs);
  measured.delRates.push((done.del.length * 1000) / turn.del.wallMs);
  measured.daemonAddMs.push(turn.daemonAddMs / calls);
  measured.daemonDelMs.push(turn.daemonDelMs / calls);
}

const hasFailed = ({ answer }: Sample): boolean => answer !== undefined && answer.status !== 0;

/** Returns the samples that exited with 0, or with the wanted code. */
export function succeeded(samples: readonly Sample[]): Sample[] {
  return samples.filter((sample) => !hasFailed(sample));
}

/** Returns the call's output if it failed. */
export function failureOf(sample: Sample): string[] {
  return hasFailed(sample) ? [sample.answer?.text ?? ""] : [];
}
