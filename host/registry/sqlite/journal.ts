/**
 * The operations of `Journal`: the store of a cluster's node. A row whose address has no use any more is not deleted
 * but cools, until the API server is known to have no object for it.
 */

import { randomUUID } from "node:crypto";
import { formatIp } from "../../net/ip.ts";
import { isRecreated, isSameMember, type Workload } from "../../resources/member.ts";
import { claimOver } from "../claims.ts";
import { type Adoption, type SeenOwner, UNKNOWN_CONTAINER } from "../journal.ts";
import { type Allocation, type Attachment, type ClaimName, RegistryError } from "../registry.ts";
import { encodeWorkload, WRITE_CLAIM } from "./schema.ts";
import { keyOf, SqliteStore, UNCHANGED } from "./store.ts";

/** Most address owners that are stored: the oldest is forgotten first. */
const MAX_STORED_OWNERS = 4_096;

/** Most rows of another machine that are read at once. */
const MAX_FORGOTTEN_AT_ONCE = 256;

const ADOPT = `INSERT INTO allocation
  (space, family, address, length, pool, state, owner, interface, container, network, namespace, pod, workload,
   reason, foreign_mac, parent, probe_at, boot, since, free_at, version, confirmed)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 1)`;

export class SqliteJournal extends SqliteStore {
  override findAttachment(attachment: Attachment): readonly Allocation[] {
    return attachment.containerId === UNKNOWN_CONTAINER ? [] : super.findAttachment(attachment);
  }

  /** {@link forget} alone frees addresses. */
  override expire(nowMs: number): boolean {
    this.undoUnattached(nowMs);
    return false;
  }

  /** Records the rows' owners and claims, too: on a full disk {@link record} alone has no room (full-disk). */
  override undo(created: readonly Allocation[], nowMs: number): void {
    this.record(created);
    super.undo(created, nowMs);
  }

  findDue(limit: number, nowMs: number): readonly Allocation[] {
    return this.select("state = 'Cooling' AND free_at <= ? ORDER BY free_at LIMIT ?", nowMs, limit);
  }

  retain(claimed: readonly Allocation[]): void {
    for (const row of claimed) {
      if (this.record([{ ...row, isConfirmed: true }]).length === 0)
        throw new RegistryError(`Address ${formatIp(row.ip)} was released while it was claimed`);
    }
  }

  record(rows: readonly Allocation[]): readonly Allocation[] {
    const sql = `UPDATE allocation SET workload = ?, confirmed = ? WHERE ${UNCHANGED}`;
    return rows.filter((row) => {
      const { space, ip, version, workload, isConfirmed, claim } = row;
      const values = [encodeWorkload(workload), Number(isConfirmed === true), ...keyOf(space, ip), version];
      const isUnchanged = this.write(sql, ...values) > 0;
      // The object of a row that is answered names its claim.
      const named = claim && (isConfirmed === true ? { ...claim, earlier: [] } : claim);
      if (isUnchanged && named !== undefined) this.#writeClaim(row, named);
      return isUnchanged;
    });
  }

  forget(allocation: Allocation, isTaken = false): boolean {
    return this.delete(allocation, isTaken);
  }

  adopt(adoption: Adoption, nowMs: number): Allocation | undefined {
    const { space, ip, prefixLength, pool, state, owner, ifName, namespace, pod, workload, claim, quarantine } =
      adoption;
    // Whatever a member's pod had may have been on its NIC.
    const container = state === "Bound" || workload !== undefined ? UNKNOWN_CONTAINER : "";
    if (this.findAddress(space, ip) !== undefined) return undefined;
    // An ADD may have given the NIC an address since the object was read.
    const isOnNic = (row: Allocation): boolean =>
      row.state === "Bound" && row.ifName === ifName && row.ip.family === ip.family;
    if (state === "Bound" && this.findOwner(owner).some(isOnNic)) return undefined;
    const { reason = "", mac = "", parent = "", nextProbeAtMs = 0 } = quarantine ?? {};
    this.write(
      ADOPT,
      ...[...keyOf(space, ip), prefixLength, pool, state, owner, ifName, container, namespace, pod],
      ...[encodeWorkload(workload), reason, mac, parent, nextProbeAtMs, this.bootId, nowMs, this.nextVersion()],
    );
    const row = this.findAddress(space, ip);
    if (row !== undefined && claim !== undefined) this.#writeClaim(row, claim);
    if (row?.state === "Cooling") this.cool(row, nowMs);
    return this.findAddress(space, ip);
  }

  #writeClaim({ space, ip, version }: Pick<Allocation, "space" | "ip" | "version">, claim: ClaimName): void {
    const { id, number, earlier } = claim;
    this.write(WRITE_CLAIM, ...keyOf(space, ip), version, id, number, earlier.join(" "));
  }

  readOwners(): readonly SeenOwner[] {
    const rows = this.selectRaw("SELECT key, seen FROM owner ORDER BY rowid");
    return rows.map(({ key, seen }) => ({ key: String(key), isSeen: seen === 1 }));
  }

  noteOwner(key: string, isSeen: boolean): void {
    this.write("INSERT OR REPLACE INTO owner (key, seen) VALUES (?, ?)", key, Number(isSeen));
    this.write("DELETE FROM owner WHERE rowid <= (SELECT max(rowid) FROM owner) - ?", MAX_STORED_OWNERS);
  }

  noteMachine(machine: string): number {
    const [before] = this.selectRaw("SELECT machine, boot FROM machine");
    const isSameBoot = before?.boot === this.bootId;
    if (isSameBoot && before.machine === machine) return 0;
    this.write("INSERT OR REPLACE INTO machine (only, machine, boot) VALUES (1, ?, ?)", machine, this.bootId);
    return before === undefined || isSameBoot || before.machine === machine ? 0 : this.#forgetLeft();
  }

  /** Deletes all that is not Bound, in pieces: the thread has a small heap. Returns the number of rows. */
  #forgetLeft(): number {
    for (let count = 0; ; ) {
      const page = this.select("state <> 'Bound' LIMIT ?", MAX_FORGOTTEN_AT_ONCE);
      for (const row of page) this.delete(row);
      count += page.length;
      if (page.length === 0) return count;
    }
  }

  protected override firstOwner(
    workload: Workload | undefined,
    present: Allocation | undefined,
    nic: Pick<Allocation, "owner" | "ifName">,
  ): Workload | undefined {
    const before = present?.workload;
    // The API server no longer has the run of a machine's pod that has ended, and which the claim does not know yet
    // to have ended.
    if (workload === undefined && present?.owner === nic.owner && present.ifName === nic.ifName) return before;
    if (workload === undefined || before === undefined) return undefined;
    const isOfPod = present?.owner === nic.owner && isRecreated(before, workload);
    if (!isOfPod && !isSameMember(workload, before)) return undefined;
    return workload;
  }

  protected override nameClaim(row: Allocation, idle: Allocation | undefined, number: number): Allocation {
    const claim = claimOver(row, idle, { number, id: randomUUID() });
    this.#writeClaim(row, claim);
    return { ...row, claim };
  }

  /** The API server may have an object: the row cools and is due at once. */
  protected override drop({ space, ip, version }: Allocation, nowMs: number): void {
    this.write(
      `UPDATE allocation SET state = 'Cooling', reason = '', foreign_mac = '', parent = '', probe_at = 0, boot = ?, since = ?,
       free_at = ?, version = ? WHERE ${UNCHANGED}`,
      ...[this.bootId, nowMs, nowMs, this.nextVersion(), ...keyOf(space, ip), version],
    );
  }
}
