/** The addresses of a pool that may be allocated: its ranges without the masked ones. The result feeds the core. */

import type { PoolShape } from "../core/pool-shape.ts";
import { joinRanges } from "../core/spans.ts";
import { isSameList } from "../lib/same-list.ts";
import { compareIp, equalIp, type Ip } from "../net/ip.ts";
import { prefixContains } from "../net/prefix.ts";
import { equalRange, rangeOfPrefix, rangesOverlap } from "../net/range.ts";
import { edgesOf } from "./fields/address-spec.ts";
import type { IpPool, IpPoolSpec } from "./ip-pool.ts";
import type { ReservedIp } from "./reserved-ip.ts";

/**
 * Returns what the pool names as routers, its gateway and the next hops of its routes, if they are addresses of its
 * subnet, as a link-local gateway is not.
 */
export function routersOf({ subnet, gateway, routes }: Pick<IpPoolSpec, "subnet" | "gateway" | "routes">): Ip[] {
  const named = [gateway, ...routes.map(({ gw }) => gw)];
  return named.filter((ip): ip is Ip => ip !== undefined && prefixContains(subnet, ip));
}

/** Returns these, and routers that pods of the pool still use: no pool of the segment hands them out. */
export function heldRoutersOf(spec: IpPoolSpec): Ip[] {
  return [...routersOf(spec), ...(spec.formerRouters ?? [])];
}

/** Returns the routers of pools of one subnet, each once. */
export function unionOfRouters(pools: Iterable<Pick<IpPool, "spec">>): readonly Ip[] {
  const byValue = new Map<bigint, Ip>();
  for (const { spec } of pools) for (const ip of heldRoutersOf(spec)) byValue.set(ip.value, ip);
  return [...byValue.values()];
}

/** Returns whether both are the same addresses in the same order. */
export function equalRouters(a: readonly Ip[], b: readonly Ip[]): boolean {
  return isSameList(a, b, equalIp);
}

/**
 * Returns the pool's shape; both lists are ascending and inside the subnet, without overlaps or touches, and masks may
 * lie outside the ranges. Reserved addresses of other families and address spaces are ignored. `others`: further
 * addresses of the subnet that no pod may have.
 */
export function poolShape(
  { spec }: Pick<IpPool, "spec">,
  reserved: readonly ReservedIp[],
  others: readonly Ip[] = [],
): PoolShape {
  const whole = rangeOfPrefix(spec.subnet);
  const single = [...edgesOf(spec.subnet, whole), ...heldRoutersOf(spec), ...others];
  const reservedHere = reserved
    .filter((other) => other.spec.addressSpace === spec.addressSpace)
    .flatMap((other) => other.spec.ranges.filter((range) => rangesOverlap(range, whole)))
    .map(({ first, last }) => ({
      first: compareIp(first, whole.first) < 0 ? whole.first : first,
      last: compareIp(last, whole.last) > 0 ? whole.last : last,
    }));
  const masked = [...single.map((ip) => ({ first: ip, last: ip })), ...spec.excluded, ...reservedHere];
  const ranges = joinRanges(spec.ranges, spec.family);
  // Mostly they are joined already: shared lists are stored once.
  return {
    ranges: isSameList(ranges, spec.ranges, equalRange) ? spec.ranges : ranges,
    masked: joinRanges(masked, spec.family),
  };
}

/** Returns whether both shapes have the same ranges and masked addresses. */
export function equalShape(a: PoolShape, b: PoolShape): boolean {
  return isSameList(a.ranges, b.ranges, equalRange) && isSameList(a.masked, b.masked, equalRange);
}
