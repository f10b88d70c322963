/** A log that remembers what it was told: `level message`. */
import pino from "pino";
import type { Log } from "../../host/lib/log.ts";

export function recordLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => {
    const { level, msg } = JSON.parse(line) as { level: number; msg: string };
    lines.push(`${pino.levels.labels[level]} ${msg}`);
  };
  return { log: pino({ level: "debug" }, { write }), lines };
}

/** Asks until the answer is true; rejects when it does not become so in time, on a machine that has much else to do. */
export async function until(holds: () => boolean | Promise<boolean>, what = `${holds}`, limitMs = 10_000) {
  const start = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - start;
    if (waitedMs > limitMs) throw new Error(`Waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(20, 1 + waitedMs / 10)));
  }
}
