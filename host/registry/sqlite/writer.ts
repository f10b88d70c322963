/**
 * What every change of the registry's table shares: versions, the fault seam, what was freed, whether anything was written.
 * Effects: writes the database, within the caller's transaction.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Faults } from "../../lib/fault.ts";
import type { Ip } from "../../net/ip.ts";
import type { Allocation } from "../registry.ts";
import { SqliteIdentity } from "./identity.ts";
import { KEY, keyOf, SqliteReader, type SqlValue } from "./reader.ts";

/** An address that a transaction made free. */
export interface Freed {
  readonly space: string;
  readonly ip: Ip;
}

export interface WriterOptions {
  readonly bootId: string;
  readonly faults: Faults;
}

export class SqliteWriter extends SqliteReader {
  readonly #faults: Faults;
  protected readonly bootId: string;
  readonly identity: SqliteIdentity;
  #freed: Freed[] = [];
  #hasWritten = false;
  /** Versions are never used twice, even for an address that was freed in between: undo relies on it. */
  #lastVersion: number;

  constructor(database: DatabaseSync, { bootId, faults }: WriterOptions) {
    super(database);
    this.#faults = faults;
    this.bootId = bootId;
    this.identity = new SqliteIdentity(database, bootId);
    this.#lastVersion = Number(database.prepare("SELECT max(version) AS last FROM allocation").get()?.last ?? 0);
  }

  /** The addresses freed since the last call. */
  takeFreed(): Freed[] {
    const freed = this.#freed;
    this.#freed = [];
    return freed;
  }

  /** Whether anything was written since the last call. */
  takeWritten(): boolean {
    const written = this.#hasWritten;
    this.#hasWritten = false;
    return written;
  }

  protected nextVersion(): number {
    return ++this.#lastVersion;
  }

  protected noteFreed({ space, ip }: Freed): void {
    this.#freed.push({ space, ip });
  }

  /** Before anything is written: the place where a fault plan strikes. */
  protected noteWrite(): void {
    this.#faults("registry.write");
    this.#hasWritten = true;
  }

  /** Nobody wants the address any more, if nobody has written since: the row goes. */
  protected drop({ space, ip, version }: Allocation, _nowMs: number): void {
    const changes = this.write(`DELETE FROM allocation WHERE ${KEY} AND version = ?`, ...keyOf(space, ip), version);
    if (changes > 0) this.noteFreed({ space, ip });
  }

  /** Answers how many rows were changed. */
  protected write(sql: string, ...values: SqlValue[]): number {
    this.noteWrite();
    return Number(this.prepare(sql).run(...values).changes);
  }
}
