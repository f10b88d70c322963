/**
 * The journal without its thread: the real statements on a database in memory, in the order of the calls. The same
 * walk gives the same end.
 * Effects: writes the database that it is given, which outlives it as a disk outlives an agent.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Journal } from "../../host/registry/journal.ts";
import type { Cooldowns, FreedObserver } from "../../host/registry/registry.ts";
import { SqliteRegistry } from "../../host/registry/sqlite/sqlite-registry.ts";
import { MemoryStore, openMemoryDatabase } from "./memory-store.ts";

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

export const openDisk = openMemoryDatabase;

/** Returns another disk with the same tables. */
export function copyDisk(disk: DatabaseSync): DatabaseSync {
  const copy = openMemoryDatabase();
  copy.deserialize(disk.serialize());
  return copy;
}

export function openMemoryJournal(disk: DatabaseSync, options: MemoryJournalOptions): Journal {
  const { nowMs, isEmbedded = false } = options;
  const store = new MemoryStore(disk, { ...options, isJournal: !isEmbedded, openedAtMs: nowMs() });
  return new SqliteRegistry(store, nowMs);
}
