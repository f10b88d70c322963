/** A log that remembers its lines: `level message`. */
import pino from "pino";
import type { Log } from "../../host/lib/log.ts";
import { until as untilTrue } from "../lab/waiting.ts";

export function recordLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => {
    const { level, msg } = JSON.parse(line) as { level: number; msg: string };
    lines.push(`${pino.levels.labels[level]} ${msg}`);
  };
  return { log: pino({ level: "debug" }, { write }), lines };
}

/** As the lab's, with the condition first. */
export async function until(holds: () => boolean | Promise<boolean>, what = `${holds}`, limitMs = 10_000) {
  await untilTrue(what, holds, limitMs);
}
