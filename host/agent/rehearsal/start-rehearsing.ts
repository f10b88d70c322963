/** What an agent that has started does for its first ADD: it reads the node's state, and rehearses an ADD unless a call comes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../lib/log.ts";
import { type RehearsalDeps, rehearse } from "./rehearse.ts";

/** When the node's state is read: milliseconds after the start. Whoever has waited for the agent is answered before. */
const READING_MS = 2;

/** When an ADD is rehearsed: milliseconds after that. It takes 15 ms: a pod that comes at once would wait for it as long as it gains. */
const REHEARSAL_MS = 100;

interface RehearsingOptions extends RehearsalDeps {
  /** Reads the state of the node's network that the agent has a mirror of. */
  readonly fillMirror: () => void;
  /** The calls that have come. */
  readonly calls: { readonly begun: number };
  readonly log: Log;
}

interface Rehearsing {
  close(): void;
}

export function startRehearsing({ fillMirror, calls, log, ...deps }: RehearsingOptions): Rehearsing {
  const ended = new AbortController();
  const options = { signal: ended.signal, ref: false };
  const run = async (): Promise<void> => {
    await sleep(READING_MS, undefined, options);
    fillMirror();
    await sleep(REHEARSAL_MS, undefined, options);
    if (calls.begun > 0) return;
    const { status, body } = await rehearse(deps);
    log.debug({ status, body }, "Rehearsed an ADD");
  };
  run().catch((error: unknown) => log.debug({ err: error }, "The first ADD could not be prepared"));
  return { close: () => ended.abort() };
}
