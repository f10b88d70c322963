/**
 * The operations of `Journal`: the store of a cluster's node. A row whose address has no use any more is not deleted
 * but cools, until the API server is known to have no object for it.
 */

import { formatIp } from "../../net/ip.ts";
import { isRecreated, isSameMember, ownerOf, type Workload } from "../../resources/member.ts";
import { type Adoption, type SeenOwner, UNKNOWN_CONTAINER } from "../journal.ts";
import { type Allocation, type Attachment, RegistryError } from "../registry.ts";
import { encodeWorkload } from "./schema.ts";
import { KEY, keyOf, SqliteStore, UNCHANGED } from "./store.ts";

/** Most address owners that are stored: the oldest is forgotten first. */
const MAX_STORED_OWNERS = 4_096;

const ADOPT = `INSERT INTO allocation
  (space, family, address, length, pool, state, owner, interface, container, network, namespace, pod, workload,
   reason, foreign_mac, parent, probe_at, boot, since, free_at, version, confirmed)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 1)`;

export class SqliteJournal extends SqliteStore {
  override findAttachment(attachment: Attachment): readonly Allocation[] {
    return attachment.containerId === UNKNOWN_CONTAINER ? [] : super.findAttachment(attachment);
  }

  /** Only counts: {@link forget} alone deletes rows. */
  override expire(_nowMs: number): number {
    return this.countCooling();
  }

  findDue(limit: number, nowMs: number): readonly Allocation[] {
    return this.select("state = 'Cooling' AND free_at <= ? ORDER BY free_at LIMIT ?", nowMs, limit);
  }

  findUnconfirmed(limit: number): readonly Allocation[] {
    return this.select("confirmed = 0 LIMIT ?", limit);
  }

  retain(claimed: readonly Allocation[]): void {
    const sql = `UPDATE allocation SET workload = ? WHERE ${UNCHANGED} AND state = 'Bound'`;
    for (const { space, ip, version, workload } of claimed) {
      if (this.write(sql, encodeWorkload(workload), ...keyOf(space, ip), version) === 0)
        throw new RegistryError(`Address ${formatIp(ip)} was released while it was claimed`);
    }
  }

  disown(allocations: readonly Allocation[]): void {
    const sql = `UPDATE allocation SET workload = '' WHERE ${UNCHANGED}`;
    for (const { space, ip, version } of allocations) this.write(sql, ...keyOf(space, ip), version);
  }

  inherit(allocations: readonly Allocation[]): void {
    const sql = `UPDATE allocation SET workload = ? WHERE ${UNCHANGED}`;
    for (const { space, ip, version, workload } of allocations)
      this.write(sql, encodeWorkload(workload), ...keyOf(space, ip), version);
  }

  confirm(allocations: readonly Allocation[]): void {
    const sql = `UPDATE allocation SET confirmed = 1 WHERE ${KEY} AND (version = ? OR owner = ?)`;
    for (const { space, ip, version, owner } of allocations) this.write(sql, ...keyOf(space, ip), version, owner);
  }

  forget(allocation: Allocation, isTaken = false): boolean {
    return this.delete(allocation, isTaken);
  }

  adopt(adoption: Adoption, nowMs: number): Allocation | undefined {
    const { space, ip, prefixLength, pool, state, owner, ifName, namespace, pod, workload, quarantine } = adoption;
    if (this.findAddress(space, ip) !== undefined) return undefined;
    // An ADD may have given the NIC an address since the object was read.
    const isOnNic = (row: Allocation): boolean =>
      row.state === "Bound" && row.ifName === ifName && row.ip.family === ip.family;
    if (state === "Bound" && this.findOwner(owner).some(isOnNic)) return undefined;
    const { reason = "", mac = "", parent = "", nextProbeAtMs = 0 } = quarantine ?? {};
    const container = state === "Bound" ? UNKNOWN_CONTAINER : "";
    this.write(
      ADOPT,
      ...[...keyOf(space, ip), prefixLength, pool, state, owner, ifName, container, namespace, pod],
      ...[encodeWorkload(workload), reason, mac, parent, nextProbeAtMs, this.bootId, nowMs, this.nextVersion()],
    );
    const row = this.findAddress(space, ip);
    if (row?.state === "Cooling") this.cool(row, nowMs);
    return this.findAddress(space, ip);
  }

  collect({ space, ip, version }: Allocation, nowMs: number): Allocation | undefined {
    const row = this.findAddress(space, ip);
    if (row?.version !== version || row.state !== "Bound") return undefined;
    this.cool(row, nowMs);
    return this.findAddress(space, ip);
  }

  readOwners(): readonly SeenOwner[] {
    const rows = this.selectRaw("SELECT key, seen FROM owner ORDER BY rowid");
    return rows.map(({ key, seen }) => ({ key: String(key), isSeen: seen === 1 }));
  }

  noteOwner(key: string, isSeen: boolean): void {
    this.write("INSERT OR REPLACE INTO owner (key, seen) VALUES (?, ?)", key, Number(isSeen));
    this.write("DELETE FROM owner WHERE rowid <= (SELECT max(rowid) FROM owner) - ?", MAX_STORED_OWNERS);
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
    return ownerOf(workload, before.isFresh === true);
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
