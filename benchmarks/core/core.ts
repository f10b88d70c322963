/**
 * The benchmark of the core alone: every operation at every size and fill, from JavaScript, inside Wasm, and by two
 * twins, in one run.
 * Effects: builds into a temporary folder; child processes.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { BatchTimings } from "./batches.ts";
import { CASES, type Case } from "./cases.ts";
import { buildToolbox, type Contested } from "./contestants.ts";
import { type Facts, gatherFacts } from "./facts.ts";

/** Everything measured over one case. */
export interface Row extends Contested {
  readonly work: Case;
  readonly batches: BatchTimings;
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

/** Measures everything; about four minutes, a tenth of it when quick. */
export async function runCore({ quick = false, progress = () => {} }: RunOptions = {}): Promise<CoreFigures> {
  const folder = buildToolbox();
  const facts = gatherFacts();
  const cases = quick ? CASES.filter(({ size, fill }) => size.bits <= 16 && fill !== 0.5) : CASES;
  const [count, rounds] = quick ? [20_000, 3] : [200_000, 21];
  const rows = cases.map((work) => {
    progress(`${work.size.name}, ${work.fill * 100} % ${work.pattern}`);
    return measure(folder, work, count, rounds);
  });
  return { facts, rows };
}
