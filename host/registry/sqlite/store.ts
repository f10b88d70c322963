/**
 * The operations of `Registry` as statements on one SQLite database: synchronous, with the time as an argument. The
 * caller opens and commits the transaction that each of them runs in.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Proposal } from "../../ipam/pick.ts";
import type { Faults } from "../../lib/fault.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Ip } from "../../net/ip.ts";
import type { Workload } from "../../resources/member.ts";
import { decodeAddress, encodeAddress, PackedAddresses } from "../address-bytes.ts";
import { planClaim, rowOf } from "../claims.ts";
import {
  type AddressSpan,
  type Allocation,
  type Attachment,
  type Claim,
  type ClaimOutcome,
  type Cooldowns,
  cooldownOf,
  isInSpan,
  type ListCursor,
  type Quarantine,
  type QuarantineQuery,
  type Recovered,
  UNATTACHED_MS,
  type UsageCount,
} from "../registry.ts";
import { type RegistryPoint, SqliteIdentity } from "./identity.ts";
import { COLUMNS, decodeRow, encodeWorkload, type Row } from "./schema.ts";

/** Most addresses of another boot that start to cool in one transaction: the small heap holds them all. */
export const MAX_AT_ONCE = 4_096;

/** Most addresses that become free in one transaction. A claim may have to wait for that transaction. */
const MAX_FREED_AT_ONCE = 64;

/** The primary key; {@link keyOf} gives its values. */
const KEY = "space = ? AND family = ? AND address = ?";

/** The row as it was read: every write gives it another version. */
export const UNCHANGED = `${KEY} AND version = ?`;

const INSERT = `INSERT INTO allocation
  (space, family, address, length, pool, state, owner, interface, container, network, namespace, pod, netns, mac, routers, workload, boot, since, free_at, version)
  VALUES (?, ?, ?, ?, ?, 'Bound', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/**
 * Leaves free_at and the facts about a conflict unchanged: an undo lets the address cool for the rest of its time, or
 * puts it back into quarantine.
 */
const TAKE_OVER = `UPDATE allocation SET length = ?, pool = ?, state = 'Bound', owner = ?, interface = ?, container = ?,
  network = ?, namespace = ?, pod = ?, netns = ?, mac = ?, routers = ?, workload = ?, boot = ?, since = ?, version = ?, confirmed = 0 WHERE ${UNCHANGED}`;

const INSERT_COOKIE =
  "INSERT OR REPLACE INTO netns (space, family, address, version, boot, cookie) VALUES (?, ?, ?, ?, ?, ?)";

/**
 * Not `container = ?`: SQLite would compare the value with that of a partial index (`unattached`), and prepare the
 * statement anew for each value (sqlite3VdbeSetVarmask).
 */
const OF_ATTACHMENT = "container BETWEEN ?1 AND ?1 AND interface = ?2 AND container <> ''";

const EXPIRE = `DELETE FROM allocation WHERE (space, family, address) IN
  (SELECT space, family, address FROM allocation WHERE state = 'Cooling' AND free_at <= ? ORDER BY free_at LIMIT ?)
  RETURNING space, address`;

/** The cooldowns in force. An address that never was on a NIC has none: it was due at once. */
const COOLING_TIMES = `SELECT DISTINCT pool, free_at - since AS rest FROM allocation
  WHERE state = 'Cooling' AND boot = ? AND free_at > since`;
const FOLLOW_POOL = `UPDATE allocation SET free_at = since + ?
  WHERE state = 'Cooling' AND pool = ? AND boot = ? AND free_at - since = ?`;

/** A quarantined row lacks its last owner. Its free_at is in the past, so that an undo does not let it cool. */
const NO_OWNER = `owner = '', interface = '', container = '', network = '', namespace = '', pod = '', netns = '', mac = '',
  workload = '', free_at = 0`;

interface StoreOptions {
  readonly bootId: string;
  readonly faults: Faults;
  readonly cooldowns: Cooldowns;
  /** The last version of a registry that this one replaces. Default: there was none. */
  readonly lastVersion?: number | undefined;
}

/** An address that a transaction made free. */
export interface Freed {
  readonly space: string;
  readonly ip: Ip;
}

interface QuarantineCall {
  readonly allocation: Allocation;
  readonly quarantine: Quarantine;
  readonly created: readonly Allocation[];
}

type SqlValue = string | number | Uint8Array | null;

export class SqliteStore {
  readonly identity: SqliteIdentity;
  protected readonly bootId: string;
  readonly #database: DatabaseSync;
  readonly #faults: Faults;
  readonly #statements = new Map<string, StatementSync>();
  cooldowns: Cooldowns;
  #freed: Freed[] = [];
  #hasWritten = false;
  /** Versions are never reused, even if an address was freed or its row lost in between: undo relies on it. */
  #lastVersion: number;

  constructor(database: DatabaseSync, { bootId, faults, cooldowns, lastVersion = 0 }: StoreOptions) {
    this.#database = database;
    this.#faults = faults;
    this.cooldowns = cooldowns;
    this.bootId = bootId;
    this.identity = new SqliteIdentity(database, bootId);
    const found = Number(database.prepare("SELECT max(version) AS last FROM allocation").get()?.last ?? 0);
    this.#lastVersion = Math.max(lastVersion, found);
  }

  get point(): Required<RegistryPoint> {
    const { id, generation } = this.identity;
    return { id, generation, lastVersion: this.#lastVersion };
  }

  /** Returns the addresses freed since the last call. */
  takeFreed(): Freed[] {
    const freed = this.#freed;
    this.#freed = [];
    return freed;
  }

  /** Returns whether anything was written since the last call. */
  takeWritten(): boolean {
    const written = this.#hasWritten;
    this.#hasWritten = false;
    return written;
  }

  /** Addresses that cool already follow their pool: an agent may learn of a pool only after a DEL. */
  setCooldowns(cooldowns: Cooldowns): void {
    this.cooldowns = cooldowns;
    for (const { pool, rest } of this.#prepare(COOLING_TIMES).all(this.bootId)) {
      const cooldownMs = this.#cooldownMs(String(pool));
      if (Number(rest) !== cooldownMs) this.write(FOLLOW_POOL, cooldownMs, String(pool), this.bootId, Number(rest));
    }
  }

  findAttachment({ containerId, ifName, network }: Attachment): readonly Allocation[] {
    if (containerId === "") return [];
    const found = this.select(OF_ATTACHMENT, containerId, ifName);
    // An adopted row names no network: whichever detaches the NIC ends it.
    return network === undefined ? found : found.filter((each) => each.network === network || each.network === "");
  }

  findAddress(space: string, ip: Ip): Allocation | undefined {
    return this.select(KEY, ...keyOf(space, ip))[0];
  }

  findOwner(owner: string): readonly Allocation[] {
    return this.select("owner = ?", owner);
  }

  /** Reads cooling rows only, the longest released first: in a full /12 they are few. */
  findCooling(spans: readonly AddressSpan[], limit: number): readonly Allocation[] {
    const [first] = spans;
    if (first === undefined) return [];
    const { space, family } = first;
    invariant(
      spans.every((span) => span.space === space && span.family === family),
      "The spans of a pool are of one space and family",
    );
    const rows = this.#prepare(`SELECT ${COLUMNS} FROM allocation INDEXED BY released
      WHERE state = 'Cooling' AND space = ? AND family = ? ORDER BY since`).iterate(space, family);
    return firstOf(rows, limit, ({ ip: { value } }) => spans.some((span) => span.first <= value && value <= span.last));
  }

  /** Reads quarantined rows only. */
  findQuarantined(query: QuarantineQuery): readonly Allocation[] {
    const rows = this.#prepare(`SELECT ${COLUMNS} FROM allocation INDEXED BY quarantined
      WHERE state = 'Quarantined' AND probe_at <= ? ORDER BY probe_at`).iterate(query.dueMs ?? Number.MAX_SAFE_INTEGER);
    return firstOf(rows, query.limit, (allocation) => matches(allocation, query));
  }

  readUsed({ space, family, first, last }: AddressSpan): Uint8Array {
    const statement = this.#prepare(
      "SELECT address FROM allocation WHERE space = ? AND family = ? AND address BETWEEN ? AND ?",
    );
    const [low, high] = [encodeAddress({ family, value: first }), encodeAddress({ family, value: last })];
    const packed = new PackedAddresses(family);
    for (const row of statement.iterate(space, family, low, high)) packed.push(row.address as Uint8Array);
    return packed.take();
  }

  countUsage(): readonly UsageCount[] {
    return this.#prepare("SELECT pool, state, count(*) AS count FROM allocation GROUP BY pool, state")
      .all()
      .map((row) => ({
        pool: String(row.pool),
        state: row.state as UsageCount["state"],
        count: Number(row.count),
      }));
  }

  list(after: ListCursor | undefined, limit: number): readonly Allocation[] {
    const order = "ORDER BY space, family, address LIMIT ?";
    if (after === undefined) return this.select(`true ${order}`, limit);
    return this.select(`(space, family, address) > (?, ?, ?) ${order}`, ...keyOf(after.space, after.ip), limit);
  }

  claim(claim: Claim, nowMs: number): ClaimOutcome {
    const plan = planClaim(claim, this.findOwner(claim.owner), ({ space, ip }) => this.findAddress(space, ip));
    if (plan.kind !== "write") return plan;
    const { needed, wanted, unwanted } = plan;
    const created = needed.map(({ proposal, idle }) => this.#bind(proposal, idle, claim, nowMs));
    this.undo(unwanted, nowMs);
    const isAhead = claim.containerId === "";
    const attached = claim.partial || isAhead ? wanted : wanted.map((each) => this.#attach(each, claim, nowMs));
    const isMoved = ({ containerId }: Allocation): boolean => containerId !== "" && containerId !== claim.containerId;
    const moved = isAhead ? [] : wanted.filter(isMoved);
    const isOfNic = ({ ifName }: Pick<Allocation, "ifName">): boolean => ifName === claim.ifName;
    const cooling = needed.flatMap(({ proposal, idle }) =>
      idle?.state === "Cooling" && isOfNic(proposal) ? [idle] : [],
    );
    return {
      kind: "bound",
      held: [...attached, ...created.filter(isOfNic)],
      created,
      previous: [...moved, ...cooling],
    };
  }

  /**
   * Restores claimed addresses, if the rows are unchanged: one that was cooling cools for the rest of its time, the
   * others are dropped.
   */
  undo(created: readonly Allocation[], nowMs: number): void {
    for (const allocation of created) this.#undo(allocation, nowMs);
  }

  release(attachment: Attachment, nowMs: number): readonly Allocation[] {
    const bound = this.findAttachment(attachment).filter(({ state }) => state === "Bound");
    for (const allocation of bound) this.cool(allocation, nowMs);
    const unattached = [...new Set(bound.map(({ owner }) => owner))].flatMap((owner) => this.#unattachedOf(owner));
    this.undo(unattached, nowMs);
    return [...bound, ...unattached];
  }

  /**
   * Frees up to MAX_FREED_AT_ONCE addresses whose cooldown is over. Returns whether more may be due, so that waiting
   * claims go first.
   */
  expire(nowMs: number): boolean {
    this.undoUnattached(nowMs);
    const rows = this.#prepare(EXPIRE).all(nowMs, MAX_FREED_AT_ONCE);
    if (rows.length > 0) this.#noteWrite();
    for (const row of rows)
      this.#freed.push({ space: String(row.space), ip: decodeAddress(row.address as Uint8Array) });
    return rows.length === MAX_FREED_AT_ONCE;
  }

  /** Rows of another boot belong to dead pods or to quarantine, and their times mean nothing now (clocks-and-boots). */
  coolDeadBoots(nowMs: number): void {
    const where = "boot <> ? AND state <> 'Kept' AND (space, family, address) > (?, ?, ?)";
    let after: [string, number, Uint8Array] = ["", 0, new Uint8Array()];
    for (;;) {
      const page = this.select(`${where} ORDER BY space, family, address LIMIT ?`, this.bootId, ...after, MAX_AT_ONCE);
      const last = page.at(-1);
      if (last === undefined) return;
      for (const allocation of page) this.cool(allocation, nowMs);
      after = keyOf(last.space, last.ip);
    }
  }

  /** As {@link RecoverableRegistry.recover}. */
  recover(found: readonly Recovered[], gone: readonly Allocation[], nowMs: number): void {
    for (const each of found) {
      const row = this.findAddress(each.space, each.ip);
      if (row !== undefined && row.version !== each.seenVersion) continue;
      this.#writeBound({ ...each, workload: undefined, sinceMs: nowMs, version: this.nextVersion() }, row, 0);
    }
    for (const each of gone) {
      if (this.findAddress(each.space, each.ip)?.version === each.version) this.cool(each, nowMs);
    }
    this.identity.recover();
  }

  collect({ space, ip, version }: Allocation, nowMs: number): Allocation | undefined {
    const row = this.findAddress(space, ip);
    if (row?.version !== version || row.state !== "Bound") return undefined;
    this.cool(row, nowMs);
    return this.findAddress(space, ip);
  }

  quarantineAndUndo({ allocation, quarantine, created }: QuarantineCall, nowMs: number): Allocation | undefined {
    const { space, ip, version } = allocation;
    const { reason, mac = "", parent, nextProbeAtMs } = quarantine;
    const changes = this.write(
      `UPDATE allocation SET state = 'Quarantined', ${NO_OWNER}, reason = ?, foreign_mac = ?, parent = ?, probe_at = ?,
       boot = ?, since = iif(state = 'Bound', ?, since), version = ?
       WHERE ${UNCHANGED} AND state IN ('Bound', 'Quarantined')`,
      ...[reason, mac, parent, nextProbeAtMs, this.bootId, nowMs, this.nextVersion()],
      ...[...keyOf(space, ip), version],
    );
    if (changes === 0) return undefined;
    const quarantined = this.findAddress(space, ip);
    this.undo(created, nowMs);
    return quarantined;
  }

  endQuarantine({ space, ip, version }: Allocation, nowMs: number): Allocation | undefined {
    const changes = this.write(
      `UPDATE allocation SET reason = '', foreign_mac = '', parent = '', probe_at = 0, version = ?
       WHERE ${UNCHANGED} AND state = 'Bound'`,
      ...[this.nextVersion(), ...keyOf(space, ip), version],
    );
    const found = this.findAddress(space, ip);
    if (changes > 0) return found;
    if (found?.version === version && found.state === "Quarantined") this.drop(found, nowMs);
    return undefined;
  }

  protected undoUnattached(nowMs: number): void {
    this.undo(this.select("state = 'Bound' AND container = '' AND since < ?", nowMs - UNATTACHED_MS), nowMs);
  }

  /** Bound → Cooling, or back to quarantine if the address was Bound without having been probed. */
  protected cool(allocation: Allocation, nowMs: number): void {
    if (this.#returnToQuarantine(allocation, nowMs)) return;
    this.write(
      `UPDATE allocation SET state = 'Cooling', boot = ?, since = ?, free_at = ?, version = ? WHERE ${KEY}`,
      ...[this.bootId, nowMs, nowMs + this.#cooldownMs(allocation.pool), this.nextVersion()],
      ...keyOf(allocation.space, allocation.ip),
    );
  }

  /** The address has no use any more: deletes its row if it is unchanged. */
  protected drop(allocation: Allocation, _nowMs: number): void {
    this.delete(allocation);
  }

  /** Returns the address owner in the row of a claim at first. `present`: the replaced row; `nic`: the claim's. */
  protected firstOwner(
    workload: Workload | undefined,
    _present: Allocation | undefined,
    _nic: Pick<Allocation, "owner" | "ifName">,
  ): Workload | undefined {
    return workload;
  }

  /** Records the claim that has written the row over `_idle`, with at least the number; returns the row with it. */
  protected nameClaim(row: Allocation, _idle: Allocation | undefined, _number: number): Allocation {
    return row;
  }

  /** Deletes the row if unchanged. Returns whether it was. `isTaken`: another node has the address: it is not free. */
  protected delete({ space, ip, version }: Allocation, isTaken = false): boolean {
    const changes = this.write(`DELETE FROM allocation WHERE ${UNCHANGED}`, ...keyOf(space, ip), version);
    if (changes > 0 && !isTaken) this.#freed.push({ space, ip });
    return changes > 0;
  }

  protected select(where: string, ...values: SqlValue[]): Allocation[] {
    const rows = this.#prepare(`SELECT ${COLUMNS} FROM allocation WHERE ${where}`).all(...values);
    return rows.map((row) => decodeRow(row as Row));
  }

  protected selectRaw(sql: string): readonly Row[] {
    return this.#prepare(sql).all();
  }

  /** Returns how many rows were changed. */
  protected write(sql: string, ...values: SqlValue[]): number {
    this.#noteWrite();
    return Number(this.#prepare(sql).run(...values).changes);
  }

  protected nextVersion(): number {
    return ++this.#lastVersion;
  }

  #bind(proposal: Proposal, idle: Allocation | undefined, claim: Claim, nowMs: number): Allocation {
    const claimed = rowOf(proposal, claim);
    const workload = this.firstOwner(claimed.workload, idle, claimed);
    const row: BoundRow = { ...claimed, workload, sinceMs: nowMs, version: this.nextVersion() };
    // Another node's pod may have had it until just now.
    const freeAtMs = (proposal.replaces ?? 0) < 0 ? nowMs + this.#cooldownMs(row.pool) : 0;
    this.#writeBound(row, idle, freeAtMs);
    const quarantine = proposal.needsProbe === true ? this.#requireProbe(proposal, nowMs) : idle?.quarantine;
    return this.nameClaim({ ...row, state: "Bound", quarantine, isConfirmed: false }, idle, claim.number ?? 0);
  }

  /** Inserts the row, or writes it over the present one. */
  #writeBound(row: BoundRow, present: Allocation | undefined, freeAtMs: number): void {
    const { prefixLength, pool, owner, ifName, containerId, network, namespace, pod, netns = "", mac = "" } = row;
    const values = [
      ...[prefixLength, pool, owner, ifName, containerId, network, namespace, pod, netns, mac],
      ...[row.routers?.join(" ") ?? null, encodeWorkload(row.workload), this.bootId, row.sinceMs],
    ];
    const key = keyOf(row.space, row.ip);
    if (present === undefined) this.write(INSERT, ...key, ...values, freeAtMs, row.version);
    else {
      const changes = this.write(TAKE_OVER, ...values, row.version, ...key, present.version);
      invariant(changes === 1, "No claim proposes an address twice");
    }
    this.#writeCookie(row);
  }

  #writeCookie({ space, ip, version, netnsCookie }: BoundRow): void {
    if (netnsCookie === undefined) return;
    this.write(INSERT_COOKIE, ...keyOf(space, ip), version, this.bootId, `${netnsCookie}`);
  }

  /**
   * A new sandbox of the same pod gets the address; a late DEL of the old sandbox then finds nothing (late-del). Writes
   * even if nothing is new: a repeated ADD relies on the address, so an undo of the first one must not take it away.
   * The old sandbox's address cools when this ADD is undone.
   */
  #attach(allocation: Allocation, claim: Claim, nowMs: number): Allocation {
    const { containerId, network, netns, netnsCookie, mac } = claim;
    const version = this.nextVersion();
    const isMoved = allocation.containerId !== "" && allocation.containerId !== containerId;
    const freeAtMs = isMoved ? nowMs + this.#cooldownMs(allocation.pool) : 0;
    this.write(
      `UPDATE allocation SET container = ?, network = ?, netns = ?, mac = ?, since = ?, version = ?, free_at = max(free_at, ?)
       WHERE ${KEY}`,
      ...[containerId, network, netns ?? "", mac ?? "", nowMs, version, freeAtMs],
      ...keyOf(allocation.space, allocation.ip),
    );
    const attached = { ...allocation, containerId, network, netns, netnsCookie, mac, sinceMs: nowMs, version };
    this.#writeCookie(attached);
    return attached;
  }

  /** Addresses claimed together with other NICs and never attached, once no NIC of the owner is left (unattached). */
  #unattachedOf(owner: string): readonly Allocation[] {
    const bound = this.findOwner(owner).filter(({ state }) => state === "Bound");
    return bound.some(({ containerId }) => containerId !== "") ? [] : bound;
  }

  #undo(allocation: Allocation, nowMs: number): void {
    if (this.#returnToQuarantine(allocation, nowMs)) return;
    const { space, ip, version } = allocation;
    const coolOn = `UPDATE allocation SET state = 'Cooling', since = ?, version = ? WHERE ${UNCHANGED} AND free_at > ?`;
    if (this.write(coolOn, nowMs, this.nextVersion(), ...keyOf(space, ip), version, nowMs) > 0) return;
    this.drop(allocation, nowMs);
  }

  /**
   * Marks a row that this transaction binds as if it came from quarantine: whatever ends it but {@link endQuarantine}
   * returns it there.
   */
  #requireProbe({ space, ip }: Pick<Allocation, "space" | "ip">, nowMs: number): Quarantine {
    this.write(`UPDATE allocation SET reason = 'Conflict', probe_at = ? WHERE ${KEY}`, nowMs, ...keyOf(space, ip));
    return { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: nowMs };
  }

  /**
   * An address that was in quarantine when it was bound, and was not found silent since, goes back, to be probed at
   * once, as after a reboot. Returns false for any other address.
   */
  #returnToQuarantine({ space, ip, version, quarantine }: Allocation, nowMs: number): boolean {
    if (quarantine === undefined) return false;
    this.write(
      `UPDATE allocation SET state = 'Quarantined', ${NO_OWNER}, probe_at = ?, boot = ?, since = ?, version = ?
       WHERE ${UNCHANGED}`,
      ...[nowMs, this.bootId, nowMs, this.nextVersion(), ...keyOf(space, ip), version],
    );
    return true;
  }

  #cooldownMs(pool: string): number {
    return cooldownOf(pool, this.cooldowns);
  }

  /** Precedes every write: a fault plan strikes here. */
  #noteWrite(): void {
    this.#faults("registry.write");
    this.#hasWritten = true;
  }

  #prepare(sql: string): StatementSync {
    const prepared = this.#statements.getOrInsertComputed(sql, () => this.#database.prepare(sql));
    invariant(this.#statements.size < 64, "Statements are built from constants, never from values");
    return prepared;
  }
}

export function keyOf(space: string, ip: Ip): [string, number, Uint8Array] {
  return [space, ip.family, encodeAddress(ip)];
}

/** The columns of a row that {@link INSERT} and {@link TAKE_OVER} write. */
type BoundRow = Recovered & Pick<Allocation, "workload" | "sinceMs" | "version">;

function firstOf(rows: Iterable<unknown>, limit: number, isWanted: (row: Allocation) => boolean): Allocation[] {
  const found: Allocation[] = [];
  for (const row of rows) {
    const allocation = decodeRow(row as Row);
    if (isWanted(allocation) && found.push(allocation) === limit) break;
  }
  return found;
}

function matches(row: Allocation, { untilMs, pool, mac, spans }: QuarantineQuery): boolean {
  if (untilMs !== undefined && row.sinceMs > untilMs) return false;
  if (pool !== undefined && row.pool !== pool) return false;
  if (mac !== undefined && row.quarantine?.mac !== mac) return false;
  return spans?.some((span) => isInSpan(span, row)) ?? true;
}
