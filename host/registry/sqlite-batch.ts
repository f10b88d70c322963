/**
 * Group commit: many operations, one transaction, one write to the disk. What fails together is tried again
 * one by one, so that one operation's trouble is not its neighbours'.
 * Called by sqlite-worker.ts, on its own thread.
 * Effects: commits to the database; spends the reserve file and empties the write-ahead log when the disk is full.
 */
import type { DatabaseSync } from "node:sqlite";
import { messageOf } from "../lib/describe.ts";
import type { Faults } from "../lib/fault.ts";
import type { ReserveFile } from "./reserve-file.ts";
import type { SqliteStore } from "./sqlite-store.ts";
import type { Freed } from "./sqlite-writer.ts";

/** One call of a store method. */
export interface Operation {
  readonly id: number;
  /** May spend the reserve. */
  readonly recordsRelease: boolean;
  /** Must outlive a power loss (allocation rule 13): its commit waits for the disk, and all that share it. */
  readonly outlivesPower?: boolean;
  readonly run: (store: SqliteStore) => unknown;
}

export type Reply =
  | { readonly id: number; readonly value: unknown; readonly freed: readonly Freed[] }
  | { readonly id: number; readonly error: { readonly message: string; readonly full: boolean } };

/** SQLITE_FULL, sqlite3.h */
const SQLITE_FULL = 13;

export class SqliteBatch {
  readonly #database: DatabaseSync;
  readonly #store: SqliteStore;
  readonly #reserve: ReserveFile;
  readonly #faults: Faults;

  constructor(database: DatabaseSync, store: SqliteStore, reserve: ReserveFile, faults: Faults) {
    this.#database = database;
    this.#store = store;
    this.#reserve = reserve;
    this.#faults = faults;
  }

  /** Runs all operations and says what became of each, in order. Never throws for the sake of one of them. */
  run(operations: readonly Operation[]): Reply[] {
    try {
      return this.#transact(operations);
    } catch (error) {
      const [only, ...others] = operations;
      if (only !== undefined && others.length === 0) return [this.#runAgain(only, error)];
      return operations.flatMap((operation) => this.run([operation]));
    }
  }

  #runAgain(operation: Operation, error: unknown): Reply {
    if (isFull(error) && operation.recordsRelease) {
      this.#makeRoom();
      try {
        const [reply] = this.#transact([operation]);
        if (reply !== undefined) return reply;
      } catch (again) {
        return failed(operation, again);
      }
    }
    return failed(operation, error);
  }

  /** The log of writes is the largest thing here that can be given up: what it holds moves into the database. */
  #makeRoom(): void {
    this.#reserve.spend();
    try {
      this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // No room for that either: the reserve's must do.
    }
  }

  /** The level is one of the connection and cannot change within a transaction. */
  #transact(operations: readonly Operation[]): Reply[] {
    if (!operations.some(({ outlivesPower }) => outlivesPower)) return this.#commit(operations);
    this.#database.exec("PRAGMA synchronous = full");
    try {
      return this.#commit(operations);
    } finally {
      this.#database.exec("PRAGMA synchronous = normal");
    }
  }

  #commit(operations: readonly Operation[]): Reply[] {
    this.#database.exec("BEGIN IMMEDIATE");
    let replies: Reply[];
    let written = false;
    try {
      replies = operations.map((operation) => {
        const value = operation.run(this.#store);
        return { id: operation.id, value, freed: this.#store.takeFreed() };
      });
      written = this.#store.takeWritten();
      if (written) this.#faults("registry.commit");
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#store.takeFreed();
      this.#store.takeWritten();
      // SQLite may have rolled back by itself (full disk): a second ROLLBACK would hide the real error.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
    if (written) this.#faults("registry.committed");
    return replies;
  }
}

/** Whether the disk had no room for it. */
export function isFull(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && error.errcode === SQLITE_FULL;
}

function failed(operation: Operation, error: unknown): Reply {
  const message = messageOf(error);
  return { id: operation.id, error: { message, full: isFull(error) } };
}
