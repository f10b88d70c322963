/** The thread of one campaign (guided-thread.ts). */
import { parentPort, workerData } from "node:worker_threads";
import { fuzzGuided } from "./guided.ts";
import type { Order } from "./guided-thread.ts";
import { guidedTargets } from "./targets.ts";

const { name, shown, ...options } = workerData as Order;
const target = guidedTargets[name];
if (target === undefined) throw new Error(`There is no target "${name}"`);
const [state, bytes] = [new Int32Array(shown, 0, 2), new Uint8Array(shown, 8)];
const campaign = fuzzGuided(target, options, (input) => {
  bytes.set(input.subarray(0, bytes.length));
  state[0] = input.length;
  state[1] = ((state[1] ?? 0) + 1) | 0;
});
parentPort?.postMessage(campaign);
