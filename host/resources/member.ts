/**
 * Which pods count as one member of a workload (retention in docs/allocation.md). Without the schema of the kind IPAllocation, which the registry's
 * thread has no use for.
 */
import type { Workload } from "./ip-allocation.ts";

export type Member = Pick<Workload, "namespace" | "uid" | "member">;

/** Returns the owner of an address with {@link Workload.isFresh} as given. */
export function ownerOf({ isFresh: _, ...workload }: Workload, isFresh: boolean): Workload {
  return isFresh ? { ...workload, isFresh } : workload;
}

/**
 * Returns whether both are the same member of the same workload (retention in docs/allocation.md). A user who may create pods can write any
 * UID into their owner references, but only in the user's own namespaces. Comparing the namespace therefore detects forged owners.
 */
export function isSameMember(one: Member | undefined, other: Member | undefined): boolean {
  if (one === undefined || one.namespace === "") return false;
  return one.namespace === other?.namespace && one.uid === other.uid && one.member === other.member;
}

/** Returns a key that is unique to one member; the search for its addresses starts at the key's hash. */
export function memberKey({ namespace, uid, member }: Member): string {
  return `${namespace}/${uid}/${member}`;
}
