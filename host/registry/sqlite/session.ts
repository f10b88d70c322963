/**
 * The registry's database from opening to closing: finds out whether rows were lost (docs/recovery.md), notices
 * changes of its files, and runs groups of calls. Runs on the thread of sqlite-worker.ts.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../lib/describe.ts";
import { type FaultPlan, type Faults, openFaults } from "../../lib/fault.ts";
import { tryOr } from "../../lib/try-or.ts";
import { type Cooldowns, RegistryError } from "../registry.ts";
import { type Failure, type Operation, type Reply, SqliteBatch } from "./batch.ts";
import { DatabaseFiles, type LockOptions, lockDatabase, signHolder, wasInUse } from "./database-files.ts";
import { isDamage, isFull } from "./error.ts";
import type { RegistryPoint } from "./identity.ts";
import { SqliteJournal } from "./journal.ts";
import { type CallMessage, onlyReads, operationOf } from "./operation.ts";
import { ReserveFile } from "./reserve-file.ts";
import { BESIDE, insertRows, prepareSchema, type RawRow, readFormat, type Table } from "./schema.ts";
import { SqliteStore } from "./store.ts";
import { Witness } from "./witness.ts";

export interface SessionOptions {
  readonly directory: string;
  /** Path of the witness; undefined if there is none. */
  readonly witness: string | undefined;
  readonly bootId: string;
  readonly nowMs: number;
  readonly lockWaitMs: number;
  readonly cooldowns: Cooldowns;
  /** Use {@link SqliteJournal}. The API server has the rows, too, so a loss is repaired from there. */
  readonly isJournal: boolean;
  readonly faultPlan: FaultPlan | undefined;
  readonly faultCounter: SharedArrayBuffer;
}

interface SessionEvents {
  readonly onWaiting: (holder: string) => void;
  /** Reports a loss of the files, or at the start, that is repaired without an administrator. */
  readonly onNotice: (text: string) => void;
  /** Reports that a journal in use has lost rows, before the replies to the calls that found it. */
  readonly onRowsLost: (text: string) => void;
}

/** An open database with its store. Replaced if the file is damaged or gone. */
interface Open {
  readonly database: DatabaseSync;
  readonly store: SqliteStore;
  readonly batch: SqliteBatch;
}

export class SqliteSession {
  readonly #options: SessionOptions;
  readonly #events: SessionEvents;
  readonly #lock: LockOptions;
  readonly #files: DatabaseFiles;
  readonly #reserve: ReserveFile;
  readonly #witness: Witness | undefined;
  readonly #faults: Faults;
  #open: Open;

  /** Opens the database. Throws RegistryError if that is impossible. */
  constructor(options: SessionOptions, events: SessionEvents) {
    const { directory, bootId, lockWaitMs, witness } = options;
    this.#options = options;
    this.#events = events;
    this.#lock = { directory, bootId, lockWaitMs, onWaiting: events.onWaiting };
    this.#files = new DatabaseFiles(directory);
    this.#reserve = new ReserveFile(join(directory, "reserve"));
    this.#witness = witness === undefined ? undefined : new Witness(witness, bootId);
    this.#faults = openFaults(options.faultPlan, options.faultCounter);
    this.#open = this.#openFirst();
    this.#files.remember();
  }

  /** Why claims are refused, a sentence; undefined if they are served. */
  get loss(): string | undefined {
    const { loss } = this.#open.store.identity;
    const refusal =
      'Addresses of running pods may be missing, so no address is allocated until you run "berthctl recover"';
    return loss && `${loss}. ${refusal}`;
  }

  /** Returns a reply to each call: the refused ones first, then the others in order. */
  run(calls: readonly CallMessage[]): Reply[] {
    const writes = calls.some(({ method }) => !onlyReads(method));
    const found = writes ? this.#checkFiles() : undefined;
    if (calls.some(({ method }) => method === "recover")) this.#replaceUnusable();
    // Before the probe: its commit is then the one that restarts the log and waits for an fsync.
    if (calls.some(({ method }) => method === "probe")) this.#open.batch.checkpointIfQuiet();
    // Later claims find that rows are missing.
    const loss = this.loss ?? found;
    const isServed = ({ method }: CallMessage): boolean => loss === undefined || method !== "claim";
    const refused = calls.filter((call) => !isServed(call)).map(({ id }) => refusal(id, loss ?? ""));
    const replies = this.#open.batch.run(calls.filter(isServed).map((call) => this.#operationOf(call)));
    const damage = replies.find((reply) => "error" in reply && reply.error.isDamage);
    if (damage !== undefined && "error" in damage) this.#lose(damage.error.message);
    if (calls.some(({ method }) => method === "expire")) this.#reserve.ensure();
    // After a mere lookup, other processes' changes of the files would be taken for this process's own.
    if (writes) this.#files.remember();
    return [...refused, ...replies];
  }

  close(): void {
    this.#open.database.close();
    this.#witness?.close();
  }

  #operationOf(call: CallMessage): Operation {
    if (call.method !== "probe") return operationOf(call);
    const { identity } = this.#open.store;
    return {
      id: call.id,
      recordsRelease: false,
      run: () => {
        identity.probe(call.args[0] === true);
        this.#witness?.ensure(this.#open.store.point);
        return this.loss;
      },
    };
  }

  /** Notices other processes' changes of the files since the last group. Returns them, a clause, if rows are lost. */
  #checkFiles(): string | undefined {
    const loss = this.#open.store.identity.loss === undefined ? this.#files.findLoss() : undefined;
    return loss !== undefined && this.#lose(loss, false) ? loss : undefined;
  }

  /** Returns whether rows are lost. The table of a damaged file may have fewer than it had, and say nothing. */
  #lose(reason: string, isDamaged = true): boolean {
    if (!this.#options.isJournal) {
      this.#open.store.identity.lose(reason);
      return true;
    }
    const { rows, areAll } = this.#replace();
    if (areAll && !isDamaged) {
      this.#events.onNotice(`${reason}; the file is created again with all its rows`);
      return false;
    }
    const text = `the file is created again with the ${rows.length} rows that can be read, and missing ones are restored`;
    this.#events.onRowsLost(`${reason}; ${text} from the API server`);
    return true;
  }

  /** Precedes a recovery: the database that is still open may have rows that exist nowhere else. */
  #replaceUnusable(): void {
    const isDamaged = tryOr(() => findDamage(this.#open.database) !== undefined, true);
    if (isDamaged || this.#files.findLoss() !== undefined) this.#replace();
  }

  /** Creates a new database with all rows that can still be read from the open one, and returns these. */
  #replace(): ReadableRows {
    const found = readRows(this.#open.database);
    const beside = BESIDE.map((table) => ({ table, ...readRows(this.#open.database, table) }));
    const { cooldowns, point } = this.#open.store;
    this.#open.database.close();
    mkdirSync(this.#options.directory, { recursive: true, mode: 0o700 });
    this.#files.setAside();
    this.#open = this.#start(lockDatabase(this.#files.database, this.#lock), point.lastVersion, cooldowns);
    insertRows(this.#open.database, found.rows);
    for (const { rows, table } of beside) insertRows(this.#open.database, rows, table);
    signHolder(this.#lock);
    this.#witness?.ensure(this.#open.store.point);
    this.#files.remember();
    return found;
  }

  /** Opens the database at the start of the agent, and finds out whether rows were lost. */
  #openFirst(): Open {
    const inUse = wasInUse(this.#lock);
    const witness = this.#witness?.read();
    const { database, damage } = this.#lockUndamaged();
    const isNew = readFormat(database) === 0;
    let open = this.#start(database, witness?.lastVersion);
    const { identity } = open.store;
    const found = { file: this.#files.database, isNew, damage, point: identity, witness, wasInUse: inUse };
    const loss = identity.loss === undefined ? findLoss(found) : undefined;
    if (loss !== undefined && this.#options.isJournal) {
      this.#events.onNotice(`${loss}; the rows are restored from the API server`);
      if (!isNew) open = this.#startEmpty(open, witness?.lastVersion);
    } else if (loss !== undefined) {
      identity.lose(loss);
    } else if (damage !== undefined) {
      this.#events.onNotice(
        `Registry ${found.file} was damaged (${damage}) and is created again; it had no rows of this boot`,
      );
    }
    signHolder(this.#lock);
    const { nowMs, cooldowns, isJournal } = this.#options;
    const cool: Operation = {
      ...{ id: 0, recordsRelease: true },
      run: (store) => {
        store.coolDeadBoots(nowMs);
        // The pools of a cluster are not known yet.
        if (!isJournal) store.setCooldowns(cooldowns);
      },
    };
    const [cooled] = open.batch.run([cool]);
    if (cooled !== undefined && "error" in cooled) throw new RegistryError(cooled.error.message);
    this.#witness?.ensure(open.store.point);
    return open;
  }

  /**
   * Rows of an older journal, or of another one, may be of addresses that other pods have by now, also where another
   * boot wrote them.
   */
  #startEmpty({ database }: Open, lastVersion: number | undefined): Open {
    database.close();
    this.#files.setAside();
    return this.#start(lockDatabase(this.#files.database, this.#lock), lastVersion);
  }

  /** Locks the database. A damaged one is set aside, and a new one created. */
  #lockUndamaged(): { database: DatabaseSync; damage?: string } {
    const { database: file } = this.#files;
    let opened: DatabaseSync | undefined;
    let damage: string | undefined;
    try {
      opened = lockDatabase(file, this.#lock);
      damage = findDamage(opened);
      if (damage === undefined) return { database: opened };
      opened.close();
    } catch (error) {
      opened?.close();
      if (!isDamage(error)) throw error;
      damage = messageOf(error);
    }
    this.#files.setAside();
    return { database: lockDatabase(file, this.#lock), damage };
  }

  /** `lastVersion`: of the registry that this node has had since it started. */
  #start(database: DatabaseSync, lastVersion: number | undefined, cooldowns = this.#options.cooldowns): Open {
    const { isJournal, bootId } = this.#options;
    prepareWithReserve(database, this.#reserve);
    const Store = isJournal ? SqliteJournal : SqliteStore;
    const store = new Store(database, { bootId, cooldowns, faults: this.#faults, lastVersion });
    this.#reserve.ensure();
    const batch = new SqliteBatch({
      file: this.#files.database,
      database,
      store,
      reserve: this.#reserve,
      faults: this.#faults,
      witness: this.#witness,
    });
    return { database, store, batch };
  }
}

function findDamage(database: DatabaseSync): string | undefined {
  const text = String(database.prepare("PRAGMA quick_check(1)").get()?.quick_check);
  return text === "ok" ? undefined : text;
}

/** A new format needs a few pages, and an agent that does not start records no DEL (full-disk). */
function prepareWithReserve(database: DatabaseSync, reserve: ReserveFile): void {
  try {
    prepareSchema(database);
  } catch (error) {
    if (!isFull(error) || !reserve.spend()) throw error;
    prepareSchema(database);
  }
}

interface ReadableRows {
  readonly rows: readonly RawRow[];
  readonly areAll: boolean;
}

/** Returns the rows of a table that can be read: those before damaged pages, and those after them. */
export function readRows(database: DatabaseSync, table: Table = "allocation"): ReadableRows {
  const [before, after]: [RawRow[], RawRow[]] = [[], []];
  const sql = (order: string) => `SELECT * FROM ${table} ORDER BY space ${order}, family ${order}, address ${order}`;
  if (readAll(database, sql("ASC"), before)) return { rows: before, areAll: true };
  readAll(database, sql("DESC"), after);
  return { rows: [...before, ...after], areAll: false };
}

/** Adds the rows up to a damaged page to `rows`. Returns whether there was none. */
function readAll(database: DatabaseSync, sql: string, rows: RawRow[]): boolean {
  try {
    for (const row of database.prepare(sql).iterate()) rows.push(row as RawRow);
    return true;
  } catch {
    return false;
  }
}

function refusal(id: number, message: string): { id: number; error: Failure } {
  return { id, error: { message, full: false, isStorage: true, isDamage: false } };
}

interface FoundRegistry {
  /** Path of the database. */
  readonly file: string;
  /** The file was missing or empty. */
  readonly isNew: boolean;
  /** Why the file could not be used, a clause, and so is new; undefined if it could. */
  readonly damage?: string | undefined;
  readonly point: RegistryPoint;
  /** The registry's last commit since the machine started, as recorded outside of it. */
  readonly witness: RegistryPoint | undefined;
  /** An agent has used the directory since the machine started. */
  readonly wasInUse: boolean;
}

/**
 * Returns the loss as a sentence; undefined if nothing is lost: the registry is complete, nothing was ever recorded,
 * or the sandboxes it knew died with the last boot.
 */
export function findLoss({ file, isNew, damage, point, witness, wasInUse }: FoundRegistry): string | undefined {
  if (witness === undefined ? !wasInUse : witness.generation === 0) return undefined;
  if (damage !== undefined) return `Registry ${file} was damaged (${damage}) and has been set aside as ${file}.damaged`;
  if (isNew) return `Registry ${file} was missing or empty, although this node has used one since it started`;
  if (witness === undefined) return undefined;
  if (witness.id !== point.id) return `Registry ${file} is not the one that this node has used since it started`;
  if (point.generation >= witness.generation) return undefined;
  const lost = witness.generation - point.generation;
  return `Registry ${file} is older than the one that this node has used since it started: the last ${lost} commits are missing`;
}
