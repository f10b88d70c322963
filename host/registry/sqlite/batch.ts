/**
 * Group commit: many operations in one transaction, one write to the disk. If the transaction fails, each operation
 * is tried alone, so that it fails for its own reason only. On a full disk the reserve file is given up and the
 * write-ahead log emptied.
 */

import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import type { Faults } from "../../lib/fault.ts";
import { describeStorage, isDamage, isFull, isStorage } from "./error.ts";
import type { ReserveFile } from "./reserve-file.ts";
import { RESERVE_BYTES } from "./reserve-file.ts";
import type { Freed, SqliteStore } from "./store.ts";
import type { Witness } from "./witness.ts";

/** Most operations that share one commit. */
export const MAX_GROUP = 128;

/** Commits after which the write-ahead log is checkpointed once no further commit has come for CHECKPOINT_QUIET_MS. */
export const COMMITS_PER_CHECKPOINT = 64;

/** Time without a commit of the registry before such a checkpoint: milliseconds. */
export const CHECKPOINT_QUIET_MS = 100;

/** One call of a store method. */
export interface Operation {
  readonly id: number;
  /** May spend the reserve. */
  readonly recordsRelease: boolean;
  /** Must outlive a power loss (clocks-and-boots): its commit waits for the disk. */
  readonly outlivesPower?: boolean;
  /** Needs no transaction unless another operation of its group writes. */
  readonly onlyReads?: boolean;
  readonly run: (store: SqliteStore) => unknown;
}

export type Reply =
  | { readonly id: number; readonly value: unknown; readonly freed: readonly Freed[] }
  | { readonly id: number; readonly error: Failure };

/** `isStorage`: the disk or the file makes every write fail. */
export interface Failure {
  readonly message: string;
  readonly full: boolean;
  readonly isStorage: boolean;
  readonly isDamage: boolean;
}

interface BatchParts {
  /** The database's path, for errors. */
  readonly file: string;
  readonly database: DatabaseSync;
  readonly store: SqliteStore;
  readonly reserve: ReserveFile;
  readonly faults: Faults;
  readonly witness?: Witness | undefined;
}

export class SqliteBatch {
  readonly #file: string;
  readonly #database: DatabaseSync;
  readonly #store: SqliteStore;
  readonly #reserve: ReserveFile;
  readonly #faults: Faults;
  readonly #witness: Witness | undefined;
  /** Since the last checkpoint, and when the last of them was. */
  #commits = 0;
  #committedAtMs = 0;

  constructor({ file, database, store, reserve, faults, witness }: BatchParts) {
    this.#file = file;
    this.#database = database;
    this.#store = store;
    this.#reserve = reserve;
    this.#faults = faults;
    this.#witness = witness;
  }

  /** Runs all operations. Returns a reply for each, in order; an operation that fails has an error in its reply. */
  run(operations: readonly Operation[]): Reply[] {
    try {
      return this.#transact(operations);
    } catch (error) {
      const [only, ...others] = operations;
      if (only !== undefined && others.length === 0) return [this.#runAgain(only, error)];
      return operations.flatMap((operation) => this.run([operation]));
    }
  }

  /**
   * Checkpoints the write-ahead log in a pause between commits, so that no ADD waits for the checkpoint and its
   * fsync. The next commit restarts the log, and waits for an fsync, too.
   */
  checkpointIfQuiet(): void {
    if (this.#commits < COMMITS_PER_CHECKPOINT || performance.now() - this.#committedAtMs < CHECKPOINT_QUIET_MS) return;
    this.#commits = 0;
    try {
      this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch {
      // The disk is full; the log keeps the rows.
    }
  }

  #runAgain(operation: Operation, error: unknown): Reply {
    if (!isFull(error)) return this.#failed(operation, error);
    const hasRoom = operation.recordsRelease ? this.#spendReserve() : this.#lendReserve();
    if (!hasRoom) return this.#failed(operation, error);
    try {
      const [reply] = this.#transact([operation]);
      return reply ?? this.#failed(operation, error);
    } catch (again) {
      return this.#failed(operation, again);
    }
  }

  /** For a release: uses all the room there is. */
  #spendReserve(): boolean {
    this.#reserve.spend();
    this.#cutLog();
    return true;
  }

  /** For other operations: uses the log's room, once the reserve is whole again. Returns false if there is none. */
  #lendReserve(): boolean {
    const logBytes = statSync(`${this.#file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (logBytes === 0) return false;
    // Writing the log into the database needs room before it frees any.
    if (logBytes > RESERVE_BYTES / 2) this.#reserve.lend();
    this.#cutLog();
    return this.#reserve.ensure();
  }

  /** Writes the log into the database and truncates it. */
  #cutLog(): void {
    try {
      this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // No room for that either; the reserve's room must do.
    }
  }

  /** Durability is set on the connection and cannot change within a transaction. */
  #transact(operations: readonly Operation[]): Reply[] {
    if (operations.every(({ onlyReads }) => onlyReads))
      return operations.map(({ id, run }) => ({ id, value: run(this.#store), freed: [] }));
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
      if (written) {
        this.#store.identity.advance();
        this.#faults("registry.commit");
      }
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#store.takeFreed();
      this.#store.takeWritten();
      this.#store.identity.noteRollback();
      // SQLite may have rolled back by itself (full disk): a second ROLLBACK would hide the real error.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
    this.#store.identity.noteCommit();
    if (written) {
      this.#commits++;
      this.#committedAtMs = performance.now();
      this.#witness?.write(this.#store.point);
      this.#faults("registry.committed");
    }
    return replies;
  }

  #failed(operation: Operation, error: unknown): Reply {
    const message = describeStorage(error, this.#file);
    const kind = { full: isFull(error), isStorage: isStorage(error), isDamage: isDamage(error) };
    return { id: operation.id, error: { message, ...kind } };
  }
}
