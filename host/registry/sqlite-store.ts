/**
 * What the registry's operations mean, as statements on one SQLite database, each within the caller's transaction.
 * Called by sqlite-batch.ts, which groups operations, commits and survives a full disk.
 * Effects: reads and writes the database.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Faults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import { equalIp, type Ip } from "../net/ip.ts";
import { MAX_AT_ONCE } from "./limits.ts";
import { PackedAddresses } from "./packed-addresses.ts";
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
/** Leaves free_at as it was: when the address would have been free, for undo. */
const TAKE_OVER = `UPDATE allocation SET length = ?, pool = ?, state = 'Bound', owner = ?, interface = ?, container = ?,
  network = ?, namespace = ?, pod = ?, boot = ?, since = ?, version = ? WHERE ${KEY}`;

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
  coolDeadBoots(nowMs: number): void {
    const where = "boot <> ? AND state IN ('Bound', 'Cooling') AND (space, family, address) > (?, ?, ?)";
    let after: [string, number, Uint8Array] = ["", 0, new Uint8Array()];
    for (;;) {
      const page = this.#all(`${where} ORDER BY space, family, address LIMIT ?`, this.#bootId, ...after, MAX_AT_ONCE);
      const last = page.at(-1);
      if (last === undefined) return;
      for (const allocation of page) this.#cool(allocation, nowMs);
      after = keyOf(last.space, last.ip);
    }
  }

  claim(claim: Claim, nowMs: number): ClaimOutcome {
    const own = this.findOwner(claim.owner);
    const bound = own.filter(({ state }) => state === "Bound");
    const held = bound.filter(({ ifName }) => ifName === claim.ifName);
    const cooling = own.filter(({ state, ifName }) => state === "Cooling" && ifName === claim.ifName);
    const offered = new Set(claim.proposals.map(({ replaces }) => replaces));
    if (held.length === 0 && !claim.forsakeCooling && cooling.some(({ version }) => !offered.has(version))) {
      return { kind: "cooling", own: cooling };
    }
    const unwanted = held.filter((allocation) => isContradicted(allocation, claim));
    const kept = bound.filter((allocation) => !unwanted.includes(allocation));
    const isMissing = ({ ifName, ip }: Proposal): boolean =>
      !kept.some((other) => other.ifName === ifName) || unwanted.some((other) => other.ip.family === ip.family && other.ifName === ifName); // biome-ignore format: one thought
    const outcome = this.#create(claim, claim.proposals.filter(isMissing), nowMs);
    if (outcome.kind !== "bound") return outcome;
    for (const allocation of unwanted) this.#unclaim(allocation, nowMs);
    const attached = held.filter((each) => !unwanted.includes(each)).map((each) => this.#attach(each, claim, nowMs));
    return { ...outcome, held: [...attached, ...outcome.held] };
  }

  undo(created: readonly Allocation[], nowMs: number): void {
    for (const allocation of created) this.#unclaim(allocation, nowMs);
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

  releaseUnattached(beforeMs: number, nowMs: number): readonly Allocation[] {
    const stale = this.#all("state = 'Bound' AND container = '' AND since < ?", beforeMs);
    for (const allocation of stale) this.#unclaim(allocation, nowMs);
    return stale;
  }

  expire(nowMs: number): number {
    const due = this.#all("state = 'Cooling' AND free_at <= ? ORDER BY free_at LIMIT ?", nowMs, MAX_AT_ONCE);
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
    for (const row of this.#prepare(`SELECT * FROM allocation INDEXED BY released WHERE ${where}`).iterate(
      space,
      family,
    )) {
      const allocation = decodeRow(row as Row);
      const { value } = allocation.ip;
      if (spans.some((span) => span.first <= value && value <= span.last) && found.push(allocation) === limit) break;
    }
    return found;
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
    const values = [prefixLength, pool, owner, ifName, containerId, network, namespace, pod, this.#bootId, nowMs, version]; // biome-ignore format: in the order of the table
    if (cooling === undefined) this.#write(INSERT, ...keyOf(space, ip), ...values);
    else this.#write(TAKE_OVER, ...values, ...keyOf(space, ip));
    return { space, ip, prefixLength, pool, state: "Bound", owner, ifName, containerId, network, namespace, pod, sinceMs: nowMs, version }; // biome-ignore format: in the order of the table
  }

  /**
   * A new sandbox of the same pod keeps the address; the old sandbox's late DEL then finds nothing (rule 1). Writes
   * even when nothing is new: a repeated ADD relies on the address, so the first one's undo must not take it away.
   */
  #attach(allocation: Allocation, claim: Claim, nowMs: number): Allocation {
    const { containerId, network } = claim;
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
    for (const allocation of orphans) this.#unclaim(allocation, nowMs);
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

  /** Takes back what this claim put on no NIC; what it had taken over while it cooled cools on. */
  #unclaim({ space, ip, version }: Allocation, nowMs: number): void {
    const key = keyOf(space, ip);
    const rest = `UPDATE allocation SET state = 'Cooling', since = ?, version = ? WHERE ${KEY} AND version = ? AND free_at > ?`;
    if (this.#write(rest, nowMs, ++this.#lastVersion, ...key, version, nowMs) > 0) return;
    if (this.#write(`DELETE FROM allocation WHERE ${KEY} AND version = ?`, ...key, version) > 0) this.#freed.push({ space, ip }); // biome-ignore format: one thought
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

/** Claimed with another NIC's ADD and never on a NIC; now its own NIC comes and asks for another address. */
function isContradicted({ containerId, ifName, ip }: Allocation, { proposals }: Claim): boolean {
  if (containerId !== "") return false;
  return proposals.some((wish) => wish.asked === true && wish.ifName === ifName && wish.ip.family === ip.family && !equalIp(wish.ip, ip)); // biome-ignore format: one thought
}

type SqlValue = string | number | Uint8Array;

function keyOf(space: string, ip: Ip): [string, number, Uint8Array] {
  return [space, ip.family, encodeAddress(ip)];
}

function spanOf({ space, family, first, last }: AddressSpan): [string, number, Uint8Array, Uint8Array] {
  return [space, family, encodeAddress({ family, value: first }), encodeAddress({ family, value: last })];
}
