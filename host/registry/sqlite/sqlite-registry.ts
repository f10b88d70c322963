/**
 * The embedded registry and a cluster node's journal as calls to a store, which blocks a thread of its own. The
 * statements are in store.ts.
 */

import { chmodSync, mkdirSync, statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { FaultPlan } from "../../lib/fault.ts";
import type { Journal } from "../journal.ts";
import { type Cooldowns, type FreedObserver, type RecoverableRegistry, RegistryError } from "../registry.ts";
import type { Reply } from "./batch.ts";
import type { SqliteJournal } from "./journal.ts";
import type { CallMessage, StoreMethod } from "./operation.ts";
import type { SessionOptions } from "./session.ts";
import type { NoticeMessage, OpenMessage } from "./sqlite-worker.ts";

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

interface StoreThreadOptions {
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

export interface SqliteRegistryOptions extends Omit<StoreThreadOptions, "bell"> {
  /** Boot ID of the running kernel: /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  /** Created if missing, mode 0700. */
  readonly directory: string;
  /** Path of the witness, a file in memory; undefined if there is none. */
  readonly witness?: string | undefined;
  /** The machine's monotonic clock, the same in all processes of one boot. */
  readonly nowMs: () => number;
  /** Time to wait for another agent that uses the directory. */
  readonly lockWaitMs: number;
  /** Called once before that wait, with the process that holds the lock. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  readonly cooldowns: Cooldowns;
  readonly faultPlan?: FaultPlan | undefined;
  readonly faultCounter: SharedArrayBuffer;
}

/** Opens the embedded registry. Rejects with RegistryError. */
export function openSqliteRegistry(options: SqliteRegistryOptions): Promise<RecoverableRegistry> {
  return openSqlite(options, false);
}

/** Opens the journal of a cluster's node. Rejects with RegistryError. */
export function openSqliteJournal(options: SqliteRegistryOptions): Promise<Journal> {
  return openSqlite(options, true);
}

/**
 * A directory that the agent did not create, for example a hostPath volume, may be readable by all; its content is
 * not for other users.
 */
function restrictToOwner(directory: string): void {
  if ((statSync(directory).mode & 0o077) !== 0) chmodSync(directory, 0o700);
}

async function openSqlite(options: SqliteRegistryOptions, isJournal: boolean): Promise<SqliteRegistry> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  restrictToOwner(options.directory);
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  // The worker is beside this file: a bundle in the build, TypeScript in the source tree.
  const name = import.meta.url.endsWith(".ts") ? "./sqlite-worker.ts" : "./sqlite-worker.mjs";
  const worker = new Worker(new URL(name, import.meta.url), { workerData: bell, name: "registry" });
  const { directory, witness, bootId, lockWaitMs, cooldowns, faultPlan, faultCounter } = options;
  const times = { lockWaitMs, cooldowns, nowMs: options.nowMs() };
  const session: SessionOptions = { directory, witness, bootId, ...times, faultPlan, faultCounter, isJournal };
  worker.postMessage(session);
  ring(bell);
  const opened = await new Promise<OpenMessage>((resolve, reject) => {
    worker.on("message", (message: OpenMessage) => {
      if (message.kind === "waiting") options.onWaiting?.(message.holder);
      else if (message.kind === "notice") options.onNotice?.(message.text);
      else resolve(message);
    });
    worker.once("error", reject);
  });
  worker.removeAllListeners("message");
  if (opened.kind !== "opened") {
    await worker.terminate();
    throw new RegistryError(opened.kind === "failed" ? opened.message : "The registry's thread did not start");
  }
  const thread = new StoreThread(worker, { ...options, bell }, opened.loss);
  return new SqliteRegistry(thread, options.nowMs);
}

/** Interval of the agent's checks that it can write to its registry, each second after a failure: milliseconds. */
export const PROBE_INTERVAL_MS = 5_000;

export class SqliteRegistry implements Journal, RecoverableRegistry {
  readonly #store: StoreAccess;
  readonly #nowMs: () => number;
  /** Never before the first probe, which begins the log and waits for the disk in place of the first claim. */
  #probedAtMs = Number.NEGATIVE_INFINITY;

  constructor(store: StoreAccess, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  get trouble(): string | undefined {
    return this.#store.gone?.message ?? this.#store.trouble;
  }

  get pendingCalls(): number {
    return this.#store.pendingCalls;
  }

  async probe(): Promise<void> {
    const isThorough = this.#store.trouble !== undefined;
    if (!isThorough && performance.now() - this.#probedAtMs < PROBE_INTERVAL_MS) return;
    this.#probedAtMs = performance.now();
    if (this.#store.gone !== undefined) return;
    try {
      this.#store.trouble = (await this.#store.send("probe", [isThorough])) as string | undefined;
    } catch {
      // `trouble` has the reason.
    }
  }

  async recover(...of: Parameters<RecoverableRegistry["recover"]>): Promise<void> {
    await this.#call("recover", ...of, this.#nowMs());
    this.#store.trouble = undefined;
  }

  readonly claim: Journal["claim"] = (claim) => this.#call("claim", claim, this.#nowMs());
  readonly undo: Journal["undo"] = (created) => this.#call("undo", created, this.#nowMs());
  readonly retain: Journal["retain"] = (claimed) => this.#call("retain", claimed);
  readonly release: Journal["release"] = (attachment) => this.#call("release", attachment, this.#nowMs());

  async expire(): Promise<void> {
    while (await this.#call("expire", this.#nowMs()));
  }

  readonly findAttachment: Journal["findAttachment"] = (attachment) => this.#call("findAttachment", attachment);
  readonly findAddress: Journal["findAddress"] = (...of) => this.#call("findAddress", ...of);
  readonly findOwner: Journal["findOwner"] = (owner) => this.#call("findOwner", owner);
  readonly findCooling: Journal["findCooling"] = (spans, limit) => this.#call("findCooling", spans, limit);
  readonly quarantine: Journal["quarantine"] = (allocation, quarantine, created = []) =>
    this.#call("quarantineAndUndo", { allocation, quarantine, created }, this.#nowMs());
  readonly findQuarantined: Journal["findQuarantined"] = (query) => this.#call("findQuarantined", query);
  readonly endQuarantine: Journal["endQuarantine"] = (row) => this.#call("endQuarantine", row, this.#nowMs());
  readonly readUsed: Journal["readUsed"] = (span) => this.#call("readUsed", span);
  readonly countUsage: Journal["countUsage"] = () => this.#call("countUsage");
  readonly list: Journal["list"] = (...of) => this.#call("list", ...of);
  readonly findDue: Journal["findDue"] = (limit) => this.#call("findDue", limit, this.#nowMs());
  readonly record: Journal["record"] = (rows) => this.#call("record", rows);
  readonly forget: Journal["forget"] = (allocation, isTaken = false) => this.#call("forget", allocation, isTaken);
  readonly readOwners: Journal["readOwners"] = () => this.#call("readOwners");
  readonly noteOwner: Journal["noteOwner"] = (...of) => this.#call("noteOwner", ...of);
  readonly noteMachine: Journal["noteMachine"] = (machine) => this.#call("noteMachine", machine);
  readonly adopt: Journal["adopt"] = (adoption) => this.#call("adopt", adoption, this.#nowMs());
  readonly collect: Journal["collect"] = (allocation) => this.#call("collect", allocation, this.#nowMs());

  setCooldowns(cooldowns: Cooldowns): void {
    this.#call("setCooldowns", cooldowns).catch(() => {
      // Fails only if the thread has ended, which onDeath has reported.
    });
  }

  readonly close: Journal["close"] = () => this.#store.close();

  #call<M extends StoreMethod>(
    method: M,
    ...args: Parameters<SqliteJournal[M]>
  ): Promise<ReturnType<SqliteJournal[M]>> {
    if (this.#store.gone !== undefined) return Promise.reject(this.#store.gone);
    return this.#store.send(method, args) as Promise<ReturnType<SqliteJournal[M]>>;
  }
}

/** Wakes the thread that waits for the bell. */
function ring(bell: Int32Array): void {
  Atomics.add(bell, 0, 1);
  Atomics.notify(bell, 0);
}

/** The thread of sqlite-worker.ts, which has opened the database. */
class StoreThread implements StoreAccess {
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
