/** A log that remembers what it was told: `level message`. */
import pino from "pino";
import type { Log } from "../../../host/lib/log.ts";

export function recordLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => {
    const { level, msg } = JSON.parse(line) as { level: number; msg: string };
    lines.push(`${pino.levels.labels[level]} ${msg}`);
  };
  return { log: pino({ level: "debug" }, { write }), lines };
}

/** Longest wait, on a machine that has much else to do. */
const PATIENCE_MS = 10_000;

/** Asks until the answer is true; false when it does not become so in time. */
export async function until(fits: () => boolean): Promise<boolean> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!fits() && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
  return fits();
}
