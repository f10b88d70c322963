/**
 * Builds the CNI result of a NIC, independent of the version: addresses, gateways, routes.
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import type { CniResult, ResultIp, ResultRoute } from "../cni/result.ts";
import { ANNOTATION_PREFIX, type AnnotatedRoute } from "../config/annotations.ts";
import { formatIp, type Ip } from "../net/ip.ts";
import { EVERYWHERE, formatPrefix, type Prefix, prefixContains } from "../net/prefix.ts";
import type { IpPool } from "../resources/ip-pool.ts";

/** One address of the NIC; the pool may have been deleted since. */
export interface HeldIp {
  readonly ip: Ip;
  readonly prefixLength: number;
  readonly pool: IpPool | undefined;
}

export interface NicResultOptions {
  readonly held: readonly HeldIp[];
  /** No gateway and no default route on this NIC (`cleangateway`). */
  readonly cleanGateway: boolean;
  /** Annotation `ipam.vendor.io/routes`, of the whole pod. */
  readonly podRoutes: readonly AnnotatedRoute[];
}

/** Returns addresses v4 before v6, and routes: default, the pool's, then those of the pod whose gateway is on this NIC. A default route of the pod replaces the
 * others of its family. */
export function buildNicResult({ held, cleanGateway, podRoutes }: NicResultOptions): CniResult {
  const ordered = [...held].sort((a, b) => a.ip.family - b.ip.family);
  const ips = ordered.map(({ ip, prefixLength, pool }): ResultIp => {
    const gateway = cleanGateway ? undefined : pool?.spec.gateway;
    return { address: { ip, length: prefixLength }, ...(gateway === undefined ? {} : { gateway }) };
  });
  const routes = ordered.flatMap(({ pool }, index): ResultRoute[] => {
    const gateway = ips[index]?.gateway;
    const defaultRoute = gateway === undefined ? [] : [{ dst: EVERYWHERE[gateway.family], gw: gateway }];
    return [...defaultRoute, ...(pool?.spec.routes ?? [])];
  });
  const own = routesOfNic(
    podRoutes,
    ips.map(({ address }) => address),
  );
  return { interfaces: [], ips, routes: [...withoutReplaced(routes, own), ...own] };
}

const isDefault = ({ dst }: ResultRoute): boolean => dst.length === 0;

/** Returns the pools' routes without default routes of a family for which the pod has its own. */
function withoutReplaced(routes: readonly ResultRoute[], own: readonly AnnotatedRoute[]): readonly ResultRoute[] {
  const replaced = new Set(own.filter(isDefault).map(({ dst }) => dst.ip.family));
  return routes.filter((route) => !isDefault(route) || !replaced.has(route.dst.ip.family));
}

/** Each route goes to the NIC whose prefix contains its gateway. */
function routesOfNic(podRoutes: readonly AnnotatedRoute[], addresses: readonly Prefix[]): AnnotatedRoute[] {
  return podRoutes.filter(({ gw }) => addresses.some((address) => prefixContains(address, gw)));
}

/** Throws CniError 102 for a route that none of the pod's NICs can carry; `addresses` are those of all of them. */
export function requireCarriers(podRoutes: readonly AnnotatedRoute[], addresses: readonly Prefix[]): void {
  const carried = routesOfNic(podRoutes, addresses);
  const lost = podRoutes.find((route) => !carried.includes(route));
  if (lost === undefined) return;
  throw new CniError(
    ErrorCode.InvalidAnnotation,
    `Annotation "${ANNOTATION_PREFIX}routes": no NIC of the pod can carry the route to ${formatPrefix(lost.dst)}: ` +
      `its gateway ${formatIp(lost.gw)} lies in none of ${addresses.map(formatPrefix).join(", ")}`,
  );
}
