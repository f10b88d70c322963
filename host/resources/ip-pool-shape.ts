/** Which addresses of a pool may be allocated: its ranges without the masked addresses. The result feeds the core. */
import { compareIp, type Ip } from "../net/ip.ts";
import { firstIp, lastIp, type Prefix } from "../net/prefix.ts";
import { type Range, rangeOfPrefix, rangesOverlap } from "../net/range.ts";
import type { IpPool } from "./ip-pool.ts";
import type { ReservedIp } from "./reserved-ip.ts";

/** Both lists are sorted, disjoint and inside the subnet. Masked addresses may lie outside `ranges`. */
export interface PoolShape {
  readonly ranges: readonly Range[];
  readonly masked: readonly Range[];
}

/**
 * Returns the network and the broadcast address of an IPv4 subnet wider than /31, else none. IPv6 has no broadcast. The
 * subnet-router anycast address (RFC 4291 §2.6.1) is not masked; `excludeIPs` may list it.
 */
function edgesOf(subnet: Prefix): Ip[] {
  return subnet.ip.family === 4 && subnet.length < 31 ? [firstIp(subnet), lastIp(subnet)] : [];
}

/** Returns the ranges sorted, overlapping ones joined. */
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

/** Returns the pool's shape. Reserved addresses of other families and address spaces are ignored. */
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
