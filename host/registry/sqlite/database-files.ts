/** Notices that other processes remove, replace or truncate the registry's open files; sets damaged files aside. */

import { renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { readText } from "../../lib/regular-file.ts";
import { tryOr } from "../../lib/try-or.ts";
import { RegistryError } from "../registry.ts";
import { describeStorage, isBusy, isDamage } from "./error.ts";

interface FileState {
  readonly ino: number;
  readonly dev: number;
  readonly size: number;
}

export class DatabaseFiles {
  /** Path of the database. */
  readonly database: string;
  readonly #log: string;
  #remembered = new Map<string, FileState>();

  constructor(directory: string) {
    this.database = join(directory, "registry.sqlite");
    this.#log = `${this.database}-wal`;
  }

  /** Remembers the files after this process's own writes. */
  remember(): void {
    for (const path of [this.database, this.#log]) {
      const state = readState(path);
      if (state !== undefined) this.#remembered.set(path, state);
    }
  }

  /** Returns the change of the files since they were remembered, a sentence; undefined if they are unchanged. */
  findLoss(): string | undefined {
    for (const [path, before] of this.#remembered) {
      const now = readState(path);
      const change = now === undefined ? "was removed" : describeChange(before, now);
      if (change !== undefined) return `Registry ${path} ${change} while the agent ran`;
    }
    return undefined;
  }

  /** Renames the files to `.damaged`, replacing earlier ones of that name. The caller has closed them. */
  setAside(): void {
    for (const suffix of ["", "-wal"]) {
      const aside = `${this.database}.damaged${suffix}`;
      rmSync(aside, { recursive: true, force: true });
      if (readState(this.database + suffix) !== undefined) renameSync(this.database + suffix, aside);
    }
    this.#remembered.clear();
  }
}

function readState(path: string): FileState | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && { ino: stats.ino, dev: stats.dev, size: stats.size };
}

function describeChange(before: FileState, now: FileState): string | undefined {
  if (now.ino !== before.ino || now.dev !== before.dev) return "was replaced";
  return now.size < before.size ? "was truncated" : undefined;
}

/** Interval at which an agent retries to lock a state directory: milliseconds. */
const LOCK_RETRY_MS = 100;

/**
 * Size of the write-ahead log at which it is written into the database: pages of 4 KiB. Claims may wait for the fsync
 * of that write.
 */
const CHECKPOINT_PAGES = 4_000;

export interface LockOptions {
  readonly directory: string;
  readonly bootId: string;
  readonly lockWaitMs: number;
  /** Called once, before the wait, with the holder. */
  readonly onWaiting: (holder: string) => void;
}

/** `locking_mode` precedes the first access: the lock is then the file's own, and no shared-memory file is needed. */
const SETTINGS = `PRAGMA locking_mode = exclusive; PRAGMA journal_mode = wal; PRAGMA synchronous = normal;
  PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}; BEGIN IMMEDIATE; COMMIT`;

function openDatabase(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec(SETTINGS);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Waits up to `lockWaitMs` for another agent. Throws SQLite's error for a damaged file, else RegistryError. */
export function lockDatabase(file: string, options: LockOptions): DatabaseSync {
  const sleep = new Int32Array(new SharedArrayBuffer(4));
  for (let waitedMs = 0; ; waitedMs += LOCK_RETRY_MS) {
    try {
      return openDatabase(file);
    } catch (error) {
      if (isDamage(error)) throw error;
      if (!isBusy(error)) throw new RegistryError(`Registry ${file} cannot be opened: ${describeStorage(error, file)}`);
      const [holder = ""] = readHolder(options.directory) ?? ["unknown process"];
      if (waitedMs === 0) options.onWaiting(holder);
      if (waitedMs >= options.lockWaitMs) {
        throw new RegistryError(
          `State directory ${options.directory} is in use by another agent (${holder}): waited ${options.lockWaitMs} ms`,
        );
      }
      Atomics.wait(sleep, 0, 0, LOCK_RETRY_MS);
    }
  }
}

/**
 * For people, and for {@link wasInUse}. The lock is the database file's own, so the agent starts even if this file
 * cannot be written.
 */
export function signHolder({ directory, bootId }: LockOptions): void {
  try {
    writeFileSync(join(directory, "holder"), `process ${process.pid}\nboot ${bootId}\n`, { mode: 0o600 });
  } catch {
    rmSync(join(directory, "holder"), { force: true });
  }
}

/** Returns whether an agent may have used the directory since the machine started, also without a named boot. */
export function wasInUse({ directory, bootId }: LockOptions): boolean {
  const lines = readHolder(directory);
  return lines !== undefined && (lines.length < 2 || lines.includes(`boot ${bootId}`));
}

function readHolder(directory: string): string[] | undefined {
  return tryOr(() => readText(join(directory, "holder")).trim().split("\n"), undefined);
}
