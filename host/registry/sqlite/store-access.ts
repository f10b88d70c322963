/** Carries calls to the store that has the rows, which blocks its thread. */
import type { Worker } from "node:worker_threads";
import { type FreedObserver, RegistryError } from "../registry.ts";
import type { Reply } from "./batch.ts";
import type { CallMessage } from "./operation.ts";
import type { NoticeMessage } from "./sqlite-worker.ts";

export interface StoreAccess {
  /** Why nothing can be recorded at present, a sentence; undefined if no reason is known. */
  trouble: string | undefined;
  /** The store has ended: every call rejects with this. */
  readonly gone: RegistryError | undefined;
  /** Calls that are not answered yet. */
  readonly pendingCalls: number;
  /** Resolves with the result. Reports addresses that the call has freed before that, in the order of the writes. */
  send(method: CallMessage["method"], args: readonly unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

export interface StoreThreadOptions {
  /** Rung after calls were sent. */
  readonly bell: Int32Array;
  /** Called with a sentence when files, or rows before the start, were lost and are restored by themselves. */
  readonly onNotice?: ((text: string) => void) | undefined;
  /** The same when a journal in use has lost rows, before any call that follows the loss is answered. */
  readonly onRowsLost?: ((text: string) => void) | undefined;
  readonly onFreed: FreedObserver;
  /** The thread ended: nothing can be recorded any more. */
  readonly onDeath: (error: Error) => void;
}

/** Wakes the thread that waits for the bell. */
export function ring(bell: Int32Array): void {
  Atomics.add(bell, 0, 1);
  Atomics.notify(bell, 0);
}

/** The thread of sqlite-worker.ts, which has opened the database. */
export class StoreThread implements StoreAccess {
  trouble: string | undefined;
  gone: RegistryError | undefined;
  readonly #worker: Worker;
  readonly #bell: Int32Array;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #isRinging = false;

  constructor(worker: Worker, options: StoreThreadOptions, loss: string | undefined) {
    this.trouble = loss;
    this.#worker = worker;
    this.#bell = options.bell;
    worker.removeAllListeners("error");
    worker.on("message", (message: Reply | NoticeMessage) => {
      if (!("kind" in message)) this.#deliver(message, options.onFreed);
      else if (message.kind === "lost") options.onRowsLost?.(message.text);
      else options.onNotice?.(message.text);
    });
    const die = (error: Error): void => {
      if (this.gone !== undefined) return;
      this.#end(new RegistryError(`The registry's thread ended: ${error.message}`, { cause: error }));
      options.onDeath(error);
    };
    worker.on("error", die);
    worker.on("exit", (code) => die(new Error(`exit code ${code}`)));
  }

  get pendingCalls(): number {
    return this.#waiting.size;
  }

  send(method: CallMessage["method"], args: readonly unknown[]): Promise<unknown> {
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answer);
    this.#worker.postMessage({ id, method, args } satisfies CallMessage);
    // Calls that are sent in one turn share a commit.
    if (!this.#isRinging)
      queueMicrotask(() => {
        this.#isRinging = false;
        ring(this.#bell);
      });
    this.#isRinging = true;
    return answer.promise;
  }

  async close(): Promise<void> {
    if (this.gone !== undefined) return;
    const closed = this.send("close", []);
    this.gone = new RegistryError("The registry is closed");
    await closed;
    await this.#worker.terminate();
  }

  /** Reports freed addresses before the caller goes on, in the order of the writes. */
  #deliver(reply: Reply, onFreed: FreedObserver): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if ("error" in reply) {
      if (reply.error.isStorage) this.trouble = reply.error.message;
      waiting?.reject(new RegistryError(reply.error.message, { full: reply.error.full }));
    } else {
      for (const { space, ip } of reply.freed) onFreed(space, ip);
      waiting?.resolve(reply.value);
    }
  }

  #end(error: RegistryError): void {
    this.gone = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
