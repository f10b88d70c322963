/**
 * The store without a thread and without a file: the real statements on a database in memory.
 */
import { DatabaseSync } from "node:sqlite";
import { type Cooldowns, type FreedObserver, RegistryError } from "../../host/registry/registry.ts";
import type { RegistryPoint } from "../../host/registry/sqlite/identity.ts";
import { SqliteJournal } from "../../host/registry/sqlite/journal.ts";
import { type CallMessage, operationOf } from "../../host/registry/sqlite/operation.ts";
import { prepareSchema } from "../../host/registry/sqlite/schema.ts";
import type { StoreAccess } from "../../host/registry/sqlite/sqlite-registry.ts";
import { SqliteStore } from "../../host/registry/sqlite/store.ts";

interface MemoryStoreOptions {
  readonly isJournal: boolean;
  readonly bootId: string;
  readonly cooldowns: Cooldowns;
  readonly onFreed: FreedObserver;
  /** On the machine's monotonic clock. */
  readonly openedAtMs: number;
  /** Of a store that this one replaces; default: there was none. */
  readonly lastVersion?: number | undefined;
  /** The agent has ended as after `kill -9`: nothing is written and nothing is answered any more. */
  readonly isDead?: () => boolean;
}

export function openMemoryDatabase(): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  prepareSchema(database);
  return database;
}

/** Each call is one transaction, which has ended when {@link send} returns. */
export class MemoryStore implements StoreAccess {
  trouble: string | undefined;
  gone: RegistryError | undefined;
  readonly pendingCalls = 0;
  readonly #database: DatabaseSync;
  readonly #store: SqliteStore;
  readonly #options: MemoryStoreOptions;

  constructor(database: DatabaseSync, options: MemoryStoreOptions) {
    const { isJournal, bootId, cooldowns, openedAtMs, lastVersion } = options;
    this.#database = database;
    this.#options = options;
    const Store = isJournal ? SqliteJournal : SqliteStore;
    this.#store = new Store(database, { bootId, cooldowns, lastVersion, faults: () => {} });
    this.#transact(() => this.#store.coolDeadBoots(openedAtMs));
  }

  async send(method: CallMessage["method"], args: readonly unknown[]): Promise<unknown> {
    if (this.#options.isDead?.() === true) return new Promise(() => {});
    if (method === "probe") return undefined;
    // A registry that lost rows, or cannot write, records no address.
    if (method === "claim" && this.trouble !== undefined) throw new RegistryError(this.trouble);
    const operation = operationOf({ id: 0, method, args: structuredClone(args) });
    return structuredClone(this.#transact(() => operation.run(this.#store)));
  }

  get point(): RegistryPoint {
    return this.#store.point;
  }

  async close(): Promise<void> {
    this.gone = new RegistryError("The registry is closed");
  }

  #transact(run: () => unknown): unknown {
    this.#database.exec("BEGIN");
    try {
      const value = run();
      this.#database.exec("COMMIT");
      for (const { space, ip } of this.#store.takeFreed()) this.#options.onFreed(space, ip);
      return value;
    } catch (error) {
      this.#store.takeFreed();
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }
}
