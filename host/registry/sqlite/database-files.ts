/**
 * The files of a registry as others may treat them while it is open: removed, replaced, cut.
 * Effects: reads the files' stats; renames files that are damaged.
 */
import { renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

interface Seen {
  readonly ino: number;
  readonly dev: number;
  readonly size: number;
}

export class DatabaseFiles {
  /** Path of the database. */
  readonly database: string;
  readonly #log: string;
  #seen = new Map<string, Seen>();

  constructor(directory: string) {
    this.database = join(directory, "registry.sqlite");
    this.#log = `${this.database}-wal`;
  }

  /** Remembers how the files are after this process's own work. */
  remember(): void {
    for (const path of [this.database, this.#log]) {
      const seen = look(path);
      if (seen !== undefined) this.#seen.set(path, seen);
    }
  }

  /** What has happened to the files since they were remembered, a sentence; undefined when they are as they were. */
  findLoss(): string | undefined {
    for (const [path, before] of this.#seen) {
      const now = look(path);
      const what = now === undefined ? "was removed" : describeChange(before, now);
      if (what !== undefined) return `Registry ${path} ${what} while the agent ran`;
    }
    return undefined;
  }

  /** Puts what is there under the name `.damaged`, in place of what was put there before. The caller has closed it. */
  setAside(): void {
    for (const suffix of ["", "-wal"]) {
      const aside = `${this.database}.damaged${suffix}`;
      rmSync(aside, { recursive: true, force: true });
      if (look(this.database + suffix) !== undefined) renameSync(this.database + suffix, aside);
    }
    this.#seen.clear();
  }
}

function look(path: string): Seen | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats && { ino: stats.ino, dev: stats.dev, size: stats.size };
}

function describeChange(before: Seen, now: Seen): string | undefined {
  if (now.ino !== before.ino || now.dev !== before.dev) return "was replaced";
  return now.size < before.size ? "was cut" : undefined;
}
