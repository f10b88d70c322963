/**
 * Whether waits that are given up leave something behind.
 * Effects: collects garbage.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type Wait = (signal: AbortSignal) => Promise<unknown>;

const WAITS = 5_000;

/** A wait keeps a promise and its handlers, some hundred bytes; less is the noise of a busy process. */
const FEW_BYTES = 150;

/** By how many bytes the heap has grown for each of many waits that were given up: 0 when it is next to nothing. */
export async function bytesLeftPerWait(wait: Wait): Promise<number> {
  await giveUpOften(wait);
  const before = await heapBytes();
  await giveUpOften(wait);
  let left = Number.POSITIVE_INFINITY;
  // On a busy machine the timers of the waits end late.
  for (let look = 0; look < 6 && left > FEW_BYTES; look++) left = ((await heapBytes()) - before) / WAITS;
  return left <= FEW_BYTES ? 0 : left;
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
