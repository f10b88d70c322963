/**
 * Which registry a database is, how many commits it has seen, and why it is not complete: the table `identity`, of one row.
 * Effects: reads and writes the database, within the caller's transaction where it says so.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";

/** What has to find room before a registry that had none is used again: bytes. More than a claim of many NICs writes. @limit */
export const PROBE_BYTES = 64 * 1024;

/** What the node remembers of a registry elsewhere: registry-witness.ts. */
export interface RegistryPoint {
  readonly id: string;
  readonly generation: number;
}

export class SqliteIdentity implements RegistryPoint {
  readonly #database: DatabaseSync;
  readonly #bootId: string;
  readonly #advance: StatementSync;
  readonly id: string;
  #committed: number;
  #generation: number;
  #loss: string | undefined;
  #committedLoss: string | undefined;

  constructor(database: DatabaseSync, bootId: string) {
    this.#database = database;
    this.#bootId = bootId;
    const row = database.prepare("SELECT * FROM identity").get() ?? {};
    this.id = String(row.id);
    this.#generation = Number(row.generation);
    this.#committed = this.#generation;
    // Rows that were lost before the machine started were of sandboxes that are dead.
    this.#loss = row.loss !== "" && row.loss_boot === bootId ? String(row.loss) : undefined;
    this.#committedLoss = this.#loss;
    this.#advance = database.prepare("UPDATE identity SET generation = ?");
  }

  /** How many commits the registry has seen that wrote anything. */
  get generation(): number {
    return this.#generation;
  }

  /** Why rows may be missing, a sentence; undefined when none are. */
  get loss(): string | undefined {
    return this.#loss;
  }

  /** Within a transaction that writes: it is one more. */
  advance(): void {
    this.#advance.run(++this.#generation);
  }

  /** The transaction is committed. */
  settle(): void {
    this.#committed = this.#generation;
    this.#committedLoss = this.#loss;
  }

  /** The transaction is rolled back. */
  revert(): void {
    this.#generation = this.#committed;
    this.#loss = this.#committedLoss;
  }

  /** Remembers the loss where it can; in memory in any case. */
  lose(reason: string): void {
    this.#loss = reason;
    this.#committedLoss = reason;
    try {
      this.#database.prepare("UPDATE identity SET loss = ?, loss_boot = ?").run(reason, this.#bootId);
    } catch {
      // The witness tells the next start as much.
    }
  }

  /** Within a transaction: the rows are complete again. */
  recover(): void {
    this.#database.exec("UPDATE identity SET loss = '', loss_boot = ''");
    this.#loss = undefined;
  }

  /** Writes to see whether it can be written: with `isThorough` as much as a claim with all its pages, and gives it back with the next probe. */
  probe(isThorough: boolean): void {
    // Random: SQLite does not write what is there already.
    this.#database.prepare("UPDATE identity SET room = randomblob(?)").run(isThorough ? PROBE_BYTES : 8);
  }
}
