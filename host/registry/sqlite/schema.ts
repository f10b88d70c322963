/** The tables of the registry, and the rows of allocations as values. */

import type { DatabaseSync } from "node:sqlite";
import { type Mac, parseMac } from "../../net/mac.ts";
import type { AllocationState } from "../../resources/ip-allocation.ts";
import type { Workload } from "../../resources/member.ts";
import { decodeAddress } from "../address-bytes.ts";
import { type Allocation, type ClaimName, type Quarantine, RegistryError, UNNAMED } from "../registry.ts";
import { isConstraint } from "./error.ts";

/** Stored in `user_version`. A database of a newer Berth is refused rather than misread. */
const SCHEMA_VERSION = 4;

/* One row per address that is not free. Times are CLOCK_MONOTONIC milliseconds and mean something only together
   with the boot ID: after a reboot no sandbox lives, and no old time can be compared (clocks-and-boots). */
const SCHEMA = `
CREATE TABLE allocation (
  space     TEXT    NOT NULL,
  family    INTEGER NOT NULL CHECK (family IN (4, 6)),
  address   BLOB    NOT NULL CHECK (length(address) = CASE family WHEN 4 THEN 4 ELSE 16 END),
  length    INTEGER NOT NULL,
  pool      TEXT    NOT NULL,
  state     TEXT    NOT NULL CHECK (state IN ('Bound', 'Cooling', 'Kept', 'Quarantined')),
  owner     TEXT    NOT NULL,
  interface TEXT    NOT NULL,
  container TEXT    NOT NULL,
  network   TEXT    NOT NULL,
  namespace TEXT    NOT NULL,
  pod       TEXT    NOT NULL,
  boot      TEXT    NOT NULL,
  since     INTEGER NOT NULL,
  free_at   INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  PRIMARY KEY (space, family, address)
) STRICT, WITHOUT ROWID;
CREATE INDEX by_owner ON allocation (owner);
CREATE INDEX by_container ON allocation (container, interface) WHERE container <> '';
CREATE INDEX unattached ON allocation (since) WHERE container = '' AND state = 'Bound';
CREATE INDEX cooling ON allocation (free_at) WHERE state = 'Cooling';
CREATE INDEX released ON allocation (space, family, since) WHERE state = 'Cooling';
`;

/* Format 2: where the NIC is, and the facts of a conflict. `reason` is empty outside of quarantine. */
const QUARANTINE = `
ALTER TABLE allocation ADD COLUMN netns TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN mac TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN reason TEXT NOT NULL DEFAULT '' CHECK (reason IN ('', 'Conflict'));
ALTER TABLE allocation ADD COLUMN foreign_mac TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN probe_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX quarantined ON allocation (probe_at) WHERE state = 'Quarantined';
`;

/* Format 3, for a cluster's journal: whether the API server is known to have an object; the owner as JSON. */
const CLUSTER = `
ALTER TABLE allocation ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1));
ALTER TABLE allocation ADD COLUMN workload TEXT NOT NULL DEFAULT '';
`;

/*
 * Format 4: the registry's ID, its number of commits, and why it is incomplete. `room` is written to find out whether
 * the disk has room.
 */
const IDENTITY = `
CREATE TABLE identity (
  id         TEXT    NOT NULL,
  generation INTEGER NOT NULL,
  loss       TEXT    NOT NULL,
  loss_boot  TEXT    NOT NULL,
  room       BLOB    NOT NULL
) STRICT;
INSERT INTO identity VALUES (lower(hex(randomblob(16))), 0, '', '', x'');
`;

/* Beside the format: an older release ignores the table. Which address owners were seen. */
const OWNERS = "CREATE TABLE IF NOT EXISTS owner (key TEXT PRIMARY KEY, seen INTEGER NOT NULL) STRICT;";

/* Beside the format as well. The machine that wrote the journal last, and in which boot. */
const MACHINE = `CREATE TABLE IF NOT EXISTS machine
  (only INTEGER PRIMARY KEY CHECK (only = 1), machine TEXT NOT NULL, boot TEXT NOT NULL) STRICT;`;

/** Returns triggers that keep a table's rows beside the allocations while `isSame` holds, and delete them after. */
function followRows(table: string, isSame: string): string {
  return `CREATE TRIGGER IF NOT EXISTS ${table}_follows AFTER UPDATE OF version ON allocation
  WHEN ${isSame}
BEGIN
  UPDATE ${table} SET version = new.version
  WHERE space = new.space AND family = new.family AND address = new.address AND version = old.version;
END;
CREATE TRIGGER IF NOT EXISTS ${table}_ends AFTER DELETE ON allocation
BEGIN
  DELETE FROM ${table} WHERE space = old.space AND family = old.family AND address = old.address;
END;
`;
}

const IS_SAME_ATTACHMENT =
  "old.container = new.container AND old.netns = new.netns AND (old.since = new.since OR new.state <> 'Bound')";

/* Beside a format, which an older Berth shares: the cookie of an attachment's network namespace. It counts only for
 * the row of that version and boot. Rows of an older Berth have another version; a row keeps its cookie while its
 * attachment is the same. */
const NETNS = `
CREATE TABLE IF NOT EXISTS netns (
  space   TEXT    NOT NULL,
  family  INTEGER NOT NULL,
  address BLOB    NOT NULL,
  version INTEGER NOT NULL,
  boot    TEXT    NOT NULL,
  cookie  TEXT    NOT NULL,
  PRIMARY KEY (space, family, address)
) STRICT, WITHOUT ROWID;
${followRows("netns", IS_SAME_ATTACHMENT)}`;

/*
 * Beside the format, too: the claim by which a NIC has the address. It follows its row while that is the same NIC's,
 * whichever Berth writes it. `earlier`: separated by spaces.
 */
const CLAIMS = `
CREATE TABLE IF NOT EXISTS claim (
  space   TEXT    NOT NULL,
  family  INTEGER NOT NULL,
  address BLOB    NOT NULL,
  version INTEGER NOT NULL,
  id      TEXT    NOT NULL,
  number  INTEGER NOT NULL,
  earlier TEXT    NOT NULL,
  PRIMARY KEY (space, family, address)
) STRICT, WITHOUT ROWID;
${followRows("claim", "old.owner = new.owner AND old.interface = new.interface")}`;

/*
 * A column beside the format: the routers of the row's pod, separated by spaces; NULL if they are unknown.
 */
const ROUTERS = "ALTER TABLE allocation ADD COLUMN routers TEXT;";

/** The columns of a row, for {@link decodeRow}. */
export const COLUMNS = `*, (SELECT cookie FROM netns WHERE netns.space = allocation.space
  AND netns.family = allocation.family AND netns.address = allocation.address
  AND netns.version = allocation.version AND netns.boot = allocation.boot) AS cookie,
  (SELECT number || ',' || id || ',' || earlier FROM claim WHERE claim.space = allocation.space
  AND claim.family = allocation.family AND claim.address = allocation.address
  AND claim.version = allocation.version) AS claim`;

export const WRITE_CLAIM =
  "INSERT OR REPLACE INTO claim (space, family, address, version, id, number, earlier) VALUES (?, ?, ?, ?, ?, ?, ?)";

/** The statements that lead from each format to the next. */
const STEPS: readonly string[] = [SCHEMA, QUARANTINE, CLUSTER, IDENTITY];

/** Returns the format of the database, 0 if it is empty. */
export function readFormat(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.user_version);
}

/** Creates the tables, or upgrades an older format, in one transaction. Throws RegistryError for a newer format. */
export function prepareSchema(database: DatabaseSync): void {
  const found = readFormat(database);
  if (found > SCHEMA_VERSION || found < 0) {
    throw new RegistryError(
      `The registry has format ${found}; this version of Berth reads up to format ${SCHEMA_VERSION}. Nothing was changed; start the newer version of Berth again`,
    );
  }
  try {
    const table = database.prepare("SELECT sql FROM sqlite_schema WHERE name = 'allocation'").get();
    const hasRouters = String(table?.sql).includes("routers TEXT");
    const steps = [...STEPS.slice(found), hasRouters ? "" : ROUTERS].join("");
    const format = found === SCHEMA_VERSION ? "" : `PRAGMA user_version = ${SCHEMA_VERSION};`;
    database.exec(`BEGIN; ${steps} ${OWNERS} ${MACHINE} ${NETNS} ${CLAIMS} ${format} COMMIT`);
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** The tables beside the allocations with a row of an address. */
export const BESIDE = ["netns", "claim"] as const;

export type Table = "allocation" | (typeof BESIDE)[number];

/** A row with all its columns, to be copied. */
export type RawRow = Readonly<Record<string, null | number | bigint | string | Uint8Array>>;

/** Adds rows of another database of this format, except impossible ones: a damaged page may look like one. */
export function insertRows(database: DatabaseSync, rows: readonly RawRow[], table: Table = "allocation"): void {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  const places = columns.map(() => "?").join(", ");
  const insert = database.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${places})`);
  database.exec("BEGIN IMMEDIATE");
  for (const row of rows) {
    try {
      insert.run(...columns.map((column) => row[column] ?? null));
    } catch (error) {
      if (!isConstraint(error)) throw error;
    }
  }
  database.exec("COMMIT");
}

/** A row as node:sqlite returns it. */
export type Row = Record<string, unknown>;

export function decodeRow(row: Row): Allocation {
  return {
    space: String(row.space),
    ip: decodeAddress(row.address as Uint8Array),
    prefixLength: Number(row.length),
    pool: String(row.pool),
    routers: typeof row.routers === "string" ? row.routers.split(" ").filter(Boolean) : undefined,
    state: row.state as AllocationState,
    owner: String(row.owner),
    ifName: String(row.interface),
    containerId: String(row.container),
    network: String(row.network),
    namespace: String(row.namespace),
    pod: String(row.pod),
    netns: String(row.netns) || undefined,
    netnsCookie: typeof row.cookie === "string" ? BigInt(row.cookie) : undefined,
    mac: decodeMac(row.mac),
    quarantine: decodeQuarantine(row),
    ...decodeOwner(row),
    isConfirmed: row.confirmed === 1,
    freeAtMs: row.state === "Cooling" ? Number(row.free_at) : undefined,
    sinceMs: Number(row.since),
    version: Number(row.version),
  };
}

function decodeMac(text: unknown): Mac | undefined {
  return parseMac(String(text));
}

/** Returns the stored form: "" if undefined. */
export function encodeWorkload(workload: Workload | undefined): string {
  return workload === undefined ? "" : JSON.stringify(workload);
}

/**
 * An older agent did not write the namespace: it is that of the pod. One without claims has `isFresh` where no ADD was
 * answered with the address.
 */
function decodeOwner(row: Row): Pick<Allocation, "workload" | "claim"> {
  const claim = decodeClaim(row);
  if (row.workload === "") return { workload: undefined, claim };
  const stored: Partial<Workload> & { readonly isFresh?: boolean } = JSON.parse(String(row.workload));
  const { isFresh = false, ...names } = stored;
  const workload = { namespace: String(row.namespace), ...names } as Workload;
  return { workload, claim: claim ?? (isFresh ? { id: UNNAMED, number: 0, earlier: [] } : undefined) };
}

function decodeClaim({ claim }: Row): ClaimName | undefined {
  if (typeof claim !== "string") return undefined;
  const [number = "", id = "", earlier = ""] = claim.split(",");
  return { id, number: Number(number), earlier: earlier === "" ? [] : earlier.split(" ") };
}

function decodeQuarantine({ reason, foreign_mac, parent, probe_at }: Row): Quarantine | undefined {
  if (reason !== "Conflict") return undefined;
  return { reason, mac: decodeMac(foreign_mac), parent: String(parent), nextProbeAtMs: Number(probe_at) };
}
