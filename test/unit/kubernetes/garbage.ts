/**
 * Whether waits that are given up leave something behind.
 * Called by tests of what may be waited for again and again.
 * Effects: collects garbage.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type Wait = (signal: AbortSignal) => Promise<unknown>;

const WAITS = 5_000;

/** By how many bytes the heap has grown for each of many waits that were given up. */
export async function bytesLeftPerWait(wait: Wait): Promise<number> {
  await giveUpOften(wait);
  const before = await heapBytes();
  await giveUpOften(wait);
  return ((await heapBytes()) - before) / WAITS;
}

async function giveUpOften(wait: Wait): Promise<void> {
  for (let index = 0; index < WAITS; index++) {
    const controller = new AbortController();
    const waiting = wait(controller.signal);
    controller.abort(new Error("enough"));
    await waiting.catch(() => {});
  }
}

async function heapBytes(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  // Timers of the waits may still run.
  await sleep(400);
  collect();
  await sleep(10);
  collect();
  return process.memoryUsage().heapUsed;
}
