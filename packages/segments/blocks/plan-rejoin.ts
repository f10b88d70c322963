/**
 * How a cluster that leases no more goes on: one that was restored or copied, and one that was declared gone
 * (docs/decisions/0055).
 */
import type { AddressRange } from "../address-range.ts";
import { newOwnRange, type OwnRange } from "./own-range.ts";
import { isNewer, usableBlocks } from "./plan-range.ts";

interface RejoinFacts {
  readonly range: AddressRange;
  readonly own: OwnRange;
  readonly member: string;
  /** UID of the cluster's namespace kube-system. */
  readonly cluster: string;
  /** Blocks that the cluster's pools list. */
  readonly listed: readonly string[];
  /** Addresses of the range that pods of the cluster have, with the pods. */
  readonly used: readonly string[];
}

type Rejoin =
  /** A clause. */
  | { readonly kind: "refused"; readonly why: string }
  /** It goes on with its blocks, if no other cluster uses them; `own` is to be remembered. */
  | { readonly kind: "goesOn"; readonly own: OwnRange; readonly blocks: readonly string[] }
  /** It begins without blocks: its entry is removed, and `own` is to be remembered. */
  | { readonly kind: "beginsAnew"; readonly own: OwnRange };

export function planRejoin({ range, own, member: name, cluster, listed, used }: RejoinFacts): Rejoin {
  const member = range.status.members[name];
  if (member === undefined) return refused("it has not written to the range yet, and leases when it needs blocks");
  if (member.isGone) {
    const [pod] = used;
    if (pod !== undefined)
      return refused(`${used.length} addresses of the range are in use, which others may lease: ${used.join(", ")}`);
    if (listed.length > 0) return refused("its pools still list blocks: its controller must reach the hub first");
    return { kind: "beginsAnew", own: newOwnRange(own.uid) };
  }
  if (member.cluster !== cluster) return refused(`the member of this name is another cluster, ${member.cluster}`);
  const isUnderWay = own.next !== "" && member.token === own.next;
  if (!member.isContested && (isUnderWay || !isNewer(member, own)))
    return refused("nothing is contested: the hub has the token that this cluster wrote last");
  if (own.isRejoining) return refused("its controller does so already, as soon as it reaches the hub");
  const self = { name, cluster, start: 0 };
  const blocks = Object.keys(usableBlocks({ range, own, self }));
  return { kind: "goesOn", own: { ...own, isRejoining: true }, blocks };
}

function refused(why: string): Rejoin {
  return { kind: "refused", why };
}
