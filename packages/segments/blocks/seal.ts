/**
 * By what a cluster knows its own RangeMember again. Each of its writes replaces the token, which was remembered
 * before, and raises the number of writes: a copy of the cluster, or its past, remembers another one.
 */
import type { MemberStatus } from "../range-member.ts";
import type { Bar } from "./lease-server.ts";
import type { Seal } from "./own-leases.ts";

type Written = Pick<MemberStatus, "cluster" | "token" | "writes" | "isContested">;

/**
 * Returns why the cluster writes nothing, by what the hub has of it. Fewer writes than it knows of: the hub went back
 * in time, and the cluster writes what it has again.
 */
export function barOf({ token, writes, next }: Seal, found: Written, cluster: string): Bar | undefined {
  if (found.isContested) return { kind: "contested" };
  if (found.writes > 0 && found.cluster !== cluster) return { kind: "otherCluster", cluster: found.cluster };
  const isOwn = found.token === token || found.token === next || found.writes < writes;
  return isOwn ? undefined : { kind: "contested" };
}

/**
 * Returns what is to be remembered before the next write, which has the token `next` and one more write. A write that
 * was not carried out may come late: the next one has the same token.
 */
export function sealWrite(
  known: Seal,
  { token, writes }: Pick<Written, "token" | "writes">,
  { member, newId }: { readonly member: string; readonly newId: () => string },
): Seal {
  return known.next === "" || known.next === token ? { member, token, writes, next: newId() } : known;
}
