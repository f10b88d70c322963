/**
 * Releases a lost member of an AddressRange: the conditions, and the write (docs/decisions/0064). Should the cluster
 * come back, it finds an unknown token, and no block.
 */
import type { RangeMember } from "../range-member.ts";

/** Returns why the member is not released: a clause. */
export function refuseRelease({ status }: RangeMember, cluster: string): string | undefined {
  if (status.cluster === cluster) return "it is this cluster";
  return Object.keys(status.blocks).length === 0 ? "it has no blocks" : undefined;
}

/** Returns whether the member has written, or was written about, between the two looks. */
export function hasWritten(before: RangeMember, now: RangeMember | undefined): boolean {
  return JSON.stringify(now?.status) !== JSON.stringify(before.status);
}

/** Returns the status as a merge patch. */
export function encodeRelease({ status: { writes, blocks } }: RangeMember, newId: () => string): object {
  const none = Object.fromEntries(Object.keys(blocks).map((block) => [block, null]));
  return { token: newId(), writes: writes + 1, contested: true, blocks: none };
}
