/**
 * Lets a cluster continue that stopped leasing: one that was restored, copied, or released (docs/decisions/0064). It
 * remembers its blocks from the hub, and replaces the token, so that a copy finds itself older.
 */
import { formatIp } from "../../../host/net/ip.ts";
import { rangesOverlap } from "../../../host/net/range.ts";
import type { RangeMember } from "../range-member.ts";
import { rangesOfBlocks } from "./blocks-of-range.ts";
import { NO_LEASES, type OwnLeases } from "./own-leases.ts";
import type { UsedAddress } from "./plan-adoption.ts";
import { barOf } from "./seal.ts";

interface RejoinFacts {
  readonly member: RangeMember;
  readonly own: OwnLeases;
  /** UID of the cluster's namespace kube-system. */
  readonly cluster: string;
  /** Addresses of the range that pods of the cluster have. */
  readonly used: readonly UsedAddress[];
  readonly newId: () => string;
}

type Rejoin =
  /** A clause. */
  | { readonly refusal: string }
  /** The memory to write, and then a merge patch of the status. */
  | { readonly own: OwnLeases; readonly status: object; readonly blocks: readonly string[] };

export function planRejoin({ member, own: known, cluster, used, newId }: RejoinFacts): Rejoin {
  const { cluster: writer, writes, blocks } = member.status;
  if (writes === 0) return { refusal: "it has not written to the range yet, and leases when it needs blocks" };
  if (writer !== cluster) return { refusal: `the member of this name is another cluster, ${writer}` };
  if (barOf(known.seal, member.status, cluster) === undefined)
    return { refusal: "nothing is contested: the hub has the token that this cluster wrote last" };
  const own = rangesOfBlocks(Object.keys(blocks));
  const outside = used.filter(({ ip }) => !own.some((block) => rangesOverlap(block, { first: ip, last: ip })));
  if (outside.length > 0) {
    const listed = outside.map(({ ip, holder }) => `${formatIp(ip)} of ${holder}`).join(", ");
    return { refusal: `${outside.length} addresses are in use that others may lease: ${listed}` };
  }
  const token = newId();
  const leases = Object.entries(blocks).map(([block, { request, pool }]) => [block, { request, pool }] as const);
  return {
    own: {
      ...NO_LEASES,
      leases: Object.fromEntries(leases),
      seal: { member: member.spec.member, token, writes: writes + 1, next: "" },
    },
    status: { token, writes: writes + 1, contested: null },
    blocks: Object.keys(blocks),
  };
}
