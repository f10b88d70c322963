/**
 * The benchmark of the core alone: every operation at every size and fill, from JavaScript, inside Wasm, and by two
 * twins, in one run.
 * Called by bench.ts.
 * Effects: builds into a temporary folder.
 */
import { type BatchTimings, timeBatches } from "./batches.ts";
import { CASES, type Case } from "./cases.ts";
import { type Contestant, contest, prepare, type Timings } from "./contestants.ts";
import { type Facts, gatherFacts } from "./facts.ts";

/** Everything measured over one case. */
export interface Row {
  readonly work: Case;
  /** Nanoseconds per turn of each operation's loop; see callsPerTurn. */
  readonly turns: Readonly<Record<Contestant, Timings>>;
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

/** Lets the engine compile everything well before anything counts. */
function warmUp(toolbox: ReturnType<typeof prepare>): void {
  for (const work of CASES.filter(({ size }) => size.bits === 16)) {
    contest(toolbox, work, 50_000, 3);
    timeBatches(toolbox.core, work, 3);
  }
}

/** Measures everything; about two minutes, a tenth of it when quick. */
export async function runCore({ quick = false, progress = () => {} }: RunOptions = {}): Promise<CoreFigures> {
  const toolbox = prepare();
  warmUp(toolbox);
  const facts = gatherFacts();
  const cases = quick ? CASES.filter(({ size, fill }) => size.bits <= 16 && fill !== 0.5) : CASES;
  const [count, rounds] = quick ? [20_000, 3] : [200_000, 7];
  const rows = cases.map((work) => {
    progress(`${work.size.name}, ${work.fill * 100} % ${work.pattern}`);
    return { work, turns: contest(toolbox, work, count, rounds), batches: timeBatches(toolbox.core, work, rounds) };
  });
  return { facts, rows };
}
