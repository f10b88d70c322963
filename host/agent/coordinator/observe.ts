/**
 * Reads the planners' input: the addresses of the result, and the state of the pod and the node.
 * Effects: reads of both namespaces.
 */

import { CniError, ErrorCode } from "../../cni/error.ts";
import type { AttachRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import { MAX_POD_ADDRESSES } from "../../coordinator/plan/address-policy.ts";
import { BERTH_PROTOCOL, NFT_TABLE, POD_VETH } from "../../coordinator/plan/constants.ts";
import { uniqueIps } from "../../coordinator/plan/own-objects.ts";
import { RT_SCOPE_UNIVERSE } from "../../kernel/netlink/route/constants.ts";
import { observeMirrored, observeNamespace } from "../../kernel/observe-namespace.ts";
import type { NamespaceSource, NodeNamespace } from "../../kernel/open-namespace.ts";
import type { Ip } from "../../net/ip.ts";
import type { Veth } from "../../plan/operation.ts";
import type { NamespaceState, SysctlKey } from "../../plan/state.ts";

/** Returns the result of the main plugin. Throws CniError 7 without one. */
export function requirePrevResult({ netConf, command }: AttachRequest): CniResult {
  if (netConf.prevResult !== undefined) return netConf.prevResult;
  const text = `${command} needs "prevResult", found nothing; put the coordinator after the main plugin in "plugins"`;
  throw new CniError(ErrorCode.InvalidNetworkConfig, text);
}

/** Returns the addresses of the request's NIC; all of them if the result names no interface. */
export function addressesOf(result: CniResult, ifName: string): Ip[] {
  const { interfaces } = result;
  const isOfNic = (index: number | undefined): boolean => {
    const named = index === undefined ? undefined : interfaces[index];
    return named === undefined || (named.name === ifName && named.sandbox !== undefined && named.sandbox !== "");
  };
  return result.ips.filter((ip) => isOfNic(ip.interface)).map(({ address }) => address.ip);
}

/**
 * Returns the settings that plans set: those of a pair's end, which may have to be created, and of other links that
 * carry the traffic.
 */
const settingKeysOf = (end: string, carriers: readonly string[]): SysctlKey[] => [
  ...["all", end, ...carriers].map((link) => `ipv4/conf/${link}/rp_filter`),
  `ipv6/conf/${end}/disable_ipv6`,
];

function globalAddresses({ addresses }: NamespaceState): Ip[] {
  return addresses.filter(({ scope }) => scope === RT_SCOPE_UNIVERSE).map(({ prefix }) => prefix.ip);
}

/** Observes the pod. `ifName` and `first` are links whose settings are read as well. */
export function observePod(pod: NamespaceSource, ifName: string, first: string): NamespaceState {
  return observeNamespace(pod, {
    addresses: true,
    routeTables: "not local",
    rules: true,
    neighbours: [{ link: POD_VETH }],
    sysctls: settingKeysOf(POD_VETH, [...new Set([ifName, first])]),
    tables: [NFT_TABLE],
  });
}

/**
 * Returns the addresses by which the node may know the pod: those that the main plugin reports, and those on the
 * pod's links up to the permitted number.
 */
export function knownAddresses(addresses: readonly Ip[], pod: NamespaceState): Ip[] {
  return uniqueIps([...addresses, ...globalAddresses(pod).slice(0, MAX_POD_ADDRESSES)]);
}

/** The query for the node's state that concerns one pod. */
interface HostQuery {
  readonly pair: Veth;
  /** Routing tables. */
  readonly tables: readonly number[];
  /** The pod's addresses: of the routing tables only routes to these, and routes that are not Berth's. */
  readonly addresses: readonly Ip[];
  readonly isUnderlay: boolean;
  /** Index of a link whose state is observed besides the pair's. */
  readonly link?: number | undefined;
}

/** Observes the node. Its links are the pair's, and those of the routes and neighbours that are found. */
export function observeHost(host: NodeNamespace, query: HostQuery): NamespaceState {
  const { pair, tables, addresses, isUnderlay, link } = query;
  return observeMirrored(host, host.mirror, {
    addresses,
    linkName: pair.host.name,
    linkIndex: link,
    routeTables: tables,
    ownProtocol: BERTH_PROTOCOL,
    neighbours: isUnderlay ? [{ link: pair.host.name }] : addresses.map((ip) => ({ ip })),
    sysctls: [
      ...settingKeysOf(pair.host.name, []),
      ...["default", pair.host.name].map((link) => `ipv4/conf/${link}/forwarding`),
      ...["ipv4/ip_forward", "ipv6/conf/all/forwarding"],
    ],
    tables: [NFT_TABLE],
  });
}
