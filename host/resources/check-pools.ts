/** The rules between pools: without a webhook the API server accepts pools that contradict each other. */
import { compareText } from "../lib/order.ts";
import { compareIp, equalIp, isLinkLocal } from "../net/ip.ts";
import { formatPrefix, prefixContains } from "../net/prefix.ts";
import { describeFaults } from "./fields/address-spec.ts";
import type { IpPool } from "./ip-pool.ts";
import type { Subnet } from "./subnet.ts";

function inSpace(pool: IpPool): string {
  return pool.spec.addressSpace === "" ? "" : ` of address space "${pool.spec.addressSpace}"`;
}

function refusal(pool: IpPool, other: IpPool): string {
  const [subnet, otherSubnet] = [formatPrefix(pool.spec.subnet), formatPrefix(other.spec.subnet)];
  return (
    `is refused: its subnet ${subnet} partly overlaps ${otherSubnet} of IPPool ` +
    `"${other.name}"${inSpace(pool)}; make them equal or disjoint`
  );
}

/**
 * Returns whether pools with overlapping subnets share one segment, whose mask they change one after the other: the
 * subnets are equal, both pools were good before, or they name one router.
 */
function areOfOneSegment(pool: IpPool, other: IpPool): boolean {
  if (haveOneLength(pool, other)) return true;
  const [one, two] = [pool.spec.gateway, other.spec.gateway];
  const haveOneRouter = one !== undefined && two !== undefined && !isLinkLocal(one) && equalIp(one, two);
  return haveOneRouter || (pool.isReady === true && other.isReady === true);
}

function bySubnet({ spec: a }: IpPool, { spec: b }: IpPool): number {
  const bySpace = compareText(a.addressSpace, b.addressSpace);
  return bySpace || compareIp(a.subnet.ip, b.subnet.ip) || a.subnet.length - b.subnet.length;
}

function haveOneLength({ spec: a }: IpPool, { spec: b }: IpPool): boolean {
  return a.subnet.length === b.subnet.length;
}

/** `other` is equal or wider. */
function isInside({ spec: { addressSpace, subnet } }: IpPool, { spec: other }: IpPool): boolean {
  return other.addressSpace === addressSpace && prefixContains(other.subnet, subnet.ip);
}

/** Returns the pools by segment. The subnet of a segment's first pool contains the others'. */
export function segmentsOf(pools: Iterable<IpPool>, isSegment = areOfOneSegment): IpPool[][] {
  const segments: IpPool[][] = [];
  for (const pool of [...pools].sort(bySubnet)) {
    const segment = segments.at(-1) ?? [];
    const [first] = segment;
    if (first !== undefined && isInside(pool, first) && isSegment(first, pool)) segment.push(pool);
    else segments.push([pool]);
  }
  return segments;
}

/** Returns for each pool those with overlapping subnets in other segments. */
function rivalsOf(pools: readonly IpPool[]): ReadonlyMap<IpPool, IpPool[]> {
  const rivals = new Map<IpPool, IpPool[]>(pools.map((pool) => [pool, []]));
  let around: IpPool[][] = [];
  for (const network of segmentsOf(pools, haveOneLength)) {
    around = around.filter(([outer]) => outer !== undefined && network[0] !== undefined && isInside(network[0], outer));
    for (const outer of around.flat()) {
      const inner = network.filter((pool) => !areOfOneSegment(pool, outer));
      rivals.get(outer)?.push(...inner);
      for (const pool of inner) rivals.get(pool)?.push(outer);
    }
    around.push(network);
  }
  return rivals;
}

/** Older pools first, because pods use them. Pools of the same second, and in embedded mode, keep their order. */
function byAge(a: IpPool, b: IpPool): number {
  const [one, other] = [a.created ?? "", b.created ?? ""];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Returns why the pool is unusable by itself: no pod can have its addresses. Undefined if it is usable. */
export function refuseFaulty({ spec }: IpPool): string | undefined {
  const isAboutAddresses = spec.faults?.some(({ path }) => /^spec\.(?:subnet|ips)/.test(path));
  return isAboutAddresses && spec.ranges.length === 0 ? `is refused: ${describeFaults(spec)}` : undefined;
}

/**
 * Accepts the older of two pools with partly overlapping subnets, else the first one. Returns the `accepted` ones in
 * the order given, and why the others are `refused`, by name: `is refused: …`.
 */
export function checkPools(pools: readonly IpPool[]) {
  const fitting = new Set<IpPool>();
  const refused = new Map<string, string>();
  const rivals = rivalsOf(pools);
  for (const pool of pools.toSorted(byAge)) {
    const other = rivals.get(pool)?.find((each) => fitting.has(each));
    const reason = refuseFaulty(pool) ?? (other && refusal(pool, other));
    if (reason === undefined) fitting.add(pool);
    else refused.set(pool.name, reason);
  }
  return { accepted: pools.filter((pool) => fitting.has(pool)), refused };
}

/** Returns sentences about the pools that are refused, and those that have values that new pools cannot have. */
export function problemsOf(accepted: Iterable<IpPool>, refused: ReadonlyMap<string, string>): string[] {
  const faulty = [...accepted].flatMap((pool) => describeOldValues(pool) ?? []);
  return [...[...refused].map(([name, reason]) => `IPPool "${name}" ${reason}`), ...faulty];
}

/** Returns a sentence about values that the object has had since an earlier release; undefined if it has none. */
export function describeOldValues({ kind, name, spec }: IpPool | Subnet): string | undefined {
  const faults = describeFaults(spec);
  return faults && `${kind} "${name}" has values that new ${kind}s cannot have: ${faults}`;
}
