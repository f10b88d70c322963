/** The thread of sqlite-worker.ts before it has a database. */
import { Worker } from "node:worker_threads";

/** The thread keeps nothing between two calls; the largest reply is a page of allocations. */
const WORKER_HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 48 };

export interface RegistryThread {
  readonly worker: Worker;
  /** Changed and notified after messages were sent: the thread waits for it. One element in shared memory. */
  readonly bell: Int32Array;
}

/** The worker is beside this file: a bundle in the build, TypeScript in the source tree. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./sqlite-worker.ts" : "./sqlite-worker.mjs", import.meta.url);
}

/** What the thread has from its first statement on. */
export interface ThreadStart {
  readonly bell: Int32Array;
  /** It rehearses with this kind of registry before it is told what to open. */
  readonly isJournal: boolean;
}

/** Starts the thread, which takes tens of milliseconds of another processor; meanwhile what it is to open can be found out. */
export function startRegistryThread({ isJournal }: Pick<ThreadStart, "isJournal">): RegistryThread {
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: ThreadStart = { bell, isJournal };
  return { bell, worker: new Worker(workerUrl(), { workerData, name: "registry", resourceLimits: WORKER_HEAP }) };
}
