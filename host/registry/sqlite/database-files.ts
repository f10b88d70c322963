/** Notices that other processes remove, replace or truncate the registry's files while it is open, and sets damaged files aside. */
import { renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

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

  /** Returns what has happened to the files since they were remembered, a sentence; undefined if they are unchanged. */
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
