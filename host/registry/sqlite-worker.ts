/**
 * The thread that owns the registry's database. It must never stop the event loop on which detection counts
 * milliseconds (allocation rule 13), so every commit happens here.
 * Started by sqlite-registry.ts; speaks in the messages below.
 * Effects: opens, locks, reads and writes the database file.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { messageOf } from "../lib/describe.ts";
import { type FaultPlan, openFaults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import { CHECKPOINT_PAGES, LOCK_RETRY_MS, MAX_GROUP } from "./limits.ts";
import { type Cooldowns, RegistryError } from "./registry.ts";
import { ReserveFile } from "./reserve-file.ts";
import { isFull, SqliteBatch } from "./sqlite-batch.ts";
import { SqliteJournal } from "./sqlite-journal.ts";
import { type CallMessage, operationOf } from "./sqlite-operation.ts";
import { prepareSchema } from "./sqlite-schema.ts";
import { SqliteStore } from "./sqlite-store.ts";

export interface WorkerOptions {
  readonly directory: string;
  readonly bootId: string;
  readonly nowMs: number;
  readonly lockWaitMs: number;
  readonly cooldowns: Cooldowns;
  /** Keep what nobody wants until it is forgotten: journal.ts. */
  readonly isJournal: boolean;
  readonly faultPlan: FaultPlan | undefined;
  readonly faultCounter: SharedArrayBuffer;
}

/** The first messages of the worker; after `opened` it sends a `Reply` for each call. `waiting` comes once, before another agent ends. */
export type OpenMessage =
  | { readonly kind: "waiting"; readonly holder: string }
  | { readonly kind: "opened" }
  | { readonly kind: "failed"; readonly message: string };

/** SQLITE_BUSY, sqlite3.h */
const SQLITE_BUSY = 5;

function openDatabase(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    // Exclusive before the first access: the lock is the file's own, and no shared-memory file is needed.
    database.exec("PRAGMA locking_mode = exclusive; PRAGMA journal_mode = wal; PRAGMA synchronous = normal");
    database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    database.exec("BEGIN IMMEDIATE; COMMIT");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
}

/** For people only: the lock itself is the database file's, so a full disk need not stop the start. */
function signHolder(holderFile: string): void {
  try {
    writeFileSync(holderFile, `process ${process.pid}\n`, { mode: 0o600 });
  } catch {
    rmSync(holderFile, { force: true });
  }
}

/** Waits until the other agent is gone; says who it is when it does not go. */
function lockDatabase(options: WorkerOptions, onWaiting: (holder: string) => void): DatabaseSync {
  const file = join(options.directory, "registry.sqlite");
  const holderFile = join(options.directory, "holder");
  const sleep = new Int32Array(new SharedArrayBuffer(4));
  for (let waitedMs = 0; ; waitedMs += LOCK_RETRY_MS) {
    try {
      const database = openDatabase(file);
      signHolder(holderFile);
      return database;
    } catch (error) {
      if (!isBusy(error)) throw new RegistryError(`Registry ${file} cannot be opened: ${messageOf(error)}`);
      const holder = existsSync(holderFile) ? readFileSync(holderFile, "utf8").trim() : "unknown process";
      if (waitedMs === 0) onWaiting(holder);
      if (waitedMs >= options.lockWaitMs) {
        throw new RegistryError(
          `State directory ${options.directory} is in use by another agent (${holder}): waited ${options.lockWaitMs} ms`,
        );
      }
      Atomics.wait(sleep, 0, 0, LOCK_RETRY_MS);
    }
  }
}

/** Allocation rule 19: a new format needs a few pages, and an agent that does not start records no DEL. */
function prepareWithReserve(database: DatabaseSync, reserve: ReserveFile): void {
  try {
    prepareSchema(database);
  } catch (error) {
    if (!isFull(error) || !reserve.spend()) throw error;
    prepareSchema(database);
  }
}

function serve(port: MessagePort, database: DatabaseSync, batch: SqliteBatch, reserve: ReserveFile): void {
  let waiting: CallMessage[] = [];
  const flush = (): void => {
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      waiting.push(next.message as CallMessage);
    }
    const calls = waiting;
    waiting = [];
    for (let start = 0; start < calls.length; start += MAX_GROUP) {
      const group = calls.slice(start, start + MAX_GROUP);
      const operations = group.filter(({ method }) => method !== "close").map(operationOf);
      // One message each: Node.js runs what waits for one before it delivers the next.
      if (operations.length > 0) for (const reply of batch.run(operations)) port.postMessage(reply);
      if (group.some(({ method }) => method === "expire")) reserve.ensure();
    }
    const close = calls.find(({ method }) => method === "close");
    if (close !== undefined) {
      database.close();
      port.postMessage({ id: close.id, value: undefined, freed: [] });
      port.close();
    }
  };
  port.on("message", (message: CallMessage) => {
    // Whatever arrives until the loop comes round shares the commit.
    if (waiting.push(message) === 1) setImmediate(flush);
  });
}

function main(port: MessagePort, options: WorkerOptions): void {
  try {
    const faults = openFaults(options.faultPlan, options.faultCounter);
    const database = lockDatabase(options, (holder) =>
      port.postMessage({ kind: "waiting", holder } satisfies OpenMessage),
    );
    const reserve = new ReserveFile(join(options.directory, "reserve"));
    prepareWithReserve(database, reserve);
    const Store = options.isJournal ? SqliteJournal : SqliteStore;
    const store = new Store(database, { bootId: options.bootId, cooldowns: options.cooldowns, faults });
    reserve.ensure();
    const batch = new SqliteBatch(database, store, reserve, faults);
    const [cooled] = batch.run([{ id: 0, recordsRelease: true, run: () => store.coolDeadBoots(options.nowMs) }]);
    if (cooled !== undefined && "error" in cooled) throw new RegistryError(cooled.error.message);
    port.postMessage({ kind: "opened" } satisfies OpenMessage);
    serve(port, database, batch, reserve);
  } catch (error) {
    port.postMessage({ kind: "failed", message: messageOf(error) } satisfies OpenMessage);
    port.close();
  }
}

invariant(parentPort !== null, "sqlite-worker runs as a worker thread only");
main(parentPort, workerData as WorkerOptions);
