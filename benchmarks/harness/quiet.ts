/**
 * Waits until nothing else uses the processors: what else runs makes percentiles and rates worthless, and ratios
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
  readonly waitedS: number;
}

interface WaitOptions {
  /** Then it resolves although the machine is busy. */
  readonly limitS: number;
  /** Gives the processors' time since the start of the machine, in any unit. */
  readonly read?: () => ProcessorTime;
  readonly periodMs?: number;
  readonly print?: (line: string) => void;
}

export interface ProcessorTime {
  readonly used: number;
  readonly total: number;
}

export async function waitUntilQuiet({
  limitS,
  read = () => parseStat(readFileSync("/proc/stat", "utf8")),
  periodMs = PERIOD_MS,
  print = console.log,
}: WaitOptions): Promise<Quietness> {
  const startMs = performance.now();
  for (let round = 1; ; round++) {
    requireUninterrupted();
    const before = read();
    await sleep(periodMs);
    const after = read();
    const share = (after.used - before.used) / Math.max(1, after.total - before.total);
    const waitedS = (performance.now() - startMs) / 1000;
    const isQuiet = share <= QUIET_SHARE;
    if (isQuiet || waitedS + periodMs / 1000 > limitS) return { isQuiet, share, waitedS };
    if (round % 6 === 1) print(`Waiting for a quiet machine: ${percent(share)} of the processors' time is in use`);
  }
}

/**
 * The first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq and steal, in ticks.
 * Throws on any other text.
 */
export function parseStat(text: string): ProcessorTime {
  const [, line] = /^cpu +([\d ]+)$/m.exec(text) ?? [];
  const ticks = line?.split(" ").slice(0, 8).map(Number) ?? [];
  if (ticks.length < 8) throw new Error(`Cannot read /proc/stat: found ${JSON.stringify(text.slice(0, 80))}`);
  const total = ticks.reduce((sum, each) => sum + each, 0);
  const [, , , idle = 0, iowait = 0] = ticks;
  return { used: total - idle - iowait, total };
}

/** The first line of a report. */
export function describeQuietness({ isQuiet, share }: Quietness): string {
  const used = `${percent(share)} of the processors' time was in use before the run`;
  if (isQuiet) return `Measured on a quiet machine: ${used}.`;
  return `**The machine was not quiet**: ${used}. Percentiles and rates are of little worth, ratios are doubtful.`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
