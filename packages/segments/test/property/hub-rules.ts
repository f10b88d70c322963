/**
 * What the hub does with a write, and what its policy `berth-address-ranges` allows a member to write, as the searches
 * have it.
 */

import type { AddressRange, Lease, RangeStatus } from "../../address-range.ts";
import type { RangeWrite } from "../../blocks/plan-range.ts";
import { waitedFor } from "../../blocks/plan-range.ts";

/** Returns why the hub refuses the write of the member; undefined if it does not. */
export function refuseWrite({ spec, status }: AddressRange, name: string, write: RangeWrite): string | undefined {
  const before = status.members[name];
  const changed = Object.entries(write.leases);
  const isOpen = waitedFor({ spec, status }).length > 0;
  const isWriting = before?.epoch !== write.epoch;
  if (before?.isGone === true) return "the member is gone";
  if (before !== undefined && before.token === write.member.token) return "the token stays";
  if (before !== undefined && before.writes >= write.member.writes) return "the number of writes does not grow";
  if (write.member.epoch !== write.epoch && !write.member.isContested) return "the member writes for another epoch";
  if (before?.isContested === true && write.member.isContested && changed.length > 0) return "the member is contested";
  const { maxBlocks = 0 } = spec.members.find((member) => member.name === name) ?? {};
  const leases = Object.values(applyWrite(status, name, write).leases).filter(({ member }) => member === name);
  if (changed.some(([, lease]) => lease !== null) && leases.length > maxBlocks) return "the member would have too many";
  for (const [block, lease] of changed) {
    const holder = status.leases[block]?.member;
    if (holder !== undefined && holder !== name) return `${block} is another's`;
    if (lease === null || holder === name) continue;
    const isDisputed = Object.values(status.members).some(({ disputed }) => disputed.includes(block));
    const isOwnDispute = before?.disputed.includes(block) === true;
    if (isDisputed && !isOwnDispute) return `${block} is disputed`;
    if (isOpen && !isWriting) return `${block} would be leased while the epoch is open`;
  }
  return undefined;
}

/** Returns the status after the write. */
export function applyWrite(
  status: RangeStatus,
  name: string,
  { epoch, isRestored, leases, member }: RangeWrite,
): RangeStatus {
  const merged = Object.entries({ ...status.leases, ...leases }).filter(([, lease]) => lease !== null);
  return {
    ...{ sequence: status.sequence + 1, epoch, isRestored },
    leases: Object.fromEntries(merged) as Record<string, Lease>,
    members: { ...status.members, [name]: member },
  };
}
