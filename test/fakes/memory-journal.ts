/**
 * The journal without its thread: the real statements on a database in memory, in the order of the calls. The same walk gives the same end.
 * Effects: writes the database that it is given, which outlives it as a disk outlives an agent.
 */
import { DatabaseSync } from "node:sqlite";
import type { Journal } from "../../host/registry/journal.ts";
import { type Cooldowns, type FreedObserver, RegistryError } from "../../host/registry/registry.ts";
import { SqliteJournal } from "../../host/registry/sqlite/journal.ts";
import { prepareSchema } from "../../host/registry/sqlite/schema.ts";
import { SqliteStore } from "../../host/registry/sqlite/store.ts";

/** What a registry answers where no other node has anything. */
const ALONE: Readonly<Record<string, unknown>> = { listUsed: undefined, readUsageSummary: undefined, findRetained: [] };

/** Operations that get the time as an argument, as in SqliteRegistry. */
const TIMED: readonly string[] = [
  ...["claim", "undo", "release", "releaseOthers", "releaseUnattached", "expire", "quarantineAndUndo", "endQuarantine"],
  ...["findDue", "adopt", "collect"],
];

export interface MemoryJournalOptions {
  readonly bootId: string;
  readonly nowMs: () => number;
  readonly cooldowns: Cooldowns;
  readonly onFreed: FreedObserver;
  /** The agent has ended: nothing is written and nothing is answered any more. */
  readonly isDead?: () => boolean;
  /** The store of an agent without a cluster. */
  readonly isEmbedded?: boolean;
}

export function openDisk(): DatabaseSync {
  const disk = new DatabaseSync(":memory:");
  prepareSchema(disk);
  return disk;
}

export function openMemoryJournal(disk: DatabaseSync, options: MemoryJournalOptions): Journal {
  const { bootId, nowMs, cooldowns, onFreed, isDead = () => false, isEmbedded = false } = options;
  const Store = isEmbedded ? SqliteStore : SqliteJournal;
  const store = new Store(disk, { bootId, cooldowns, faults: () => {} });
  let isClosed = false;
  const run = (name: string, args: readonly unknown[]): unknown => {
    const method: unknown = Reflect.get(store, name);
    if (typeof method !== "function") throw new Error(`${name} is not an operation of a journal`);
    disk.exec("BEGIN");
    try {
      const value: unknown = method.apply(store, TIMED.includes(name) ? [...args, nowMs()] : args);
      disk.exec("COMMIT");
      for (const { space, ip } of store.takeFreed()) onFreed(space, ip);
      return value;
    } catch (error) {
      disk.exec("ROLLBACK");
      throw error;
    }
  };
  run("coolDeadBoots", [nowMs()]);
  const call = (name: string, args: readonly unknown[]): unknown => {
    if (isDead()) return new Promise(() => {});
    if (name === "close") {
      isClosed = true;
      return Promise.resolve();
    }
    if (isClosed) return Promise.reject(new RegistryError("The registry is closed"));
    if (name === "setCooldowns") return store.setCooldowns(args[0] as Cooldowns);
    if (Object.hasOwn(ALONE, name)) return Promise.resolve(ALONE[name]);
    if (name === "quarantine") {
      const [allocation, quarantine, created = []] = args;
      return Promise.resolve(run("quarantineAndUndo", [{ allocation, quarantine, created }]));
    }
    // A claim's second argument is the caller's signal, of which a store knows nothing.
    const given = name === "claim" ? args.slice(0, 1) : args;
    return new Promise((resolve) => {
      let answer = run(name, given);
      // In portions.
      while (name === "expire" && answer === undefined) answer = run(name, given);
      resolve(structuredClone(answer));
    });
  };
  const isMethod = (name: string | symbol): name is string => typeof name === "string" && name !== "then";
  return new Proxy({} as Journal, {
    get: (_target, name) => (isMethod(name) ? (...args: unknown[]) => call(name, args) : undefined),
  });
}
