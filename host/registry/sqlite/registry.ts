/** Opens the embedded registry, and a cluster node's journal: on a thread of its own, which owns the database. */
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { FaultPlan } from "../../lib/fault.ts";
import type { Journal } from "../journal.ts";
import { type Cooldowns, type FreedObserver, type RecoverableRegistry, RegistryError } from "../registry.ts";
import type { SessionOptions } from "./session.ts";
import { SqliteRegistry } from "./sqlite-registry.ts";
import type { OpenMessage } from "./sqlite-worker.ts";
import { ring, StoreThread } from "./store-access.ts";

export interface SqliteRegistryOptions {
  /** Created if missing, mode 0700. */
  readonly directory: string;
  /** Path of the witness, a file in memory; undefined if there is none. */
  readonly witness?: string | undefined;
  /** Boot ID of the running kernel: /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  /** The machine's monotonic clock, the same in all processes of one boot. */
  readonly nowMs: () => number;
  /** Time to wait for another agent that uses the directory. */
  readonly lockWaitMs: number;
  /** Called once before that wait, with the process that holds the lock. */
  readonly onWaiting?: ((holder: string) => void) | undefined;
  /** Called with a sentence when rows were lost that are restored without an administrator. */
  readonly onNotice?: ((text: string) => void) | undefined;
  readonly cooldowns: Cooldowns;
  readonly onFreed: FreedObserver;
  /** The thread ended: nothing can be recorded any more. */
  readonly onDeath: (error: Error) => void;
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

/** The worker is beside this file: a bundle in the build, TypeScript in the source tree. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./sqlite-worker.ts" : "./sqlite-worker.mjs", import.meta.url);
}

async function openSqlite(options: SqliteRegistryOptions, isJournal: boolean): Promise<SqliteRegistry> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  restrictToOwner(options.directory);
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(workerUrl(), { workerData: bell, name: "registry" });
  const session: SessionOptions = {
    directory: options.directory,
    witness: options.witness,
    bootId: options.bootId,
    lockWaitMs: options.lockWaitMs,
    cooldowns: options.cooldowns,
    faultPlan: options.faultPlan,
    faultCounter: options.faultCounter,
    isJournal,
    nowMs: options.nowMs(),
  };
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
  const thread = new StoreThread(worker, { ...options, isJournal, bell }, opened.loss);
  return new SqliteRegistry(thread, options.nowMs);
}
