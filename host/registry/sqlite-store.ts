/**
 * What the registry's operations mean, as statements on one SQLite database, each within the caller's transaction.
 * Called by sqlite-batch.ts, which groups operations, commits and survives a full disk.
 * Effects: reads and writes the database.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Faults } from "../lib/fault.ts";
import { invariant } from "../lib/invariant.ts";
import { equalIp, type Ip } from "../net/ip.ts";
import { MAX_AT_ONCE, MAX_FREED_AT_ONCE } from "./limits.ts";
import type { Allocation, Attachment, Claim, ClaimOutcome, Cooldowns, Proposal } from "./registry.ts";
import { KEY, keyOf, SqliteReader, type SqlValue } from "./sqlite-reader.ts";
import { decodeAddress } from "./sqlite-schema.ts";

/** An address that a transaction made free. */
export interface Freed {
  readonly space: string;
  readonly ip: Ip;
}

const INSERT = `INSERT INTO allocation
  (space, family, address, length, pool, state, owner, interface, container, network, namespace, pod, boot, since, free_at, version)
  VALUES (?, ?, ?, ?, ?, 'Bound', ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`;
/** Leaves free_at as it was: when the address would have been free, for undo. */
const TAKE_OVER = `UPDATE allocation SET length = ?, pool = ?, state = 'Bound', owner = ?, interface = ?, container = ?,
  network = ?, namespace = ?, pod = ?, boot = ?, since = ?, version = ? WHERE ${KEY} AND version = ?`;

const EXPIRE = `DELETE FROM allocation WHERE (space, family, address) IN
  (SELECT space, family, address FROM allocation WHERE state = 'Cooling' AND free_at <= ? ORDER BY free_at LIMIT ?)
  RETURNING space, address`;

/** The operations of `Registry`, synchronous, with the time as an argument. All run inside a transaction. */
export class SqliteStore extends SqliteReader {
  readonly #faults: Faults;
  readonly #bootId: string;
  #cooldowns: Cooldowns;
  #freed: Freed[] = [];
  #hasWritten = false;
  /** Versions are never used twice, even for an address that was freed in between: undo relies on it. */
  #lastVersion: number;

  constructor(database: DatabaseSync, options: { bootId: string; cooldowns: Cooldowns; faults: Faults }) {
    super(database);
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
      const page = this.all(`${where} ORDER BY space, family, address LIMIT ?`, this.#bootId, ...after, MAX_AT_ONCE);
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
    const old = this.all("state = 'Bound' AND network = ? AND container <> '' AND since < ?", network, beforeMs);
    return this.#release(old.filter(({ containerId, ifName }) => !alive.has(`${containerId}/${ifName}`)), nowMs); // biome-ignore format: one thought
  }

  releaseUnattached(beforeMs: number, nowMs: number): readonly Allocation[] {
    const stale = this.all("state = 'Bound' AND container = '' AND since < ?", beforeMs);
    for (const allocation of stale) this.#unclaim(allocation, nowMs);
    return stale;
  }

  /**
   * Frees the first MAX_FREED_AT_ONCE of what has cooled long enough: claims that come meanwhile wait for no more.
   * Answers how many still cool, or undefined when more may be due.
   */
  expire(nowMs: number): number | undefined {
    const rows = this.prepare(EXPIRE).all(nowMs, MAX_FREED_AT_ONCE);
    if (rows.length > 0) {
      this.#faults("registry.write");
      this.#hasWritten = true;
    }
    for (const row of rows)
      this.#freed.push({ space: String(row.space), ip: decodeAddress(row.address as Uint8Array) });
    if (rows.length === MAX_FREED_AT_ONCE) return undefined;
    return Number(this.prepare("SELECT count(*) AS n FROM allocation WHERE state = 'Cooling'").get()?.n);
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
    else {
      const changes = this.#write(TAKE_OVER, ...values, ...keyOf(space, ip), cooling.version);
      invariant(changes === 1, "No claim proposes an address twice");
    }
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

  #write(sql: string, ...values: SqlValue[]): number {
    this.#faults("registry.write");
    this.#hasWritten = true;
    return Number(this.prepare(sql).run(...values).changes);
  }
}

/** Claimed with another NIC's ADD and never on a NIC; now its own NIC comes and asks for another address. */
function isContradicted({ containerId, ifName, ip }: Allocation, { proposals }: Claim): boolean {
  if (containerId !== "") return false;
  return proposals.some((wish) => wish.asked === true && wish.ifName === ifName && wish.ip.family === ip.family && !equalIp(wish.ip, ip)); // biome-ignore format: one thought
}
