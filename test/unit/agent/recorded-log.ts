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

/** Asks until the answer is true, for at most a second. */
export async function until(fits: () => boolean): Promise<boolean> {
  for (let tries = 0; tries < 200 && !fits(); tries++) await new Promise((resolve) => setTimeout(resolve, 5));
  return fits();
}
