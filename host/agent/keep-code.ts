/** When the code that V8 has compiled is kept for the next start: soon, in case the agent is killed, and again when plugins have called. */
import type { KeepCode } from "../lib/compiled-script.ts";
import type { Log } from "../lib/log.ts";

/** How often the agent looks: milliseconds. The first time it has rehearsed an ADD. */
const LOOK_MS = 1_000;

/** After so many calls nearly all of what plugins call has been compiled: the code is complete. */
export const CALLS_BEFORE_COMPLETE = 20;

interface KeepingOptions {
  /** The calls of plugins: those that have come so far, and those that are not answered. */
  readonly calls: { readonly begun: number; readonly underWay: number };
  readonly keep: KeepCode;
  readonly log: Log;
}

interface Keeping {
  close(): void;
}

export function startKeeping({ calls, keep, log }: KeepingOptions): Keeping {
  let isKept = false;
  const look = (): void => {
    const isComplete = calls.begun >= CALLS_BEFORE_COMPLETE;
    if (calls.underWay > 0 || (isKept && !isComplete)) return;
    isKept = true;
    if (isComplete) clearInterval(timer);
    keep(isComplete).catch((error: unknown) => log.debug({ err: error }, "Compiled code cannot be kept"));
  };
  const timer = setInterval(look, LOOK_MS).unref();
  return { close: () => clearInterval(timer) };
}
