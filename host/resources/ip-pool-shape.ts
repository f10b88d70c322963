/**
 * What of a pool may be handed out: its ranges, and the addresses inside them that never are.
 * Called whenever a pool or a reserved address changes; the result feeds the core.
 */
import { compareIp, type Ip } from "../net/ip.ts";
import { firstIp, lastIp, type Prefix } from "../net/prefix.ts";
import { type Range, rangeOfPrefix, rangesOverlap } from "../net/range.ts";
import type { IpPool } from "./ip-pool.ts";
import type { ReservedIp } from "./reserved-ip.ts";

/** Both lists are sorted and disjoint and lie inside the subnet; what is masked need not lie inside `ranges`. */
export interface PoolShape {
  readonly ranges: readonly Range[];
  readonly masked: readonly Range[];
}

/**
 * The network and the broadcast address of an IPv4 subnet wider than /31. IPv6 has no broadcast, and its all-zero
 * host part, the routers' anycast address (RFC 4291 §2.6.1), is a matter of `excludeIPs`: specification masks it not.
 */
function edgesOf(subnet: Prefix): Ip[] {
  return subnet.ip.family === 4 && subnet.length < 31 ? [firstIp(subnet), lastIp(subnet)] : [];
}

/** Sorted, with what overlaps joined. */
function joinRanges(ranges: readonly Range[]): Range[] {
  const joined: Range[] = [];
  for (const range of ranges.toSorted((a, b) => compareIp(a.first, b.first))) {
    const before = joined.at(-1);
    if (before === undefined || compareIp(range.first, before.last) > 0) joined.push(range);
    else if (compareIp(range.last, before.last) > 0)
      joined[joined.length - 1] = { first: before.first, last: range.last };
  }
  return joined;
}

/** The pool's shape beside the reserved addresses, of which those of other families and address spaces are ignored. */
export function poolShape({ spec }: IpPool, reserved: readonly ReservedIp[]): PoolShape {
  const whole = rangeOfPrefix(spec.subnet);
  const single = [...edgesOf(spec.subnet), ...(spec.gateway === undefined ? [] : [spec.gateway])];
  const reservedHere = reserved
    .filter((other) => other.spec.addressSpace === spec.addressSpace)
    .flatMap((other) => other.spec.ranges.filter((range) => rangesOverlap(range, whole)))
    .map(({ first, last }) => ({
      first: compareIp(first, whole.first) < 0 ? whole.first : first,
      last: compareIp(last, whole.last) > 0 ? whole.last : last,
    }));
  return {
    ranges: joinRanges(spec.ranges),
    masked: joinRanges([...single.map((ip) => ({ first: ip, last: ip })), ...spec.excluded, ...reservedHere]),
  };
}
