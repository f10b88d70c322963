/**
 * Addresses that another machine answers for: into quarantine, and out of it (allocation rule 12).
 * Effects: writes the database, within the caller's transaction.
 */
import type { Allocation, Quarantine } from "../registry.ts";
import { KEY, keyOf } from "./reader.ts";
import { SqliteWriter } from "./writer.ts";

/** What a row in quarantine knows of its last owner: nothing. A free_at of the past stops undo from letting it cool. */
const NOBODY = `owner = '', interface = '', container = '', network = '', namespace = '', pod = '', netns = '', mac = '',
  workload = '', free_at = 0`;

/** Only if nobody has written since. */
const UNCHANGED = `${KEY} AND version = ?`;

export class SqliteQuarantine extends SqliteWriter {
  quarantine(allocation: Allocation, quarantine: Quarantine, nowMs: number): Allocation | undefined {
    const { space, ip, version } = allocation;
    const { reason, mac = "", parent, nextProbeAtMs } = quarantine;
    const changes = this.write(
      `UPDATE allocation SET state = 'Quarantined', ${NOBODY}, reason = ?, foreign_mac = ?, parent = ?, probe_at = ?,
       boot = ?, since = ?, version = ? WHERE ${UNCHANGED} AND state = 'Bound'`,
      ...[reason, mac, parent, nextProbeAtMs, this.bootId, nowMs, this.nextVersion()],
      ...[...keyOf(space, ip), version],
    );
    return changes === 0 ? undefined : this.findAddress(space, ip);
  }

  postponeProbe({ space, ip, version }: Allocation, nextProbeAtMs: number): void {
    this.write(
      `UPDATE allocation SET probe_at = ?, version = ? WHERE ${UNCHANGED} AND state = 'Quarantined'`,
      ...[nextProbeAtMs, this.nextVersion(), ...keyOf(space, ip), version],
    );
  }

  endQuarantine(allocation: Allocation, nowMs: number): void {
    const { space, ip, version } = allocation;
    const found = this.findAddress(space, ip);
    if (found?.version === version && found.state === "Quarantined") this.drop(found, nowMs);
  }

  /** Of a row that is bound in this transaction: as if it had come out of quarantine, so that whatever ends it but {@link trust} brings it there. */
  protected doubt({ space, ip }: Pick<Allocation, "space" | "ip">, nowMs: number): Quarantine {
    this.write(`UPDATE allocation SET reason = 'Conflict', probe_at = ? WHERE ${KEY}`, nowMs, ...keyOf(space, ip));
    return { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: nowMs };
  }

  trust({ space, ip, version }: Allocation): Allocation | undefined {
    const changes = this.write(
      `UPDATE allocation SET reason = '', foreign_mac = '', parent = '', probe_at = 0, version = ?
       WHERE ${UNCHANGED} AND state = 'Bound'`,
      ...[this.nextVersion(), ...keyOf(space, ip), version],
    );
    return changes === 0 ? undefined : this.findAddress(space, ip);
  }

  /** False unless the address was in quarantine when it was bound and nobody has found it silent: then it is there again, to be asked now, as after a reboot. */
  protected returnToQuarantine({ space, ip, version, quarantine }: Allocation, nowMs: number): boolean {
    if (quarantine === undefined) return false;
    this.write(
      `UPDATE allocation SET state = 'Quarantined', ${NOBODY}, probe_at = ?, boot = ?, since = ?, version = ?
       WHERE ${UNCHANGED}`,
      ...[nowMs, this.bootId, nowMs, this.nextVersion(), ...keyOf(space, ip), version],
    );
    return true;
  }
}
