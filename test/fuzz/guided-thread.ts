/**
 * A guided campaign in a thread of its own: one that hangs, or needs memory without bound, ends it alone, and the
 * input that it read last is known.
 * Effects: a thread.
 */
import { Worker } from "node:worker_threads";
import { type Campaign, MAX_INPUT_BYTES } from "./native.ts";

export interface Order {
  readonly name: string;
  readonly seconds: number;
  readonly seed: number;
  readonly isGuided?: boolean;
  /** Length of the last input, number of inputs, the last input. */
  readonly shown: SharedArrayBuffer;
}

/** Longest time without another input: coverage of a busy machine included. */
const HANG_MS = 20_000;
/** Most heap of the thread, 100 times the need of an input: MiB. */
const MOST_HEAP_MIB = 512;

/** Throws with the last input for whatever ends the thread early. */
export async function fuzzInThread(order: Omit<Order, "shown">): Promise<Campaign> {
  const shown = new SharedArrayBuffer(8 + 4 * MAX_INPUT_BYTES);
  const state = new Int32Array(shown, 0, 2);
  const worker = new Worker(new URL("guided-worker.ts", import.meta.url), {
    workerData: { ...order, shown } satisfies Order,
    resourceLimits: { maxOldGenerationSizeMb: MOST_HEAP_MIB },
    execArgv: [],
  });
  let count = -1;
  const watch = setInterval(() => {
    if (state[1] === count) worker.emit("error", new Error(`no end after ${HANG_MS} ms`));
    count = state[1] ?? 0;
  }, HANG_MS);
  try {
    return await new Promise<Campaign>((resolve, reject) => {
      worker.on("message", resolve);
      worker.on("error", reject);
      worker.on("exit", (code) => reject(new Error(`the thread ended with ${code}`)));
    });
  } catch (cause) {
    const input = Buffer.from(new Uint8Array(shown, 8, state[0]));
    const text = `${order.name}, ${state[1]} executions, base64 ${input.toString("base64")}: ${JSON.stringify(`${input}`)}`;
    throw new Error(text, { cause });
  } finally {
    clearInterval(watch);
    await worker.terminate();
  }
}
