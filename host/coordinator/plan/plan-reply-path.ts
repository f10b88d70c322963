/**
 * The nf_tables tables. In an underlay pod, replies are sent back by the pair through which the request came, and
 * nothing is forwarded between its node and a NIC. On the node, connections to services that leave it are masqueraded
 * so that they come back to it.
 */
import { type IfName, parseIfName } from "../../cni/names.ts";
import type { CoordinatorConf } from "../../config/coordinator-settings.ts";
import {
  NF_INET_FORWARD,
  NF_INET_LOCAL_OUT,
  NF_INET_POST_ROUTING,
  NF_INET_PRE_ROUTING,
  NF_IP_PRI_FILTER,
  NF_IP_PRI_MANGLE,
  NF_IP_PRI_NAT_SRC,
} from "../../kernel/netlink/nftables/constants.ts";
import {
  drop,
  masquerade,
  matchDnat,
  matchGroup,
  matchInterface,
  matchMark,
  matchNewConnection,
  matchOtherThan,
  setMark,
} from "../../kernel/netlink/nftables/statement.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Family, Ip } from "../../net/ip.ts";
import { EVERYWHERE, prefixContains } from "../../net/prefix.ts";
import type { NftChain, NftTable } from "../../plan/nft-table.ts";
import type { RouteState, RuleState } from "../../plan/state.ts";
import { NFT_TABLE, REPLY_MARK, REPLY_RULE_PREFERENCE, SNAT_GROUPS } from "./constants.ts";
import { ruleTo } from "./own-objects.ts";
import { routeTo, type ServicePath } from "./plan-service-path.ts";

/** Each made once: caches are keyed by the table's identity (plan/diff.ts, kernel/netlink/nftables). */
const podTables = new BoundedMap<string, NftTable>(64);

const CROSSING = "crossing";

/**
 * In the pod: marks connections that come in by the pair, and the replies to them. Drops packets that would cross from
 * a NIC to the node or back, whatever the pod's settings are: any machine of the segment could send them. Networks
 * behind the pod have links of their own. `link` is the name of the pod's end, which all pairs share; `nics` as
 * {@link nicsIn} returns them.
 */
export function podTable(link: string, nics: readonly string[] | undefined): NftTable {
  const key = nics === undefined ? link : [link, "", ...nics].join(" ");
  return podTables.getOrInsertComputed(key, () => makePodTable(link, nics));
}

/**
 * Returns the NICs that the pod's table separates from the node: those that were attached with it. Undefined for a
 * table of an earlier release, which stays unchanged.
 */
export function nicsIn(tables: readonly NftTable[]): string[] | undefined {
  const own = tables.find(({ name }) => name === NFT_TABLE);
  const chain = own?.chains.find(({ name }) => name === CROSSING);
  if (chain === undefined) return own === undefined ? [] : undefined;
  const rules = chain.rules.filter((_, index) => index % 2 === 0);
  return rules.flatMap(([, compared]) => (compared?.name === "cmp" ? (nameOf(compared.value) ?? []) : []));
}

/** Undefined if the pod itself has written another value. */
const nameOf = (padded: Uint8Array): IfName | undefined =>
  parseIfName(new TextDecoder().decode(padded).replace(/\0+$/, ""));

function makePodTable(link: string, nics: readonly string[] | undefined): NftTable {
  if (nics === undefined) return { name: NFT_TABLE, chains: replyChains(link) };
  const between = (from: string, to: string) => [
    ...matchInterface("iifname", from),
    ...matchInterface("oifname", to),
    ...drop(),
  ];
  const rules = nics.flatMap((nic) => [between(nic, link), between(link, nic)]);
  const crossing = { type: "filter", hook: NF_INET_FORWARD, priority: NF_IP_PRI_FILTER } as const;
  return { name: NFT_TABLE, chains: [...replyChains(link), { name: CROSSING, ...crossing, rules }] };
}

function replyChains(link: string): NftChain[] {
  const mark = [REPLY_MARK, REPLY_MARK] as const;
  return [
    {
      name: "requests",
      type: "filter",
      hook: NF_INET_PRE_ROUTING,
      priority: NF_IP_PRI_MANGLE,
      rules: [[...matchInterface("iifname", link), ...matchNewConnection(), ...setMark("ct", ...mark)]],
    },
    {
      name: "replies",
      type: "route",
      hook: NF_INET_LOCAL_OUT,
      priority: NF_IP_PRI_MANGLE,
      rules: [[...matchMark("ct", ...mark), ...setMark("meta", ...mark)]],
    },
  ];
}

export function replyRule(family: Family, table: number): RuleState {
  const mark = { value: REPLY_MARK, mask: REPLY_MARK };
  return ruleTo(table, { family, preference: REPLY_RULE_PREFERENCE, mark });
}

/** Returns the route that sends all replies to the node; none if the node has no address of the family. */
export function replyRoute(
  { pod, hostAddresses }: ServicePath,
  family: Family,
  { table, source }: { readonly table: number; readonly source: Ip | undefined },
): RouteState[] {
  const nextHop = hostAddresses[family].slice(0, 1);
  const way = { link: pod.link, preferredSource: source };
  return nextHop.map((gateway) => routeTo(EVERYWHERE[family], { ...way, gateway }, table));
}

/** Starts of the names of the node's links to its pods, by Berth and other plugins. */
const TO_PODS = ["veth", "cali", "lxc", "cni"];

function makeSnatTable(): NftTable {
  const leave = [...TO_PODS.flatMap((name) => matchOtherThan("oifname", name)), ...masquerade()];
  const rules = [
    [...matchGroup("iifgroup", SNAT_GROUPS.all), ...leave],
    [...matchGroup("iifgroup", SNAT_GROUPS.untranslated), ...matchDnat(true), ...leave],
  ];
  const place = { type: "nat", hook: NF_INET_POST_ROUTING, priority: NF_IP_PRI_NAT_SRC } as const;
  return { name: NFT_TABLE, chains: [{ name: "services", ...place, rules }] };
}

/**
 * On the node, for all pods: masquerades connections that come in by a pair and leave by a NIC, so that the answer
 * comes back to the node. Otherwise it would go to the pod directly over the segment: the pod would not recognise an
 * answer of a service, and the node, which saw half of the connection, would drop the rest of any other. A backend on
 * the node answers through the node anyway, and sees the client's address.
 */
export const SNAT_TABLE = makeSnatTable();

/**
 * Returns the connections that Berth masquerades. `auto`: for a pod inside its clusterCIDR, or any pod if it has none
 * of that family, kube-proxy does not masquerade connections to services, because the answers to pods of the cluster
 * find their way back by themselves; Berth then masquerades all. For other pods kube-proxy masquerades these
 * connections, and Berth the rest.
 */
export function decideSnat(
  { serviceSnat, overlayPodCIDR }: CoordinatorConf,
  ips: readonly Ip[],
): keyof typeof SNAT_GROUPS {
  if (serviceSnat !== "auto") return serviceSnat === "on" ? "all" : "none";
  const isOfCluster = ips.some((ip) => {
    const networks = overlayPodCIDR.filter((network) => network.ip.family === ip.family);
    return networks.length === 0 || networks.some((network) => prefixContains(network, ip));
  });
  return isOfCluster ? "all" : "untranslated";
}
