/**
 * What the registry's operations mean, as statements on one SQLite database, each within the caller's transaction.
 * Called by sqlite-batch.ts, which groups operations, commits and survives a full disk.
 * Effects: reads and writes the database.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Faults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import type { Ip } from "../net/ip.ts";
import type {
  AddressSpan,
  Allocation,
  Attachment,
  Claim,
  ClaimOutcome,
  Cooldowns,
  ListCursor,
  Proposal,
  UsageCount,
} from "./registry.ts";
import { decodeRow, encodeAddress, type Row } from "./sqlite-schema.ts";

/** An address that a transaction made free. */
export interface Freed {
  readonly space: string;
  readonly ip: Ip;
}

const KEY = "space = ? AND family = ? AND address = ?";
const INSERT = `INSERT INTO allocation
  (space, family, address, length, pool, state, owner, interface, container, network, namespace, pod, boot, since, free_at, version)
  VALUES (?, ?, ?, ?, ?, 'Bound', ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`;

/** The operations of `Registry`, synchronous, with the time as an argument. All run inside a transaction. */
export class SqliteStore {
  readonly #database: DatabaseSync;
  readonly #faults: Faults;
  readonly #bootId: string;
  readonly #statements = new Map<string, StatementSync>();
  #cooldowns: Cooldowns;
  #freed: Freed[] = [];
  #hasWritten = false;
  /** Versions are never used twice, even for an address that was freed in between: undo relies on it. */
  #lastVersion: number;

  constructor(database: DatabaseSync, options: { bootId: string; cooldowns: Cooldowns; faults: Faults }) {
    this.#database = database;
    this.#faults = options.faults;
    this.#bootId = options.bootId;
    this.#cooldowns = options.cooldowns;
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

  setCooldowns(cooldowns: Cooldowns): void {
    this.#cooldowns = cooldowns;
  }

  /** Allocation rule 13: what another boot left behind is dead, and its times mean nothing now. */
  coolDeadBoots(nowMs: number): number {
    const dead = this.#all("boot <> ? AND state IN ('Bound', 'Cooling')", this.#bootId);
    for (const allocation of dead) this.#cool(allocation, nowMs);
    return dead.length;
  }

  claim(claim: Claim, nowMs: number): ClaimOutcome {
    const own = this.findOwner(claim.owner);
    const held = own.filter((allocation) => allocation.ifName === claim.ifName && allocation.state === "Bound");
    if (held.length > 0) {
      return { kind: "bound", held: held.map((allocation) => this.#attach(allocation, claim, nowMs)), created: [] };
    }
    const cooling = own.filter((allocation) => allocation.ifName === claim.ifName && allocation.state === "Cooling");
    const offered = new Set(claim.proposals.map((proposal) => proposal.replaces));
    if (!claim.forsakeCooling && cooling.some((allocation) => !offered.has(allocation.version))) {
      return { kind: "cooling", own: cooling };
    }
    const bound = new Set(own.filter(({ state }) => state === "Bound").map(({ ifName }) => ifName));
    return this.#create(claim, claim.proposals.filter(({ ifName }) => !bound.has(ifName)), nowMs); // biome-ignore format: one thought
  }

  undo(created: readonly Allocation[]): void {
    for (const { space, ip, version } of created) {
      const changes = this.#write(`DELETE FROM allocation WHERE ${KEY} AND version = ?`, ...keyOf(space, ip), version);
      if (changes > 0) this.#freed.push({ space, ip });
    }
  }

  release(attachment: Attachment, nowMs: number): readonly Allocation[] {
    const bound = this.findAttachment(attachment).filter(({ state }) => state === "Bound");
    return this.#release(bound, nowMs);
  }

  releaseOthers(network: string, valid: readonly Attachment[], beforeMs: number, nowMs: number): readonly Allocation[] {
    const alive = new Set(valid.map(({ containerId, ifName }) => `${containerId}/${ifName}`));
    const old = this.#all("state = 'Bound' AND network = ? AND container <> '' AND since < ?", network, beforeMs);
    return this.#release(old.filter(({ containerId, ifName }) => !alive.has(`${containerId}/${ifName}`)), nowMs); // biome-ignore format: one thought
  }

  releaseUnattached(beforeMs: number): readonly Allocation[] {
    const stale = this.#all("state = 'Bound' AND container = '' AND since < ?", beforeMs);
    for (const allocation of stale) this.#free(allocation);
    return stale;
  }

  expire(nowMs: number): number {
    const due = this.#all("state = 'Cooling' AND free_at <= ?", nowMs);
    for (const allocation of due) this.#free(allocation);
    const left = this.#prepare("SELECT count(*) AS n FROM allocation WHERE state = 'Cooling'").get();
    return Number(left?.n);
  }

  findAttachment({ containerId, ifName }: Attachment): readonly Allocation[] {
    if (containerId === "") return [];
    return this.#all("container = ? AND interface = ? AND container <> ''", containerId, ifName);
  }

  findAddress(space: string, ip: Ip): Allocation | undefined {
    return this.#all(KEY, ...keyOf(space, ip))[0];
  }

  findOwner(owner: string): readonly Allocation[] {
    return this.#all("owner = ?", owner);
  }

  findCooling(spans: readonly AddressSpan[], limit: number): readonly Allocation[] {
    const where = "space = ? AND family = ? AND address BETWEEN ? AND ? AND state = 'Cooling' ORDER BY since LIMIT ?";
    const found = spans.flatMap((span) => this.#all(where, ...spanOf(span), limit));
    return found.sort((a, b) => a.sinceMs - b.sinceMs).slice(0, limit);
  }

  readUsed(span: AddressSpan): Uint8Array {
    const statement = this.#prepare(
      "SELECT address FROM allocation WHERE space = ? AND family = ? AND address BETWEEN ? AND ?",
    );
    const packed = new PackedAddresses(span.family === 4 ? 4 : 16);
    for (const row of statement.iterate(...spanOf(span))) packed.push(row.address as Uint8Array);
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
    if (after === undefined) return this.#all(`true ${order}`, limit);
    return this.#all(`(space, family, address) > (?, ?, ?) ${order}`, ...keyOf(after.space, after.ip), limit);
  }

  #create(claim: Claim, proposals: readonly Proposal[], nowMs: number): ClaimOutcome {
    const inTheWay = proposals.map((proposal) => this.findAddress(proposal.space, proposal.ip));
    const taken = inTheWay.filter(
      (found, index) =>
        found !== undefined && !(found.state === "Cooling" && found.version === proposals[index]?.replaces),
    );
    if (taken.length > 0) return { kind: "taken", by: taken.filter((found) => found !== undefined) };
    const created = proposals.map((proposal, index) => this.#bind(proposal, inTheWay[index], claim, nowMs));
    return { kind: "bound", held: created.filter(({ ifName }) => ifName === claim.ifName), created };
  }

  #bind(proposal: Proposal, cooling: Allocation | undefined, claim: Claim, nowMs: number): Allocation {
    const attached = proposal.ifName === claim.ifName;
    const { space, ip, prefixLength, pool, ifName } = proposal;
    const { owner, namespace, pod } = claim;
    const version = ++this.#lastVersion;
    const containerId = attached ? claim.containerId : "";
    const network = attached ? claim.network : "";
    if (cooling !== undefined) this.#write(`DELETE FROM allocation WHERE ${KEY}`, ...keyOf(space, ip));
    this.#write(INSERT, ...keyOf(space, ip), prefixLength, pool, owner, ifName, containerId, network, namespace, pod, this.#bootId, nowMs, version); // biome-ignore format: in the order of the table
    return { space, ip, prefixLength, pool, state: "Bound", owner, ifName, containerId, network, namespace, pod, sinceMs: nowMs, version }; // biome-ignore format: in the order of the table
  }

  /** A new sandbox of the same pod keeps the address; the old sandbox's late DEL then finds nothing (rule 1). */
  #attach(allocation: Allocation, claim: Claim, nowMs: number): Allocation {
    const { containerId, network } = claim;
    if (allocation.containerId === containerId && allocation.network === network) return allocation;
    const version = ++this.#lastVersion;
    this.#write(
      `UPDATE allocation SET container = ?, network = ?, since = ?, version = ? WHERE ${KEY}`,
      containerId,
      network,
      nowMs,
      version,
      ...keyOf(allocation.space, allocation.ip),
    );
    return { ...allocation, containerId, network, sinceMs: nowMs, version };
  }

  #release(bound: readonly Allocation[], nowMs: number): readonly Allocation[] {
    for (const allocation of bound) this.#cool(allocation, nowMs);
    const orphans = [...new Set(bound.map(({ owner }) => owner))].flatMap((owner) => this.#unattachedOf(owner));
    for (const allocation of orphans) this.#free(allocation);
    return [...bound, ...orphans];
  }

  /** Rule 17: addresses claimed together with other NICs and never attached, once no NIC of the owner is left. */
  #unattachedOf(owner: string): readonly Allocation[] {
    const bound = this.findOwner(owner).filter(({ state }) => state === "Bound");
    return bound.some(({ containerId }) => containerId !== "") ? [] : bound;
  }

  #cool(allocation: Allocation, nowMs: number): void {
    const cooldownMs = this.#cooldowns.byPool.get(allocation.pool) ?? this.#cooldowns.defaultMs;
    this.#write(
      `UPDATE allocation SET state = 'Cooling', boot = ?, since = ?, free_at = ?, version = ? WHERE ${KEY}`,
      this.#bootId,
      nowMs,
      nowMs + cooldownMs,
      ++this.#lastVersion,
      ...keyOf(allocation.space, allocation.ip),
    );
  }

  #free({ space, ip }: Freed): void {
    this.#write(`DELETE FROM allocation WHERE ${KEY}`, ...keyOf(space, ip));
    this.#freed.push({ space, ip });
  }

  #all(where: string, ...values: SqlValue[]): Allocation[] {
    const rows = this.#prepare(`SELECT * FROM allocation WHERE ${where}`).all(...values);
    return rows.map((row) => decodeRow(row as Row));
  }

  #write(sql: string, ...values: SqlValue[]): number {
    this.#faults("registry.write");
    this.#hasWritten = true;
    return Number(this.#prepare(sql).run(...values).changes);
  }

  #prepare(sql: string): StatementSync {
    const prepared = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, prepared);
    invariant(this.#statements.size < 64, "Statements are built from constants, never from values");
    return prepared;
  }
}

/** Grows by doubling: a million addresses are four megabytes here and would be two hundred as rows. */
class PackedAddresses {
  readonly #width: number;
  #bytes = new Uint8Array(1024);
  #length = 0;

  constructor(width: number) {
    this.#width = width;
  }

  push(address: Uint8Array): void {
    if (this.#length + this.#width > this.#bytes.length) {
      const grown = new Uint8Array(this.#bytes.length * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(address, this.#length);
    this.#length += this.#width;
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }
}

type SqlValue = string | number | Uint8Array;

function keyOf(space: string, ip: Ip): [string, number, Uint8Array] {
  return [space, ip.family, encodeAddress(ip)];
}

function spanOf({ space, family, first, last }: AddressSpan): [string, number, Uint8Array, Uint8Array] {
  return [space, family, encodeAddress({ family, value: first }), encodeAddress({ family, value: last })];
}
