/**
 * What can be asked of the registry's table, as statements on one SQLite database.
 * Effects: reads the database.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { invariant } from "../../lib/invariant.ts";
import type { Ip } from "../../net/ip.ts";
import { PackedAddresses } from "../packed-addresses.ts";
import type { AddressSpan, Allocation, Attachment, ListCursor, QuarantineQuery, UsageCount } from "../registry.ts";
import { decodeRow, encodeAddress, type Row } from "./schema.ts";

/** The primary key; {@link keyOf} gives its values. */
export const KEY = "space = ? AND family = ? AND address = ?";

/** The questions of `Registry`, synchronous. */
export class SqliteReader {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  findAttachment({ containerId, ifName, network }: Attachment): readonly Allocation[] {
    if (containerId === "") return [];
    const found = this.all("container = ? AND interface = ? AND container <> ''", containerId, ifName);
    return network === undefined ? found : found.filter((each) => each.network === network);
  }

  findAddress(space: string, ip: Ip): Allocation | undefined {
    return this.all(KEY, ...keyOf(space, ip))[0];
  }

  findOwner(owner: string): readonly Allocation[] {
    return this.all("owner = ?", owner);
  }

  /** Walks the cooling addresses only, the longest released first: of a full /12 they are few. */
  findCooling(spans: readonly AddressSpan[], limit: number): readonly Allocation[] {
    const [first] = spans;
    if (first === undefined) return [];
    const { space, family } = first;
    invariant(
      spans.every((span) => span.space === space && span.family === family),
      "The spans of a pool are of one kind",
    );
    const where = "state = 'Cooling' AND space = ? AND family = ? ORDER BY since";
    const found: Allocation[] = [];
    for (const row of this.prepare(`SELECT * FROM allocation INDEXED BY released WHERE ${where}`).iterate(
      space,
      family,
    )) {
      const allocation = decodeRow(row as Row);
      const { value } = allocation.ip;
      if (spans.some((span) => span.first <= value && value <= span.last) && found.push(allocation) === limit) break;
    }
    return found;
  }

  /** Walks the quarantined addresses only. */
  findQuarantined({ limit, dueMs = Number.MAX_SAFE_INTEGER, ...wanted }: QuarantineQuery): readonly Allocation[] {
    const where = "state = 'Quarantined' AND probe_at <= ? ORDER BY probe_at";
    const found: Allocation[] = [];
    for (const row of this.prepare(`SELECT * FROM allocation INDEXED BY quarantined WHERE ${where}`).iterate(dueMs)) {
      const allocation = decodeRow(row as Row);
      if (isWanted(allocation, wanted) && found.push(allocation) === limit) break;
    }
    return found;
  }

  readUsed(span: AddressSpan): Uint8Array {
    const statement = this.prepare(
      "SELECT address FROM allocation WHERE space = ? AND family = ? AND address BETWEEN ? AND ?",
    );
    const packed = new PackedAddresses(span.family === 4 ? 4 : 16);
    for (const row of statement.iterate(...spanOf(span))) packed.push(row.address as Uint8Array);
    return packed.take();
  }

  countUsage(): readonly UsageCount[] {
    return this.prepare("SELECT pool, state, count(*) AS count FROM allocation GROUP BY pool, state")
      .all()
      .map((row) => ({
        pool: String(row.pool),
        state: row.state as UsageCount["state"],
        count: Number(row.count),
      }));
  }

  /** Everywhere, of all pools. */
  countCooling(): number {
    return Number(this.prepare("SELECT count(*) AS n FROM allocation WHERE state = 'Cooling'").get()?.n);
  }

  list(after: ListCursor | undefined, limit: number): readonly Allocation[] {
    const order = "ORDER BY space, family, address LIMIT ?";
    if (after === undefined) return this.all(`true ${order}`, limit);
    return this.all(`(space, family, address) > (?, ?, ?) ${order}`, ...keyOf(after.space, after.ip), limit);
  }

  protected all(where: string, ...values: SqlValue[]): Allocation[] {
    const rows = this.prepare(`SELECT * FROM allocation WHERE ${where}`).all(...values);
    return rows.map((row) => decodeRow(row as Row));
  }

  protected prepare(sql: string): StatementSync {
    const prepared = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, prepared);
    invariant(this.#statements.size < 64, "Statements are built from constants, never from values");
    return prepared;
  }
}

export type SqlValue = string | number | Uint8Array;

export function keyOf(space: string, ip: Ip): [string, number, Uint8Array] {
  return [space, ip.family, encodeAddress(ip)];
}

function isWanted(
  { sinceMs, pool, quarantine, space, ip }: Allocation,
  wanted: Pick<QuarantineQuery, "untilMs" | "pool" | "mac" | "spans">,
): boolean {
  if (wanted.untilMs !== undefined && sinceMs > wanted.untilMs) return false;
  if (wanted.pool !== undefined && pool !== wanted.pool) return false;
  if (wanted.mac !== undefined && quarantine?.mac !== wanted.mac) return false;
  const holds = (span: AddressSpan): boolean =>
    span.space === space && span.family === ip.family && span.first <= ip.value && ip.value <= span.last;
  return wanted.spans?.some(holds) ?? true;
}

function spanOf({ space, family, first, last }: AddressSpan): [string, number, Uint8Array, Uint8Array] {
  return [space, family, encodeAddress({ family, value: first }), encodeAddress({ family, value: last })];
}
