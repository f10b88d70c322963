/** Finds the pools with an address in their subnet, and whether they may allocate it. */

import { equalIp, type Ip } from "../net/ip.ts";
import { formatPrefix } from "../net/prefix.ts";
import { rangeContains, rangeOfPrefix } from "../net/range.ts";
import { isSpecial } from "../net/special.ts";
import { edgesOf } from "./fields/address-spec.ts";
import type { IpPool } from "./ip-pool.ts";
import { routersOf } from "./ip-pool-shape.ts";
import { NONE_OCCUPIED, type OccupiedIp, OccupiedIps } from "./occupied-ips.ts";
import { describeSource, otherMemberOf } from "./pool-source.ts";
import { describeOwner, findReserved, type ReservedIp } from "./reserved-ip.ts";

export const NO_PLACE = "no pool has it in its subnet";

/** Why a pool does not allocate an address outside its `ips`. */
export const NOT_IN_RANGES = "spec.ips does not have it";

interface AddressPlace {
  readonly pool: string;
  readonly addressSpace: string;
  readonly subnet: string;
  /** Why the pool never allocates the address: a clause. Default: it may. */
  readonly excluded?: string;
  /** The ReservedIP that has it, its pod, and why the pool gives it to no owner either. */
  readonly reserved?: { readonly name: string; readonly owner?: string; readonly excluded?: string };
  /** The block of a pool that leases its addresses: `10.6.0.16/28 of AddressRange "lan", Active`. */
  readonly block?: string;
}

/** Returns a place for each pool whose subnet has the address, in the order given. `pools`: all existing pools. */
export function locateAddress(
  ip: Ip,
  pools: Iterable<IpPool>,
  reserved: readonly ReservedIp[],
  occupied: OccupiedIps = NONE_OCCUPIED,
): AddressPlace[] {
  const around = [...pools].filter(({ spec }) => rangeContains(rangeOfPrefix(spec.subnet), ip));
  return around.map((pool) => {
    const { name, spec } = pool;
    const excluded = findExclusion(ip, pool, { reserved, occupied, siblings: around });
    const block = blockOf(ip, pool);
    const where = { pool: name, addressSpace: spec.addressSpace, subnet: formatPrefix(spec.subnet) };
    const place = block === undefined ? where : { ...where, block };
    if (excluded === undefined) return place;
    const by = findReserved(reserved, { space: spec.addressSpace, ip });
    if (by === undefined) return { ...place, excluded };
    const { owner } = by.spec;
    const other = findExclusion(ip, pool, { reserved: [], occupied, siblings: around });
    const own = { ...(owner && { owner: describeOwner(owner) }), ...(other !== undefined && { excluded: other }) };
    return { ...place, excluded, reserved: { name: by.name, ...own } };
  });
}

/** Returns the pool that gives a reservation's address, or why no pool gives it to its owner: a clause. */
export function placeReservation(
  { name, spec: { addressSpace, ranges, owner } }: ReservedIp,
  pools: Iterable<IpPool>,
  reserved: readonly ReservedIp[],
): { readonly pool?: string | undefined; readonly why?: string } {
  const all = ranges.slice(0, 1).flatMap((range) => locateAddress(range.first, pools, reserved));
  const places = all.filter((place) => place.addressSpace === addressSpace);
  const whyOf = ({ excluded, reserved }: AddressPlace) => (reserved?.name === name ? reserved.excluded : excluded);
  const [first] = places;
  const found = owner === undefined ? first : places.find((place) => whyOf(place) === undefined);
  if (found !== undefined || owner === undefined) return { pool: found?.pool };
  return { why: first === undefined ? NO_PLACE : `pool ${first.pool}: ${whyOf(first)}` };
}

function blockOf(ip: Ip, { source }: IpPool): string | undefined {
  if (source === undefined) return undefined;
  const block = source.blocks.find(({ range }) => rangeContains(range, ip));
  return block && `${block.block} of ${describeSource(source)}, ${block.state}`;
}

/**
 * Returns the addresses in the pool's ranges that routers and other machines have, with reasons, ascending. `routers`:
 * those of all siblings.
 */
export function findExceptions(pool: IpPool, routers: readonly Ip[], around: PoolSurroundings): readonly OccupiedIp[] {
  const named = routers.map((ip) => ({ ip, why: "" }));
  const all = new OccupiedIps([...named, ...around.occupied.within(rangeOfPrefix(pool.spec.subnet))]);
  const inRanges = pool.spec.ranges.flatMap((range) => all.within(range));
  return inRanges.map(({ ip, why }) => ({ ip, why: findExclusion(ip, pool, around) ?? why }));
}

/** Other objects that affect the addresses of a pool. */
export interface PoolSurroundings {
  readonly reserved: readonly ReservedIp[];
  readonly occupied: OccupiedIps;
  /** Pools whose subnet has the address; those of other address spaces do not matter. */
  readonly siblings: Iterable<IpPool>;
}

/**
 * Returns why the pool never allocates the address, a clause; undefined if it may. ip-pool-shape.ts masks the same
 * addresses. `isBrief`: without the name of a reservation's owner.
 */
export function findExclusion(
  ip: Ip,
  { spec, source }: IpPool,
  { reserved, occupied, siblings }: PoolSurroundings,
  isBrief = false,
): string | undefined {
  const { subnet, gateway, ranges, excluded, addressSpace } = spec;
  if (gateway !== undefined && equalIp(gateway, ip)) return "it is the gateway";
  const [network, broadcast] = edgesOf(subnet, rangeOfPrefix(subnet));
  if (network !== undefined && equalIp(network, ip)) return "it is the network address of the subnet";
  if (broadcast !== undefined && equalIp(broadcast, ip)) return "it is the broadcast address of the subnet";
  if (isSpecial(ip)) return "no pod can have it: it is not a unicast address of a machine";
  if (excluded.some((range) => rangeContains(range, ip))) return "spec.excludeIPs has it";
  const by = findReserved(reserved, { space: addressSpace, ip });
  const { owner } = by?.spec ?? {};
  if (by !== undefined)
    return `ReservedIP "${by.name}" has it${owner && !isBrief ? ` for ${describeOwner(owner)}` : ""}`;
  if (routersOf(spec).some((router) => equalIp(router, ip))) return "it is a next hop of spec.routes";
  for (const { name, spec: other } of siblings) {
    if (other.addressSpace !== addressSpace) continue;
    if (other.gateway !== undefined && equalIp(other.gateway, ip)) return `it is the gateway of IPPool "${name}"`;
    if (routersOf(other).some((router) => equalIp(router, ip)))
      return `it is a next hop of spec.routes of IPPool "${name}"`;
    if (other.formerRouters?.some((router) => equalIp(router, ip)) === true)
      return `pods of IPPool "${name}" still route by it`;
  }
  const why = occupied.find(ip)?.why;
  if (why !== undefined) return why;
  if (ranges.some((range) => rangeContains(range, ip))) return undefined;
  if (source === undefined) return NOT_IN_RANGES;
  const block = source.blocks.find(({ range }) => rangeContains(range, ip));
  if (block !== undefined) return `its block ${block.block} is ${block.state}, and gives no addresses`;
  const other = otherMemberOf(source, ip);
  if (other !== undefined) return `its block of ${describeSource(source)} is cluster "${other}"'s`;
  return `no block that the pool has leased has it${source.problem === "" ? "" : `: ${source.problem}`}`;
}

/** As findExclusion, for the owner of the address: no ReservedIP with an owner excludes it. */
export function findOwnExclusion(ip: Ip, pool: IpPool, around: PoolSurroundings): string | undefined {
  const isOwned = findReserved(around.reserved, { space: pool.spec.addressSpace, ip })?.spec.owner !== undefined;
  return findExclusion(ip, pool, isOwned ? { ...around, reserved: [] } : around);
}
