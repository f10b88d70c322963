/** Which blocks a pool can have as ranges, if it can. */
import { areSame, haveShared, sharedSpans, spansOf } from "../../../host/core/spans.ts";
import type { Ip } from "../../../host/net/ip.ts";
import { type PoolSource, SERVING } from "../../../host/resources/pool-source.ts";
import type { AddressRange } from "../address-range.ts";
import type { RangeMember } from "../range-member.ts";
import { rangesOfBlocks } from "./blocks-of-range.ts";

interface LeavingPool {
  readonly name: string;
  /** Undefined: it has its blocks as ranges already, and the hub does not know. */
  readonly source: Pick<PoolSource, "blocks"> | undefined;
  /** Addresses of the range that the cluster has given away. */
  readonly used: readonly Ip[];
}

/** `refusal` is a clause; `served` are the blocks that become ranges. */
export type Leaving = { readonly refusal: string } | { readonly served: readonly string[] };

export function planLeaving(
  { spec }: Pick<AddressRange, "spec">,
  member: RangeMember,
  { name, source, used }: LeavingPool,
): Leaving {
  if (member.status.isContested) return { refusal: "the cluster is contested: berthctl blocks rejoin" };
  const leased = leasedFor(member, name);
  if (source === undefined) return { served: leased };
  const served = source.blocks.filter(({ state }) => SERVING.includes(state)).map(({ block }) => block);
  if (served.length === 0) return { refusal: "it has no block of which addresses are given" };
  const lost = served.filter((block) => !leased.includes(block));
  if (lost.length > 0) return { refusal: `the hub has not leased ${lost.join(", ")} to it` };
  // Disputed ones are another member's on the hub.
  const idle = [...leased, ...source.blocks.map(({ block }) => block)].filter((block) => !served.includes(block));
  const taken = spansOf(used.map((ip) => ({ first: ip, last: ip })));
  const busy = idle.filter((block) => haveShared(spansOf(rangesOfBlocks([block])), taken));
  if (busy.length > 0)
    return { refusal: `wait: pods have addresses of ${busy.join(", ")}, of which none are given now` };
  const excluded = spansOf(spec.excluded);
  const hidden = served.filter((block) => {
    const whole = spansOf(rangesOfBlocks([block]));
    return areSame(sharedSpans(whole, excluded), whole);
  });
  if (hidden.length > 0) return { refusal: `the range excludes ${hidden.join(", ")} as a whole` };
  return { served };
}

/** Returns the blocks that the member has for the pool. */
export function leasedFor({ status }: Pick<RangeMember, "status">, name: string): readonly string[] {
  return Object.entries(status.blocks).flatMap(([block, { pool }]) => (pool === name ? [block] : []));
}
