/** Logs each change of the agent's readiness once, with the reason, even if no pod has come meanwhile. */
import type { Log } from "../../lib/log.ts";
import type { Readiness } from "../ipam/plugin.ts";

/** Interval at which the agent checks whether it is ready, to log a change: milliseconds. */
export const READINESS_LOOK_MS = 1_000;

/** The first check comes after an interval: a good start logs nothing. Returns a function that stops the checks. */
export function logReadiness(backend: Readiness, log: Log): () => void {
  let logged: string | undefined;
  const check = (): void => {
    const { ready, problems } = backend;
    const reason = ready ? undefined : (problems[0] ?? "it is starting");
    if (reason === logged) return;
    logged = reason;
    if (reason === undefined) log.info("Ready: ADDs are served");
    else log.warn({ problems }, `Not ready, so ADDs are refused: ${reason}`);
  };
  const timer = setInterval(check, READINESS_LOOK_MS).unref();
  return () => clearInterval(timer);
}
