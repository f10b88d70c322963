/**
 * Declares a member of an AddressRange gone: which addresses must be silent before, what must not have changed
 * meanwhile, and what is written then (docs/decisions/0055).
 */
import { parsePrefix } from "../../../host/net/prefix.ts";
import { type Range, rangeOfPrefix } from "../../../host/net/range.ts";
import { routersOf } from "../../../host/resources/ip-pool-shape.ts";
import { type AddressRange, encodeMembership, type Membership } from "../address-range.ts";
import { blockTexts } from "./blocks-of-range.ts";

/** What is known of a member that may be declared gone. */
export interface LostMember {
  readonly leased: readonly string[];
  /** Blocks that it may have: after a restore the hub need not know all of them. */
  readonly blocks: readonly string[];
  readonly membership: Membership | undefined;
}

/** Returns undefined if the range knows no such member. */
export function findLost({ spec, status }: AddressRange, name: string): LostMember | undefined {
  const membership = status.members[name];
  const isListed = spec.members.some((member) => member.name === name);
  const leased = Object.keys(status.leases).filter((block) => status.leases[block]?.member === name);
  if (!isListed && membership === undefined && leased.length === 0) return undefined;
  const isUnknown = membership === undefined ? status.isRestored : membership.epoch !== status.epoch;
  if (!isUnknown || membership?.isGone === true) return { leased, blocks: leased, membership };
  const blocks = blockTexts(spec).filter((block) => (status.leases[block]?.member ?? name) === name);
  return { leased, blocks, membership };
}

/** Returns why the member is not declared gone: a clause. */
export function refuseLoss({ leased, membership }: LostMember, cluster: string): string | undefined {
  if (membership?.cluster === cluster) return "it is this cluster";
  if (membership?.isGone === true && leased.length === 0) return "it was declared gone already";
  return undefined;
}

/** Returns whether the member has written, or was written about, between the two looks. */
export function hasWritten(before: LostMember, now: LostMember | undefined): boolean {
  const known = ({ leased, membership }: LostMember) => JSON.stringify([leased, membership]);
  return now === undefined || known(now) !== known(before);
}

/** Returns the addresses that nobody has, as far as the range says: those of routers and nodes may answer. */
export function exemptOf({ spec }: Pick<AddressRange, "spec">): readonly Range[] {
  const routers = routersOf(spec).map((ip): Range => ({ first: ip, last: ip }));
  return [...spec.excluded, ...spec.nodes, ...routers];
}

export function rangesOfBlocks(blocks: readonly string[]): readonly Range[] {
  return blocks.flatMap((block) => parsePrefix(block) ?? []).map(rangeOfPrefix);
}

/** Returns the status as a merge patch: the tombstone, without leases and disputes. */
export function encodeLoss({ status }: AddressRange, name: string): object {
  const { sequence, epoch, leases, members } = status;
  const known = members[name] ?? { cluster: "", token: "", writes: 0, epoch, isContested: false };
  const own = Object.keys(leases).filter((block) => leases[block]?.member === name);
  return {
    sequence: sequence + 1,
    epoch,
    leases: Object.fromEntries(own.map((block) => [block, null])),
    members: { [name]: encodeMembership({ ...known, isGone: true, isContested: false, disputed: [] }) },
  };
}
