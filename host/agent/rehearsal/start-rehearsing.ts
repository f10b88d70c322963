/** When an agent that has started rehearses an ADD: at once, unless a call comes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../lib/log.ts";
import { type RehearsalDeps, rehearse } from "./rehearse.ts";

/** When an ADD of `berth` is rehearsed: milliseconds after the start. Whoever has waited for the agent is answered before. */
const DELAY_MS = 2;

/** How much later one of the coordinator follows, which takes three times as long: a pod that comes at once is at its main plugin meanwhile. */
const PAUSE_MS = 100;

interface RehearsingOptions extends Omit<RehearsalDeps, "pause"> {
  /** The calls that have come: the first one ends the rehearsal. */
  readonly calls: { readonly begun: number };
  readonly log: Log;
}

interface Rehearsing {
  close(): void;
}

export function startRehearsing({ calls, log, ...deps }: RehearsingOptions): Rehearsing {
  const ended = new AbortController();
  const isQuietAfter = async (ms: number): Promise<boolean> => {
    await sleep(ms, undefined, { signal: ended.signal, ref: false });
    return calls.begun === 0;
  };
  const run = async (): Promise<void> => {
    if (!(await isQuietAfter(DELAY_MS))) return;
    const { status, body } = await rehearse({ ...deps, pause: () => isQuietAfter(PAUSE_MS) });
    log.debug({ status, body }, "Rehearsed an ADD");
  };
  run().catch((error: unknown) => log.debug({ err: error }, "An ADD could not be rehearsed"));
  return { close: () => ended.abort() };
}
