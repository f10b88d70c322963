/**
 * Says in the log that the agent cannot serve, and why, and that it can again: once for each change, whether or not a pod has come meanwhile.
 * Effects: a timer.
 */
import type { Log } from "../../lib/log.ts";
import type { Readiness } from "../ipam/plugin.ts";

/** How often the agent looks whether it is ready, to say so in its log when that has changed: milliseconds. @limit */
export const READINESS_LOOK_MS = 1_000;

/** The first look comes after an interval: a start that goes well says nothing. Returns what ends it. */
export function logReadiness(readiness: () => Readiness, log: Log): () => void {
  let said: string | undefined;
  const look = (): void => {
    const { ready, problems } = readiness();
    const reason = ready ? undefined : (problems[0] ?? "it is starting");
    if (reason === said) return;
    said = reason;
    if (reason === undefined) log.info("Ready: ADDs are served");
    else log.warn({ problems }, `Not ready, so ADDs are refused: ${reason}`);
  };
  const timer = setInterval(look, READINESS_LOOK_MS).unref();
  return () => clearInterval(timer);
}
