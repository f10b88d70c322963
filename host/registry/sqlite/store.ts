/**
 * What the registry's operations mean, as statements on one SQLite database, each within the caller's transaction.
 * Effects: reads and writes the database.
 */
import type { DatabaseSync } from "node:sqlite";
import { invariant } from "../../lib/invariant.ts";
import { equalIp } from "../../net/ip.ts";
import { UNKNOWN_CONTAINER } from "../journal.ts";
import { isOfOtherNetwork } from "../nic.ts";
import type {
  Allocation,
  Attachment,
  Claim,
  ClaimOutcome,
  Cooldowns,
  Proposal,
  Quarantine,
  Recovered,
} from "../registry.ts";
import { SqliteQuarantine } from "./quarantine.ts";
import { KEY, keyOf } from "./reader.ts";
import { decodeAddress, encodeWorkload } from "./schema.ts";
import type { WriterOptions } from "./writer.ts";

/** Most addresses that start to cool, or become free, as one piece: a thread with a small heap holds them all. @limit */
export const MAX_AT_ONCE = 4_096;

/** Most addresses that become free in one transaction: what a claim may have to wait for. @limit */
export const MAX_FREED_AT_ONCE = 64;

const INSERT = `INSERT INTO allocation
  (space, family, address, length, pool, state, owner, interface, container, network, namespace, pod, netns, mac, workload, boot, since, free_at, version)
  VALUES (?, ?, ?, ?, ?, 'Bound', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`;
/** Leaves free_at as it was, and what is known of a conflict: when the address would have been free, and where undo brings it. */
const TAKE_OVER = `UPDATE allocation SET length = ?, pool = ?, state = 'Bound', owner = ?, interface = ?, container = ?,
  network = ?, namespace = ?, pod = ?, netns = ?, mac = ?, workload = ?, boot = ?, since = ?, version = ?, confirmed = 0 WHERE ${KEY} AND version = ?`;

const EXPIRE = `DELETE FROM allocation WHERE (space, family, address) IN
  (SELECT space, family, address FROM allocation WHERE state = 'Cooling' AND free_at <= ? ORDER BY free_at LIMIT ?)
  RETURNING space, address`;

export interface QuarantineCall {
  readonly allocation: Allocation;
  readonly quarantine: Quarantine;
  readonly created: readonly Allocation[];
}

/** Not of what never was on a NIC: that is free at once. */
const COOLING_TIMES = `SELECT DISTINCT pool, free_at - since AS rest FROM allocation
  WHERE state = 'Cooling' AND boot = ? AND free_at > since`;
const FOLLOW_POOL = `UPDATE allocation SET free_at = since + ?
  WHERE state = 'Cooling' AND pool = ? AND boot = ? AND free_at - since = ?`;

/** The operations of `Registry`, synchronous, with the time as an argument. All run inside a transaction. */
export class SqliteStore extends SqliteQuarantine {
  #cooldowns: Cooldowns;

  constructor(database: DatabaseSync, options: WriterOptions & { cooldowns: Cooldowns }) {
    super(database, options);
    this.#cooldowns = options.cooldowns;
  }

  /** What cools already follows its pool: the first that an agent hears of a pool may come after a DEL. */
  setCooldowns(cooldowns: Cooldowns): void {
    this.#cooldowns = cooldowns;
    for (const { pool, rest } of this.prepare(COOLING_TIMES).all(this.bootId)) {
      const cooldownMs = this.#cooldownMs(String(pool));
      if (Number(rest) !== cooldownMs) this.write(FOLLOW_POOL, cooldownMs, String(pool), this.bootId, Number(rest));
    }
  }

  #cooldownMs(pool: string): number {
    return this.#cooldowns.byPool.get(pool) ?? this.#cooldowns.defaultMs;
  }

  /** Allocation rule 13: what another boot left behind is dead or in quarantine, and its times mean nothing now. */
  coolDeadBoots(nowMs: number): void {
    const where = "boot <> ? AND state <> 'Kept' AND (space, family, address) > (?, ?, ?)";
    let after: [string, number, Uint8Array] = ["", 0, new Uint8Array()];
    for (;;) {
      const page = this.all(`${where} ORDER BY space, family, address LIMIT ?`, this.bootId, ...after, MAX_AT_ONCE);
      const last = page.at(-1);
      if (last === undefined) return;
      for (const allocation of page) this.cool(allocation, nowMs);
      after = keyOf(last.space, last.ip);
    }
  }

  claim(claim: Claim, nowMs: number): ClaimOutcome {
    const own = this.findOwner(claim.owner);
    const bound = own.filter((each) => each.state === "Bound" && !isOfOtherNetwork(each, claim));
    const held = bound.filter(({ ifName }) => ifName === claim.ifName);
    const cooling = own.filter(({ state, ifName }) => state === "Cooling" && ifName === claim.ifName);
    const offered = new Set(claim.proposals.map(({ replaces }) => replaces));
    const isLacked = ({ ip }: Allocation): boolean => !held.some((other) => other.ip.family === ip.family);
    if (!claim.skipOwnCooling && cooling.some((each) => !offered.has(each.version) && isLacked(each))) {
      return { kind: "cooling", own: cooling };
    }
    const others = claim.partial ? held.filter(({ containerId }) => containerId !== claim.containerId) : [];
    if (others.length > 0) return { kind: "taken", by: others };
    const unwanted = held.filter((allocation) => isContradicted(allocation, claim));
    const kept = bound.filter((allocation) => !unwanted.includes(allocation));
    const has = ({ ifName, ip }: Proposal): boolean =>
      kept.some((other) => other.ifName === ifName && other.ip.family === ip.family);
    const isMissing = (proposal: Proposal): boolean => !has(proposal) || isReplaced(proposal);
    const isReplaced = ({ ifName, ip }: Proposal): boolean =>
      unwanted.some((other) => other.ip.family === ip.family && other.ifName === ifName);
    const outcome = this.#create(claim, claim.proposals.filter(isMissing), nowMs);
    if (outcome.kind !== "bound") return outcome;
    for (const allocation of unwanted) this.#unclaim(allocation, nowMs);
    const wanted = held.filter((each) => !unwanted.includes(each));
    const isAhead = claim.containerId === "";
    const attached = claim.partial || isAhead ? wanted : wanted.map((each) => this.#attach(each, claim, nowMs));
    const isMoved = ({ containerId }: Allocation): boolean => containerId !== "" && containerId !== claim.containerId;
    const moved = isAhead ? [] : wanted.filter(isMoved);
    return { ...outcome, held: [...attached, ...outcome.held], previous: [...moved, ...outcome.previous] };
  }

  /** What lives has its address, whatever the rows say; what is gone cools, if nobody has written since. Ends a loss. */
  recover(found: readonly Recovered[], gone: readonly Allocation[], nowMs: number): void {
    for (const each of found) {
      const row = this.findAddress(each.space, each.ip);
      const { space, ip, prefixLength, pool, owner, ifName, containerId, network, namespace, pod, netns, mac } = each;
      const values = [prefixLength, pool, owner, ifName, containerId, network, namespace, pod, netns ?? "", mac ?? "", "", this.bootId, nowMs, this.nextVersion()]; // biome-ignore format: in the order of the table
      if (row === undefined) this.write(INSERT, ...keyOf(space, ip), ...values);
      else this.write(TAKE_OVER, ...values, ...keyOf(space, ip), row.version);
    }
    for (const each of gone) {
      if (this.findAddress(each.space, each.ip)?.version === each.version) this.cool(each, nowMs);
    }
    this.identity.recover();
  }

  undo(created: readonly Allocation[], nowMs: number): void {
    for (const allocation of created) this.#unclaim(allocation, nowMs);
  }

  quarantineAndUndo({ allocation, quarantine, created }: QuarantineCall, nowMs: number): Allocation | undefined {
    const quarantined = this.quarantine(allocation, quarantine, nowMs);
    if (quarantined !== undefined) this.undo(created, nowMs);
    return quarantined;
  }

  release(attachment: Attachment, nowMs: number): readonly Allocation[] {
    const bound = this.findAttachment(attachment).filter(({ state }) => state === "Bound");
    return this.#release(bound, nowMs);
  }

  releaseOthers(network: string, valid: readonly Attachment[], beforeMs: number, nowMs: number): readonly Allocation[] {
    const alive = new Set(valid.map(({ containerId, ifName }) => `${containerId}/${ifName}`));
    const old = this.all("state = 'Bound' AND network = ? AND container NOT IN ('', ?) AND since < ?", network, UNKNOWN_CONTAINER, beforeMs); // biome-ignore format: one thought
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
    if (rows.length > 0) this.noteWrite();
    for (const row of rows) this.noteFreed({ space: String(row.space), ip: decodeAddress(row.address as Uint8Array) });
    if (rows.length === MAX_FREED_AT_ONCE) return undefined;
    return this.countCooling();
  }

  #create(claim: Claim, proposals: readonly Proposal[], nowMs: number): ClaimOutcome {
    const inTheWay = proposals.map((proposal) => this.findAddress(proposal.space, proposal.ip));
    const taken = inTheWay.filter(
      (found, index) => found !== undefined && !(isIdle(found) && found.version === proposals[index]?.replaces),
    );
    if (taken.length > 0) return { kind: "taken", by: taken.filter((found) => found !== undefined) };
    const created = proposals.map((proposal, index) => this.#bind(proposal, inTheWay[index], claim, nowMs));
    const held = created.filter(({ ifName }) => ifName === claim.ifName);
    const previous = inTheWay.filter(
      (found, index) => found?.state === "Cooling" && proposals[index]?.ifName === claim.ifName,
    );
    return { kind: "bound", held, created, previous: previous.filter((found) => found !== undefined) };
  }

  #bind(proposal: Proposal, idle: Allocation | undefined, claim: Claim, nowMs: number): Allocation {
    const { space, ip, prefixLength, pool, ifName, workload = claim.workload } = proposal;
    const { owner, namespace, pod } = claim;
    const version = this.nextVersion();
    const { containerId, network, netns, mac } = ifName === claim.ifName ? claim : UNATTACHED;
    const values = [prefixLength, pool, owner, ifName, containerId, network, namespace, pod, netns ?? "", mac ?? "", encodeWorkload(workload), this.bootId, nowMs, version]; // biome-ignore format: in the order of the table
    if (idle === undefined) this.write(INSERT, ...keyOf(space, ip), ...values);
    else {
      const changes = this.write(TAKE_OVER, ...values, ...keyOf(space, ip), idle.version);
      invariant(changes === 1, "No claim proposes an address twice");
    }
    const quarantine = proposal.needsProbe === true ? this.doubt(proposal, nowMs) : idle?.quarantine;
    return { space, ip, prefixLength, pool, state: "Bound", owner, ifName, containerId, network, namespace, pod, netns, mac, quarantine, workload, isConfirmed: false, sinceMs: nowMs, version }; // biome-ignore format: in the order of the table
  }

  /**
   * A new sandbox of the same pod keeps the address; the old sandbox's late DEL then finds nothing (rule 1). Writes
   * even when nothing is new: a repeated ADD relies on the address, so the first one's undo must not take it away.
   */
  #attach(allocation: Allocation, claim: Claim, nowMs: number): Allocation {
    const { containerId, network, netns, mac } = claim;
    const version = this.nextVersion();
    this.write(
      `UPDATE allocation SET container = ?, network = ?, netns = ?, mac = ?, since = ?, version = ? WHERE ${KEY}`,
      ...[containerId, network, netns ?? "", mac ?? "", nowMs, version, ...keyOf(allocation.space, allocation.ip)],
    );
    return { ...allocation, containerId, network, netns, mac, sinceMs: nowMs, version };
  }

  #release(bound: readonly Allocation[], nowMs: number): readonly Allocation[] {
    for (const allocation of bound) this.cool(allocation, nowMs);
    const orphans = [...new Set(bound.map(({ owner }) => owner))].flatMap((owner) => this.#unattachedOf(owner));
    for (const allocation of orphans) this.#unclaim(allocation, nowMs);
    return [...bound, ...orphans];
  }

  /** Rule 17: addresses claimed together with other NICs and never attached, once no NIC of the owner is left. */
  #unattachedOf(owner: string): readonly Allocation[] {
    const bound = this.findOwner(owner).filter(({ state }) => state === "Bound");
    return bound.some(({ containerId }) => containerId !== "") ? [] : bound;
  }

  protected cool(allocation: Allocation, nowMs: number): void {
    if (this.returnToQuarantine(allocation, nowMs)) return;
    this.write(
      `UPDATE allocation SET state = 'Cooling', boot = ?, since = ?, free_at = ?, version = ? WHERE ${KEY}`,
      this.bootId,
      nowMs,
      nowMs + this.#cooldownMs(allocation.pool),
      this.nextVersion(),
      ...keyOf(allocation.space, allocation.ip),
    );
  }

  /** Takes back what this claim put on no NIC; what it had taken over while it cooled cools on. */
  #unclaim(allocation: Allocation, nowMs: number): void {
    if (this.returnToQuarantine(allocation, nowMs)) return;
    const { space, ip, version } = allocation;
    const rest = `UPDATE allocation SET state = 'Cooling', since = ?, version = ? WHERE ${KEY} AND version = ? AND free_at > ?`;
    if (this.write(rest, nowMs, this.nextVersion(), ...keyOf(space, ip), version, nowMs) > 0) return;
    this.drop(allocation, nowMs);
  }
}

/** What a NIC has that will be attached by its own ADD. */
const UNATTACHED: Pick<Claim, "containerId" | "network" | "netns" | "mac"> = { containerId: "", network: "" };

/** May change hands by compare-and-swap. */
function isIdle({ state }: Allocation): boolean {
  return state === "Cooling" || state === "Quarantined";
}

/** Claimed with another NIC's ADD and never on a NIC; now its own NIC comes and asks for another address. */
function isContradicted({ containerId, ifName, ip }: Allocation, { proposals }: Claim): boolean {
  if (containerId !== "") return false;
  return proposals.some((each) => each.requested === true && each.ifName === ifName && each.ip.family === ip.family && !equalIp(each.ip, ip)); // biome-ignore format: one thought
}
