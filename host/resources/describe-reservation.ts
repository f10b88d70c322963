import { formatRange } from "../net/range.ts";
import type { IpPool } from "./ip-pool.ts";
import { placeReservation } from "./locate-address.ts";
import { hasEnded, type ReservedIp } from "./reserved-ip.ts";

/** `nowMs`: by the wall clock. */
export function describeReservations(all: readonly ReservedIp[], pools: Iterable<IpPool>, nowMs: number) {
  const inForce = all.filter((each) => !hasEnded(each, nowMs));
  return all.map((one) => {
    const { name, created: since, spec } = one;
    const { ranges, addressSpace, owner, until } = spec;
    const isOver = !inForce.includes(one);
    return {
      ...{ name, ips: ranges.map(formatRange), addressSpace, owner, since, hasEnded: isOver },
      until: until === undefined ? undefined : new Date(until).toISOString(),
      ...placeReservation(one, pools, inForce),
    };
  });
}
