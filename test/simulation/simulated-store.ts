/**
 * The thread of a machine's journal: the product's statements on a disk in memory, which may be full, slow, broken or
 * damaged. SQLite itself finds damage, and the reaction is that of the product's session.ts.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { describeStorage, isDamage } from "../../host/registry/sqlite/error.ts";
import type { RegistryPoint } from "../../host/registry/sqlite/identity.ts";
import { insertRows } from "../../host/registry/sqlite/schema.ts";
import { readRows } from "../../host/registry/sqlite/session.ts";
import type { StoreAccess } from "../../host/registry/sqlite/sqlite-registry.ts";
import type { MemoryStore } from "../fakes/memory-store.ts";
import type { Product } from "./product.ts";
import type { SimulatedTime } from "./simulated-time.ts";

export interface DiskSpace {
  /** No claim can be written. */
  isFull: boolean;
  /** Nothing can be read or written. */
  isBroken: boolean;
  /** Time of each call: milliseconds. */
  delayMs: number;
}

/** A table or an index of the journal, whose first page is damaged. */
export type DamagedPart = "allocation" | "by_owner" | "by_container" | "cooling";

const BROKEN = "disk I/O error";
const PAGE_BYTES = 4_096;

type JournalOptions = ConstructorParameters<typeof MemoryStore>[1];

interface SimulatedStoreOptions extends JournalOptions {
  readonly product: Product;
  readonly disk: DatabaseSync;
  /** After each call that may have written. */
  readonly onCommit: () => void;
  /** Another disk takes the place of a damaged one; `lost`: the rows that it does not have. */
  readonly onReplaced: (disk: DatabaseSync, reason: string, lost: number) => void;
}

/** Calls of the journal that write nothing. */
const READS = /^(find|list|read|count|probe)/;

/** Prepared statements by disk; a preparation for each commit would take a tenth of a run. */
const counters = new WeakMap<DatabaseSync, StatementSync>();

/** Counts a commit if there was one, as the journal's thread does. */
export function pointOf(disk: DatabaseSync, commits: 0 | 1): RegistryPoint {
  const counter =
    counters.get(disk) ?? disk.prepare("UPDATE identity SET generation = generation + ? RETURNING id, generation");
  counters.set(disk, counter);
  const row = counter.get(commits);
  return { id: String(row?.id), generation: Number(row?.generation) };
}

/** Returns a disk with the tables of that version's journal. */
export function emptyDisk({ prepareSchema }: Product): DatabaseSync {
  const disk = new DatabaseSync(":memory:");
  prepareSchema(disk);
  return disk;
}

/** A call is carried out a moment after it was sent, and answered a moment later. */
export class SimulatedStore implements StoreAccess {
  readonly pendingCalls = 0;
  trouble: string | undefined;
  gone: StoreAccess["gone"];
  readonly #time: SimulatedTime;
  readonly #space: DiskSpace;
  readonly #options: SimulatedStoreOptions;
  readonly #freed: Parameters<JournalOptions["onFreed"]>[] = [];
  #disk: DatabaseSync;
  /** Undefined until the first call after damage. */
  #journal: MemoryStore | undefined;
  #lastVersion: number | undefined;
  /** Number of rows when the disk was damaged. */
  #rows = 0;

  constructor(time: SimulatedTime, space: DiskSpace, options: SimulatedStoreOptions) {
    this.#time = time;
    this.#space = space;
    this.#options = options;
    this.#disk = options.disk;
    this.#journal = this.#open();
  }

  /** Last version of a row; undefined if the product does not say. */
  get lastVersion(): number | undefined {
    return this.#journal?.point?.lastVersion ?? this.#lastVersion;
  }

  /** Overwrites a page. The next call that reads it finds out. Returns the damaged disk. */
  damage(part: DamagedPart): DatabaseSync {
    this.#rows = readRows(this.#disk).rows.length;
    this.#lastVersion = this.lastVersion;
    this.#disk = damagedCopy(this.#disk, part);
    this.#journal = undefined;
    return this.#disk;
  }

  async send(...call: Parameters<StoreAccess["send"]>): Promise<unknown> {
    const [method] = call;
    const { RegistryError } = this.#options.product;
    await this.#time.sleep(this.#space.delayMs, `journal ${method}`);
    if (this.#space.isBroken) {
      this.trouble = BROKEN;
      if (method === "probe") return BROKEN;
      throw new RegistryError(BROKEN);
    }
    if (this.#space.isFull && method === "claim") throw new RegistryError("database or disk is full", { full: true });
    try {
      if (method === "claim" && this.trouble !== undefined) throw new RegistryError(this.trouble);
      const value = await this.#carryOut(call);
      if (!READS.test(method)) this.#options.onCommit();
      return value;
    } finally {
      await this.#time.sleep(0, "journal answers");
      for (const each of this.#freed.splice(0)) this.#options.onFreed(...each);
    }
  }

  async close(): Promise<void> {
    this.gone = new this.#options.product.RegistryError("The registry is closed");
  }

  #open(): MemoryStore {
    const { product, ...options } = this.#options;
    const lastVersion = this.#lastVersion ?? options.lastVersion;
    return new product.MemoryStore(this.#disk, {
      ...options,
      lastVersion,
      onFreed: (...each) => void this.#freed.push(each),
    });
  }

  async #carryOut(call: Parameters<StoreAccess["send"]>): Promise<unknown> {
    try {
      this.#journal ??= this.#open();
      return await this.#journal.send(...call);
    } catch (error) {
      if (!isDamage(error)) throw error;
      const reason = describeStorage(error, "registry.sqlite");
      this.#replace(reason);
      throw new this.#options.product.RegistryError(reason);
    }
  }

  /** Another journal has all rows that can still be read. */
  #replace(reason: string): void {
    const { rows } = readRows(this.#disk);
    this.#disk.close();
    this.#disk = emptyDisk(this.#options.product);
    insertRows(this.#disk, rows);
    this.#journal = this.#open();
    this.#options.onReplaced(this.#disk, reason, this.#rows - rows.length);
  }
}

function damagedCopy(disk: DatabaseSync, part: DamagedPart): DatabaseSync {
  const found = disk.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(part);
  const bytes = disk.serialize();
  bytes.fill(0xff, (Number(found?.rootpage) - 1) * PAGE_BYTES, Number(found?.rootpage) * PAGE_BYTES);
  disk.close();
  const damaged = new DatabaseSync(":memory:");
  damaged.deserialize(bytes);
  return damaged;
}
