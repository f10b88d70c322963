/** The table `identity`, of one row: the registry's ID, its number of commits, and why it is incomplete. */
import type { DatabaseSync, StatementSync } from "node:sqlite";

/** Space that must be writable before a registry is used again after a full disk: bytes. Enough for many NICs. */
const PROBE_BYTES = 64 * 1024;

/** A registry at one commit. The witness keeps the latest outside of the database. */
export interface RegistryPoint {
  readonly id: string;
  readonly generation: number;
  /** The last version of a row; absent if a release wrote it that did not keep that. */
  readonly lastVersion?: number | undefined;
}

export class SqliteIdentity implements RegistryPoint {
  readonly #database: DatabaseSync;
  readonly #bootId: string;
  readonly #advance: StatementSync;
  readonly id: string;
  #committed: number;
  /** Number of commits that have written anything. */
  generation: number;
  /** Why rows may be missing, a sentence; undefined if the registry is complete. */
  loss: string | undefined;
  #committedLoss: string | undefined;

  constructor(database: DatabaseSync, bootId: string) {
    this.#database = database;
    this.#bootId = bootId;
    const row = database.prepare("SELECT * FROM identity").get() ?? {};
    this.id = String(row.id);
    this.generation = Number(row.generation);
    this.#committed = this.generation;
    // Rows that were lost before the machine started belonged to sandboxes that are dead.
    this.loss = row.loss !== "" && row.loss_boot === bootId ? String(row.loss) : undefined;
    this.#committedLoss = this.loss;
    this.#advance = database.prepare("UPDATE identity SET generation = ?");
  }

  /** Counts a transaction that writes; runs within it. */
  advance(): void {
    this.#advance.run(++this.generation);
  }

  /** The transaction was committed. */
  noteCommit(): void {
    this.#committed = this.generation;
    this.#committedLoss = this.loss;
  }

  /** The transaction was rolled back. */
  noteRollback(): void {
    this.generation = this.#committed;
    this.loss = this.#committedLoss;
  }

  /** Records the loss in memory, and in the database if that can be written. */
  lose(reason: string): void {
    this.loss = reason;
    this.#committedLoss = reason;
    try {
      this.#database.prepare("UPDATE identity SET loss = ?, loss_boot = ?").run(reason, this.#bootId);
    } catch {
      // The next start finds the loss by the witness.
    }
  }

  /** Ends the loss; runs within a transaction. */
  recover(): void {
    this.#database.exec("UPDATE identity SET loss = '', loss_boot = ''");
    this.loss = undefined;
  }

  /**
   * Finds out whether the database can be written: with `isThorough` by as much as a claim may need. The next probe
   * returns the room.
   */
  probe(isThorough: boolean): void {
    // Random bytes, because SQLite does not write a value that is unchanged.
    this.#database.prepare("UPDATE identity SET room = randomblob(?)").run(isThorough ? PROBE_BYTES : 8);
  }
}
