/**
 * Processor time of the kinds of tests beside their budgets, which are part of the ratchet of sizes: a run prints them,
 * and leaves its own in `dist` for `npm run size -- --seconds`.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { root } from "./setup/paths.mjs";

type Seconds = Readonly<Record<string, number>>;

const LAST_RUN = join(root, "dist", "test-seconds.json");
/** Per cent above a budget: the variation from run to run, and more than any variation. */
const SLACK = 10;
const LIMIT = 25;
/** Seconds above a budget that no kind fails for: a first run reads from a disk. */
const LIMIT_S = 20;
const BUDGET_PROCESSORS = 2;

export const readSecondsBudgets = (): Seconds =>
  JSON.parse(readFileSync(join(root, "test/unit/house/size.json"), "utf8")).seconds;

export const readLastSeconds = (): Seconds => (existsSync(LAST_RUN) ? JSON.parse(readFileSync(LAST_RUN, "utf8")) : {});

/** Records a run of the whole gate that passed, as the machine of the budgets would have used the time. */
export function writeLastSeconds(seconds: Seconds): void {
  if (availableParallelism() !== BUDGET_PROCESSORS) return;
  const slowness = slownessOf(seconds, readSecondsBudgets());
  const whole = Object.entries(seconds).map(([kind, each]) => [kind, Math.ceil(each / slowness)]);
  writeFileSync(LAST_RUN, `${JSON.stringify(Object.fromEntries(whole))}\n`);
}

/**
 * Returns how many times as long as on the machine of the budgets everything takes on this one, at least 1: the median
 * of the kinds, so that a kind that has grown does not excuse itself.
 */
export function slownessOf(seconds: Seconds, budgets: Seconds): number {
  const ratios = Object.entries(seconds).map(([kind, each]) => each / (budgets[kind] ?? Number.NaN));
  const known = ratios.filter(Number.isFinite).sort((a, b) => a - b);
  return Math.max(1, known[Math.floor((known.length - 1) / 2)] ?? 1);
}

/** Returns the text beside the seconds, and the complaint if they are above CI's tolerance. */
export function compareSeconds(
  kind: string,
  seconds: number,
  budget: number | undefined,
  processors = availableParallelism(),
): { readonly note: string; readonly complaint?: string } {
  if (budget === undefined) return { note: "" };
  const percent = Math.round((seconds / budget - 1) * 100);
  const note = `, budget ${String(budget).padStart(4)}`;
  if (percent < -SLACK) return { note: `${note}: npm run size -- --seconds lowers it` };
  if (percent <= SLACK) return { note };
  const more = `${percent} % MORE`;
  if (percent <= LIMIT || seconds - budget <= LIMIT_S || processors !== BUDGET_PROCESSORS)
    return { note: `${note}: ${more}` };
  const complaint = `${kind}: ${percent} % above its budget of processor seconds in test/unit/house/size.json`;
  return { note: `${note}: ${more}`, complaint };
}
