/** What an agent that has started does for its first ADD: it reads the node's state, and rehearses an ADD unless a call comes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../lib/log.ts";
import { type RehearsalDeps, rehearse } from "./rehearse.ts";

/** When an ADD is rehearsed: milliseconds after the start. It takes 15 ms: a pod that comes at once would wait for it as long as it gains. */
const DELAY_MS = 100;

interface RehearsingOptions extends RehearsalDeps {
  /** Reads the state of the node's network that the agent has a mirror of, at once. */
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
  const run = async (): Promise<void> => {
    fillMirror();
    await sleep(DELAY_MS, undefined, { signal: ended.signal, ref: false });
    if (calls.begun > 0) return;
    const { status, body } = await rehearse(deps);
    log.debug({ status, body }, "Rehearsed an ADD");
  };
  run().catch((error: unknown) => log.debug({ err: error }, "The first ADD could not be prepared"));
  return { close: () => ended.abort() };
}
