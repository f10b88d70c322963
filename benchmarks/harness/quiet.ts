/**
 * Waits until nothing else uses the processors: other programs make percentiles and rates worthless, and ratios
 * doubtful.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { requireUninterrupted } from "./interruption.ts";

/**
 * Largest share of the processors' time that other programs, and the hypervisor's other guests, may take on a quiet
 * machine.
 */
const QUIET_SHARE = 0.05;
/** Time for which the machine has to be quiet before a benchmark starts: milliseconds. */
const PERIOD_MS = 10_000;
/** Time for which a benchmark waits by default: seconds. */
export const WAIT_S = 600;

export interface Quietness {
  readonly isQuiet: boolean;
  /** Share of all processors' time that was in use in the last period, 0 to 1. */
  readonly share: number;
}

/** After `limitS` it resolves although the machine is busy. */
export async function waitUntilQuiet(limitS: number): Promise<Quietness> {
  const endMs = performance.now() + limitS * 1_000;
  for (let round = 1; ; round++) {
    requireUninterrupted();
    const before = readProcessorTime();
    await sleep(limitS === 0 ? 1_000 : PERIOD_MS);
    const after = readProcessorTime();
    const share = (after.used - before.used) / Math.max(1, after.total - before.total);
    const isQuiet = share <= QUIET_SHARE;
    if (isQuiet || performance.now() + PERIOD_MS > endMs) return { isQuiet, share };
    if (round % 6 === 1)
      console.log(`Waiting for a quiet machine: ${percent(share)} of the processors' time is in use`);
  }
}

/** The first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq and steal, in ticks. */
function readProcessorTime(): { readonly used: number; readonly total: number } {
  const [, line = ""] = /^cpu +([\d ]+)$/m.exec(readFileSync("/proc/stat", "utf8")) ?? [];
  const ticks = line.split(" ").slice(0, 8).map(Number);
  const total = ticks.reduce((sum, each) => sum + each, 0);
  const [, , , idle = 0, iowait = 0] = ticks;
  return { used: total - idle - iowait, total };
}

/** The first line of a section. */
export function describeQuietness({ isQuiet, share }: Quietness): string {
  const used = `${percent(share)} of the processors' time was in use before the run`;
  if (isQuiet) return `Measured on a quiet machine: ${used}.`;
  return `**The machine was not quiet**: ${used}. Percentiles and rates are of little worth, ratios are doubtful.`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
