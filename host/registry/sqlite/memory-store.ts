/**
 * The store without a thread and without a file, for registries that nothing outlives: copies for dry runs, and tests.
 */
import { DatabaseSync } from "node:sqlite";
import { type Cooldowns, type FreedObserver, RegistryError } from "../registry.ts";
import type { RegistryPoint } from "./identity.ts";
import { SqliteJournal } from "./journal.ts";
import { type CallMessage, operationOf } from "./operation.ts";
import { prepareSchema } from "./schema.ts";
import { SqliteStore } from "./store.ts";
import type { StoreAccess } from "./store-access.ts";

interface MemoryStoreOptions {
  readonly isJournal: boolean;
  readonly bootId: string;
  readonly cooldowns: Cooldowns;
  readonly onFreed: FreedObserver;
  /** On the machine's monotonic clock. */
  readonly openedAtMs: number;
  /** Of a store that this one replaces; default: there was none. */
  readonly lastVersion?: number | undefined;
}

export function openMemoryDatabase(): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  prepareSchema(database);
  return database;
}

/** Each call is one transaction, which has ended when {@link send} returns. */
export class MemoryStore implements StoreAccess {
  readonly isJournal: boolean;
  readonly bootId: string;
  trouble: string | undefined;
  gone: RegistryError | undefined;
  readonly pendingCalls = 0;
  readonly #database: DatabaseSync;
  readonly #store: SqliteStore;
  readonly #onFreed: FreedObserver;

  constructor(
    database: DatabaseSync,
    { isJournal, bootId, cooldowns, onFreed, openedAtMs, lastVersion }: MemoryStoreOptions,
  ) {
    this.isJournal = isJournal;
    this.bootId = bootId;
    this.#database = database;
    this.#onFreed = onFreed;
    const Store = isJournal ? SqliteJournal : SqliteStore;
    this.#store = new Store(database, { bootId, cooldowns, lastVersion, faults: () => {} });
    this.#transact(() => this.#store.coolDeadBoots(openedAtMs));
  }

  async send(method: CallMessage["method"], args: readonly unknown[]): Promise<unknown> {
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
      for (const { space, ip } of this.#store.takeFreed()) this.#onFreed(space, ip);
      return value;
    } catch (error) {
      this.#store.takeFreed();
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }
}
