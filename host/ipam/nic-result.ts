/** Builds the CNI result of a NIC, independent of the version: addresses, gateways, routes. */

import { CniError, ErrorCode } from "../cni/error.ts";
import type { CniResult, ResultIp, ResultRoute } from "../cni/result.ts";
import { ANNOTATION_PREFIX, type AnnotatedRoute } from "../config/annotations.ts";
import { equalIp, formatIp, type Ip, isLinkLocal } from "../net/ip.ts";
import { EVERYWHERE, formatPrefix, type Prefix, prefixContains } from "../net/prefix.ts";
import { rangeOfPrefix } from "../net/range.ts";
import { edgesOf } from "../resources/fields/address-spec.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import type { PoolsByName } from "../resources/pools-by-name.ts";
import type { PoolAddress } from "./pick.ts";

export interface NicResultOptions {
  /** The NIC's addresses. */
  readonly held: readonly PoolAddress[];
  readonly pools: PoolsByName;
  /** No gateway and no default route on this NIC (`cleangateway`). */
  readonly cleanGateway: boolean;
  /** The routes of the annotation `ipam.vendor.io/routes` that this NIC carries ({@link routesOfNic}). */
  readonly podRoutes: readonly AnnotatedRoute[];
}

/**
 * Returns addresses v4 before v6, and routes: default, the pool's, then those of the pod. A default route of the pod
 * replaces the others of its family.
 */
export function buildNicResult({ held, pools, cleanGateway, podRoutes }: NicResultOptions): CniResult {
  const replaced = new Set(podRoutes.filter(isDefault).map(({ dst }) => dst.ip.family));
  const isKept = (route: ResultRoute): boolean => !isDefault(route) || !replaced.has(route.dst.ip.family);
  const ips: ResultIp[] = [];
  const routes: ResultRoute[] = [];
  for (const each of held.toSorted((a, b) => a.ip.family - b.ip.family)) {
    const { ip, prefixLength: length } = each;
    const pool = findPoolOf(each, pools);
    const gateway = cleanGateway ? undefined : pool?.spec.gateway;
    ips.push({ address: { ip, length }, gateway });
    if (gateway !== undefined && !replaced.has(gateway.family))
      routes.push({ dst: EVERYWHERE[gateway.family], gw: gateway });
    routes.push(...(pool?.spec.routes ?? []).filter(isKept));
  }
  return { interfaces: [], ips, routes: [...routes, ...podRoutes] };
}

/**
 * Returns the pool of an address that may be older than the pool. If that was renamed or moved, the pool whose subnet
 * contains the address has its gateway. Undefined if it was deleted.
 */
export function findPoolOf({ space, ip, pool }: PoolAddress, pools: PoolsByName): IpPool | undefined {
  const isAround = ({ spec }: IpPool): boolean => spec.addressSpace === space && prefixContains(spec.subnet, ip);
  const own = pools.get(pool);
  return own !== undefined && isAround(own) ? own : [...pools.values()].find(isAround);
}

const isDefault = ({ dst }: ResultRoute): boolean => dst.length === 0;

interface Carriers {
  /** All addresses that the pod has by now, in the order in which their NICs are attached. */
  readonly held: readonly PoolAddress[];
  readonly pools: PoolsByName;
  /** Whether the pod will have no NIC beside theirs. */
  readonly areAll: boolean;
}

/** Returns the routes that the NIC carries. Throws CniError 102 for a route that none of the pod's NICs can carry. */
export function routesOfNic(
  podRoutes: readonly AnnotatedRoute[],
  ifName: string,
  carriers: Carriers,
): readonly AnnotatedRoute[] {
  return podRoutes.filter((route) => {
    const able = carriersOf(route, carriers);
    if (able.length === 0 && carriers.areAll) throw lost(route, carriers.held);
    return able.some((each) => each.ifName === ifName);
  });
}

/**
 * Returns the addresses whose NICs carry the route: each NIC whose prefix contains its gateway. Every link may have a
 * router with the same link-local address, so that one goes to the first NIC whose pool names the router, or to a pod's
 * only NIC.
 */
function carriersOf({ gw }: AnnotatedRoute, { held, pools, areAll }: Carriers): readonly PoolAddress[] {
  if (!isLinkLocal(gw)) return held.filter((each) => isNeighbour(gw, prefixOf(each)));
  const able = held.filter(({ ip }) => ip.family === 6);
  const naming = able.find((each) => {
    const pool = findPoolOf(each, pools);
    return pool !== undefined && isNamedBy(gw, pool);
  });
  if (naming !== undefined) return [naming];
  return areAll && new Set(held.map(({ ifName }) => ifName)).size === 1 ? able : [];
}

function prefixOf({ ip, prefixLength: length }: PoolAddress): Prefix {
  return { ip, length };
}

/** Returns whether a router on the link can have the address: inside the subnet, no network or broadcast address. */
function isNeighbour(gw: Ip, prefix: Prefix): boolean {
  return prefixContains(prefix, gw) && !edgesOf(prefix, rangeOfPrefix(prefix)).some((edge) => equalIp(edge, gw));
}

function isNamedBy(gw: Ip, { spec: { gateway, routes } }: IpPool): boolean {
  return (gateway !== undefined && equalIp(gateway, gw)) || routes.some((route) => equalIp(route.gw, gw));
}

function lost({ dst, gw }: AnnotatedRoute, held: readonly PoolAddress[]): CniError {
  const prefixes = held.map((each) => formatPrefix(prefixOf(each))).join(", ");
  const reason = isLinkLocal(gw)
    ? "is link-local, and no pool of the pod's NICs names it; add it to the pool of the NIC, as its gateway or in its routes"
    : `lies in none of ${prefixes}, or is the first or last address of one`;
  return new CniError(
    ErrorCode.InvalidAnnotation,
    `Annotation "${ANNOTATION_PREFIX}routes": no NIC of the pod can carry the route to ${formatPrefix(dst)}: ` +
      `its gateway ${formatIp(gw)} ${reason}`,
  );
}
