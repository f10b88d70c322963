/**
 * The seal by which a cluster recognises its own RangeMember. Each of its writes replaces the token, which was
 * remembered before, and increases the number of writes: a copy of the cluster, or its past, remembers another token.
 */
import type { MemberStatus } from "../range-member.ts";
import type { Bar } from "./lease-server.ts";
import type { Seal } from "./own-leases.ts";

type Written = Pick<MemberStatus, "cluster" | "token" | "writes" | "isContested">;

/**
 * Returns why the cluster may not write, by its object on the hub. Fewer writes than remembered mean that the hub went
 * back in time: the cluster writes its blocks again.
 */
export function barOf({ token, writes, next }: Seal, found: Written, cluster: string): Bar | undefined {
  if (found.isContested) return { kind: "contested" };
  if (found.writes > 0 && found.cluster !== cluster) return { kind: "otherCluster", cluster: found.cluster };
  const isOwn = found.token === token || found.token === next || found.writes < writes;
  return isOwn ? undefined : { kind: "contested" };
}

/**
 * Returns the seal to remember before the next write, which has the token `next` and one more write. A write that was
 * not carried out may come late: the next one has the same token.
 */
export function sealWrite(
  known: Seal,
  { token, writes }: Pick<Written, "token" | "writes">,
  { member, newId }: { readonly member: string; readonly newId: () => string },
): Seal {
  return known.next === "" || known.next === token ? { member, token, writes, next: newId() } : known;
}
