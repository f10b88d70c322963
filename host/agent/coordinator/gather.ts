/**
 * What a request means: the settings that hold for it, who the pod is, and what is in the pod and on the node now.
 * Called by attach.ts and detach.ts.
 * Effects: reads of both namespaces.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { pluginKeys } from "../../cni/net-conf.ts";
import type { AttachRequest, CniRequest } from "../../cni/request.ts";
import type { CniResult } from "../../cni/result.ts";
import { decodeCoordinatorConf } from "../../config/coordinator-conf.ts";
import { type CoordinatorConf, resolveCoordinatorConf } from "../../config/coordinator-settings.ts";
import { NFT_TABLE, POD_VETH } from "../../coordinator/plan/constants.ts";
import type { LinkRemover } from "../../kernel/link-remover.ts";
import { RT_TABLE_LOCAL } from "../../kernel/netlink/route/constants.ts";
import { observeNamespace } from "../../kernel/observe-namespace.ts";
import type { NamespaceSource, OpenNamespace } from "../../kernel/open-namespace.ts";
import type { Faults } from "../../lib/fault.ts";
import type { Log } from "../../lib/log.ts";
import type { Ip } from "../../net/ip.ts";
import type { Veth } from "../../plan/operation.ts";
import type { NamespaceState } from "../../plan/state.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Snapshot } from "../../resources/snapshot.ts";

export interface CoordinatorTools {
  /** The node's own namespace. */
  readonly host: OpenNamespace;
  readonly remover: LinkRemover;
  readonly registry: Registry;
  readonly snapshot: () => Snapshot;
  readonly faults: Faults;
  readonly log: Log;
}

/** What the configuration says, and sentences about how it says it. */
export interface Settings {
  readonly conf: CoordinatorConf;
  readonly warnings: readonly string[];
}

/** The entry's own keys over the resource Coordinator over the defaults. Throws ConfigError. */
export function settingsOf({ netConf }: CniRequest, { coordinator }: Snapshot): Settings {
  const entry = decodeCoordinatorConf(pluginKeys(netConf), "CNI configuration");
  const layers = [entry, coordinator?.spec].filter((layer) => layer !== undefined);
  return { conf: resolveCoordinatorConf(...layers), warnings: layers.flatMap(({ warnings }) => warnings) };
}

/** The main plugin's result, which the coordinator completes. */
export function requirePrevResult({ netConf, command }: AttachRequest): CniResult {
  if (netConf.prevResult !== undefined) return netConf.prevResult;
  const text = `${command} needs "prevResult", found nothing; the coordinator stands after the main plugin in "plugins"`;
  throw new CniError(ErrorCode.InvalidNetworkConfig, text);
}

/** Those of the request's NIC. A result that names no interface has those of the one NIC. */
export function addressesOf(result: CniResult, ifName: string): Ip[] {
  const { interfaces } = result;
  const isOfNic = (index: number | undefined): boolean => {
    const named = index === undefined ? undefined : interfaces[index];
    return named === undefined || (named.name === ifName && named.sandbox !== undefined && named.sandbox !== "");
  };
  return result.ips.filter((ip) => isOfNic(ip.interface)).map(({ address }) => address.ip);
}

const observedOf = (links: readonly string[]): string[] => [
  ...["all", ...links].map((link) => `ipv4/conf/${link}/rp_filter`),
  ...links.map((link) => `ipv6/conf/${link}/disable_ipv6`),
];

/** Names of links in the pod whose settings count. */
export function observePod(pod: NamespaceSource, ifName: string, first: string): NamespaceState {
  const state = observeNamespace(pod, {
    addresses: true,
    routeTables: "every",
    rules: true,
    neighbours: [{ link: POD_VETH }],
    sysctls: observedOf([...new Set([ifName, first, POD_VETH])]),
    tables: [NFT_TABLE],
  });
  return { ...state, routes: state.routes.filter(({ table }) => table !== RT_TABLE_LOCAL) };
}

export function observeHost(
  host: NamespaceSource,
  pair: Veth,
  table: number,
  addresses: readonly Ip[],
  isUnderlay: boolean,
): NamespaceState {
  return observeNamespace(host, {
    addresses: true,
    routeTables: [table],
    rules: true,
    neighbours: isUnderlay ? [{ link: pair.host.name }] : addresses.map((ip) => ({ ip })),
    sysctls: [...observedOf([pair.host.name]), "ipv4/ip_forward", "ipv6/conf/all/forwarding"],
    tables: [NFT_TABLE],
  });
}
