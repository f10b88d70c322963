/**
 * Deletes links in a thread of its own: deleting a veth blocks its caller in the kernel for 11 to 19 ms, while the
 * event loop has probes to answer.
 * Effects: a thread with one netlink socket, from the first deletion on.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { RemovalAnswer, RemovalRequest, RemoverOptions } from "./link-remover-worker.ts";

/** Group (IFLA_GROUP) of links that are deleted together: the letters "berd", to avoid other software's. */
export const REMOVAL_GROUP = 0x6265_7264;

/** The kernel refused a deletion, or the thread died. */
export class LinkRemovalError extends Error {
  override readonly name = "LinkRemovalError";
}

interface Running {
  readonly worker: Worker;
  readonly waiting: Map<number, PromiseWithResolvers<boolean>>;
}

const WORKER_HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 24 };

/** Deletes links of the namespace at `netnsPath`. The first deletion starts the thread, also after it has died. */
export class LinkRemover {
  readonly #netnsPath: string;
  #running: Running | undefined;
  #closed = false;
  #lastId = 0;

  constructor(netnsPath: string) {
    this.#netnsPath = netnsPath;
  }

  /** Resolves with whether the link existed, once it and a veth's other end are gone. Deleting twice is harmless. */
  removeLink(index: number): Promise<boolean> {
    return this.removeLinks([index]);
  }

  /**
   * Resolves with whether one of the links existed, once all are gone. They share the kernel's waits: sixteen take
   * little longer than one. Rejects if the kernel refuses one.
   */
  removeLinks(indexes: readonly number[]): Promise<boolean> {
    if (this.#closed) return Promise.reject(new LinkRemovalError("The link remover is closed"));
    this.#running ??= this.#start();
    const { worker, waiting } = this.#running;
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<boolean>();
    waiting.set(id, answer);
    worker.ref(); // a process with nothing else to do waits for this
    worker.postMessage({ id, indexes } satisfies RemovalRequest);
    return answer.promise;
  }

  /** Waits for pending deletions and ends the thread. */
  async close(): Promise<void> {
    this.#closed = true;
    const running = this.#running;
    if (running === undefined) return;
    const ended = once(running.worker, "exit").catch(() => {}); // its error is that of the pending deletions
    running.worker.ref();
    running.worker.postMessage("close");
    await ended;
  }

  #start(): Running {
    const workerData: RemoverOptions = { netnsPath: this.#netnsPath, group: REMOVAL_GROUP };
    // Beside this file: a bundle in `dist`, TypeScript in the source tree.
    const name = import.meta.url.endsWith(".ts") ? "./link-remover-worker.ts" : "./link-remover-worker.mjs";
    const url = new URL(name, import.meta.url);
    const worker = new Worker(url, { workerData, name: "link-remover", resourceLimits: WORKER_HEAP });
    const running: Running = { worker, waiting: new Map() };
    worker.unref();
    worker.on("message", (answer: RemovalAnswer) => resolveRemoval(running, answer));
    const end = (error: Error): void => {
      if (this.#running === running) this.#running = undefined;
      const death = new LinkRemovalError(`The thread that deletes links ended: ${error.message}`, { cause: error });
      for (const { reject } of running.waiting.values()) reject(death);
      running.waiting.clear();
    };
    worker.on("error", end);
    worker.on("exit", (code) => end(new Error(`exit code ${code}`)));
    return running;
  }
}

function resolveRemoval({ worker, waiting }: Running, answer: RemovalAnswer): void {
  const request = waiting.get(answer.id);
  waiting.delete(answer.id);
  if (waiting.size === 0) worker.unref();
  if ("message" in answer) request?.reject(new LinkRemovalError(answer.message));
  else request?.resolve(answer.removed);
}
