/** Addresses in the test network by owner: pure names for numbers. */
import type { Family } from "../../host/net/ip.ts";

/** The second number of each segment's network. */
export const SEGMENTS = [60, 71, 72];
/** The network behind the router, and the client in it. */
export const OUTSIDE_NETWORK = 80;
export const OUTSIDE_HOST = 2;
export const ROUTER_HOST = 1;
export const NODE_HOSTS = [11, 12] as const;
/** 10.244.<node>.0/24 and fd00:244:<node>::/64 together. */
export const POD_NETWORK = { 4: "10.244.0.0/16", 6: "fd00:244::/32" } as const;

/** All of these networks and others like them: for agents whose pods are given addresses by the test itself. */
export const LAB_NETWORKS = ["10.0.0.0/8", "fd00::/16"] as const;

/** Numbers of hosts are written in IPv6 as they are in IPv4: 50 is `::50`. */
export function formatAddress(network: number, host: number, family: Family): string {
  return family === 4 ? `10.${network}.0.${host}` : `fd00:${network}::${host}`;
}

/** The address without its length (24 or 64). */
export function segmentAddress(segment: number, host: number, family: Family): string {
  const network = SEGMENTS[segment];
  if (network === undefined) throw new RangeError(`There is no segment ${segment}`);
  return formatAddress(network, host, family);
}

/** `10.60.0.0/24` */
export function segmentSubnet(segment: number, family: Family): string {
  return family === 4 ? `${segmentAddress(segment, 0, 4)}/24` : `${segmentAddress(segment, 0, 6).slice(0, -1)}/64`;
}

/** Returns the address of the client behind the router. */
export function outsideAddress(family: Family): string {
  return formatAddress(OUTSIDE_NETWORK, OUTSIDE_HOST, family);
}

/** Returns the address of a routed pod; `node` is 1 or 2. */
export function podAddress(node: 1 | 2, host: number, family: Family): string {
  return family === 4 ? `10.244.${node}.${host}` : `fd00:244:${node}::${host}`;
}

export function lengthOf(family: Family): number {
  return family === 4 ? 24 : 64;
}
