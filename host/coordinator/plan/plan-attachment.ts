/**
 * Plans the state of a pod and its node with a NIC attached, for ADD and CHECK. A NIC's additions to the path to the
 * node stay until the path itself is removed: definitions of different networks may name different networks behind
 * the node. A NIC is responsible only for the families of its addresses.
 */
import { refuseInterface } from "../../cni/error.ts";
import type { Family, Ip } from "../../net/ip.ts";
import { formatPrefix } from "../../net/prefix.ts";
import type { Owned, Wanted } from "../../plan/plan.ts";
import { EMPTY_OWNED, EMPTY_PART } from "../../plan/plan.ts";
import type { LinkSettings, NamespaceState, RouteState } from "../../plan/state.ts";
import { requireFreeVethName, requireSafeAddresses, selectRoutable } from "./address-policy.ts";
import { parseAlias } from "./alias.ts";
import { NFT_TABLE, POD_VETH, REPLY_RULE_PREFERENCE, SNAT_GROUPS } from "./constants.ts";
import { hostRoutesOf, includesIp, isOwn, serviceRoutesIn } from "./own-objects.ts";
import type { AttachedNic, PlanInput, PlanResult } from "./plan-input.ts";
import { familiesOf, findNics, type Nic } from "./plan-nics.ts";
import { type PodRoutes, planPodRoutes } from "./plan-pod-routes.ts";
import { decideSnat, nicsIn, podTable, replyRoute, replyRule, SNAT_TABLE } from "./plan-reply-path.ts";
import {
  findNetworks,
  findOverlayPath,
  findUnderlayPath,
  hostNeighbours,
  hostRoutes,
  hostRule,
  isReached,
  isToNode,
  podNeighbours,
  type ReachedPath,
  requireOwnTable,
  requireUnusedAddresses,
  type ServicePath,
  serviceRoutes,
} from "./plan-service-path.ts";
import {
  findRestored,
  findSources,
  findSourcesInUse,
  makesPair,
  pairAddresses,
  type Source,
  sourceOf,
} from "./plan-sources.ts";
import { replyFamiliesOf, replyTableOf } from "./plan-tables.ts";

/** linux/if_link.h: IN6_ADDR_GEN_MODE_NONE */
const NO_ADDRESS_GENERATION = "1";

/**
 * Returns the present routes to the destinations of wanted routes, because a route that leads elsewhere is replaced,
 * and those to former addresses of the node.
 */
function ownedServiceRoutes(present: readonly RouteState[], wanted: readonly RouteState[]): RouteState[] {
  const named = new Set(wanted.map(({ destination }) => formatPrefix(destination)));
  return present.filter((route) => named.has(formatPrefix(route.destination)) || isToNode(route));
}

interface ReplyDemand {
  readonly families: readonly Family[];
  readonly sources: readonly Source[];
  readonly nics: readonly Nic[];
}

/** Plans the reply path of an underlay pod for some families. */
function planReplyPath(
  { ifName, observed: { pod } }: PlanInput,
  path: ServicePath,
  { families, sources, nics }: ReplyDemand,
): Readonly<Record<"wanted" | "owned", Pick<Owned, "routes" | "rules" | "tables">>> {
  const nicTables = nics.map(({ table }) => table);
  const table = replyTableOf(pod, nicTables);
  const usable = families.filter((family) => path.families.includes(family));
  const named = nicsIn(pod.tables);
  return {
    wanted: {
      routes: usable.flatMap((family) => replyRoute(path, family, { table, source: sourceOf(sources, family) })),
      rules: usable.map((family) => replyRule(family, table)),
      tables: [podTable(path.pod.link, named && [...new Set([...named, ifName])])],
    },
    owned: {
      routes: pod.routes.filter(
        (route) => isOwn(route) && route.table === table && families.includes(route.destination.ip.family),
      ),
      rules: pod.rules.filter(
        (rule) => isOwn(rule) && rule.preference === REPLY_RULE_PREFERENCE && families.includes(rule.family),
      ),
      tables: pod.tables.filter(({ name }) => name === NFT_TABLE),
    },
  };
}

/**
 * Returns rp_filter of the links that carry the pod's traffic. The kernel uses the larger of `all` and the link's
 * value, so `all` is set, too.
 */
function rpFilter(value: number, links: readonly string[]): [string, string][] {
  return value < 0 ? [] : links.map((link) => [`ipv4/conf/${link}/rp_filter`, String(value)]);
}

const FORWARDING = { 4: "ipv4/ip_forward", 6: "ipv6/conf/all/forwarding" } as const;

/** A node that forwards may be set to forward nothing that comes in by a new link. IPv6 has no such setting. */
function withForwarding({ sysctls }: NamespaceState, ends: readonly string[]): [string, string][] {
  const isOff = (link: string): boolean => sysctls.get(`ipv4/conf/${link}/forwarding`) === "0";
  const isNeeded = sysctls.get(FORWARDING[4]) === "1";
  const off = ends.filter((end) => isNeeded && ["default", end].some(isOff));
  return off.map((end) => [`ipv4/conf/${end}/forwarding`, "1"]);
}

const withIpv6 = (links: readonly string[]): [string, string][] =>
  links.map((link) => [`ipv6/conf/${link}/disable_ipv6`, "0"]);

/**
 * A new end of a pair on the node gets no link-local address: no packet needs one, as neighbours are permanent. Each
 * would add routes, all of which the kernel walks whenever a link gets its carrier. Nothing if the node lacks IPv6.
 */
function withoutLinkLocal({ links, sysctls }: NamespaceState, ends: readonly string[]): [string, string][] {
  if (!sysctls.has(FORWARDING[6])) return [];
  const isNew = (end: string): boolean => !links.some(({ name }) => name === end);
  return ends.filter(isNew).map((end) => [`ipv6/conf/${end}/addr_gen_mode`, NO_ADDRESS_GENERATION]);
}

/** Throws CniError 106 if the pod has another link with the pair's name. */
function requireOwnPair({ pair, observed }: PlanInput): void {
  const found = observed.pod.links.find(({ name }) => name === POD_VETH);
  if (found === undefined || found.mac === pair.pod.mac) return;
  refuseInterface(
    `Interface "${POD_VETH}" of the pod was not created by Berth (${found.mac ?? "no MAC address"}); ` +
      "configure the plugin that created it to use another name",
  );
}

function findServiceProblem(first: string, family: Family, path: ServicePath | undefined): string | undefined {
  if (path === undefined) return `Interface "${first}" is not connected to the node by a veth that Berth recognises`;
  if (path.families.includes(family)) return undefined;
  if (path.hostAddresses[family].length === 0) return `The node has no usable IPv${family} address`;
  return `Interface "${first}" has no IPv${family} default route`;
}

function warnAboutHost(situation: PlanInput, families: readonly Family[], path: ServicePath | undefined): string[] {
  const { conf, observed } = situation;
  const warnings = families.flatMap((family) => {
    const key = FORWARDING[family];
    if (observed.host.sysctls.get(key) !== "0") return [];
    const what = `The node does not forward IPv${family} (net.${key.replaceAll("/", ".")} is 0)`;
    return [`${what}: the pod can reach the node, but no networks behind it`];
  });
  if (path !== undefined && !isReached(path))
    warnings.push(
      `The node has no way to interface "${situation.ifName}": the link of "${path.pod.link}" on the node is a port of a switch that is no bridge`,
    );
  for (const family of families) {
    const why = findServiceProblem(conf.podDefaultCniNic, family, path);
    if (why !== undefined)
      warnings.push(`${why}: IPv${family} services will not be reachable from this pod through the node`);
  }
  return warnings;
}

/** Returns the alias of the pair. CHECK accepts the network of another NIC, whose ADD has made the pair. */
function aliasFor({ alias, routable, observed, pair }: PlanInput): string {
  const found = observed.host.links.find(({ name }) => name === pair.host.name)?.alias ?? "";
  const isOfContainer = parseAlias(found)?.containerId === parseAlias(alias)?.containerId;
  return routable === undefined && isOfContainer ? found : alias;
}

/** Returns the MTU of the pair if this NIC decides about it: packets that enter by one may leave by the other. */
function pairMtu(situation: PlanInput): number | undefined {
  const { conf, ifName, observed } = situation;
  if (!decidesAboutPair(situation)) return undefined;
  return conf.vethMTU || observed.pod.links.find(({ name }) => name === ifName)?.mtu;
}

/** Least MTU of a veth (drivers/net/veth.c), and of a link with IPv6 (RFC 8200 §5): bytes. */
const LEAST_MTU = { 4: 68, 6: 1_280 } as const;

/** Throws CniError 106 for a pair that the kernel would not make, or not give IPv6. */
function requireUsableMtu(situation: PlanInput, families: readonly Family[]): void {
  const { vethMTU } = situation.conf;
  const family = families.find((each) => vethMTU < LEAST_MTU[each]);
  if (vethMTU === 0 || family === undefined || !makesPair(situation)) return;
  refuseInterface(
    `vethMTU ${vethMTU} is too small for the pair of a pod with IPv${family} addresses: want at least ${LEAST_MTU[family]}, or 0 for the MTU of the pod's NIC`,
  );
}

function decidesAboutPair(situation: PlanInput): boolean {
  return situation.ifName === situation.conf.podDefaultCniNic || makesPair(situation);
}

interface HostDemand {
  /** Of the NIC. */
  readonly ips: readonly Ip[];
  /** The pod's other NICs, whose state was deleted with an earlier pair. */
  readonly restored: readonly AttachedNic[];
}

function planHost(
  situation: PlanInput,
  path: ReachedPath,
  { ips, restored }: HostDemand,
): { wanted: Wanted; owned: Owned } {
  const { conf, mode, observed } = situation;
  const nics = [{ addresses: ips, conf }, ...restored].map(({ addresses, conf: { hostRuleTable: table } }) => ({
    neighbours: hostNeighbours(path, addresses),
    routes: hostRoutes(path, addresses, table),
    rules: familiesOf(addresses).map((family) => hostRule(family, table, observed.host.rules)),
  }));
  const isMaker = decidesAboutPair(situation);
  const families = familiesOf(ips);
  const snat = isMaker ? decideSnat(conf, ips) : "none";
  const settings: LinkSettings = isMaker
    ? { up: true, alias: aliasFor(situation), group: SNAT_GROUPS[snat], mtu: pairMtu(situation) }
    : { up: true };
  const ofUnderlay = mode === "underlay" ? [path.host.link] : [];
  return {
    wanted: {
      links: new Map(ofUnderlay.map((name) => [name, settings])),
      sysctls: new Map([
        ...(families.includes(4) ? rpFilter(conf.hostRPFilter, ofUnderlay) : []),
        ...(families.includes(4) ? withForwarding(observed.host, ofUnderlay) : []),
        ...(families.includes(6) ? withIpv6(ofUnderlay) : []),
        ...withoutLinkLocal(observed.host, ofUnderlay),
      ]),
      addresses: [],
      neighbours: nics.flatMap(({ neighbours }) => neighbours),
      routes: nics.flatMap(({ routes }) => routes),
      rules: nics.flatMap(({ rules }) => rules),
      tables: snat === "none" ? [] : [SNAT_TABLE],
    },
    owned: {
      ...EMPTY_OWNED,
      neighbours: observed.host.neighbours.filter(({ ip }) => includesIp(ips, ip)),
      routes: hostRoutesOf(observed.host, [conf.hostRuleTable], ips),
      rules: observed.host.rules.filter(
        (rule) => isOwn(rule) && rule.table === conf.hostRuleTable && families.includes(rule.family),
      ),
      tables: snat === "none" ? [] : observed.host.tables.filter(({ name }) => name === NFT_TABLE),
    },
  };
}

/** The next hop is the same for all NICs: near the first. */
function findPath(situation: PlanInput, nics: readonly Nic[]): ServicePath | undefined {
  const [first] = nics;
  const nearTo = nics.slice(0, 1).flatMap(({ addresses }) => addresses);
  if (situation.mode === "underlay") return findUnderlayPath(situation, nearTo);
  return first && findOverlayPath(situation, first, nearTo);
}

/** Plans the attachment of a NIC. Throws CniError 106 if it conflicts with the present state. */
export function planAttachment(situation: PlanInput): PlanResult {
  const { conf, mode, ifName, observed, pair } = situation;
  const { pod } = observed;
  requireOwnPair(situation);
  const nics = findNics(pod, conf.podDefaultCniNic, ifName);
  const own = nics.filter(({ name }) => name === ifName).flatMap(({ addresses }) => addresses);
  const { ips, warnings: leftOut } = selectRoutable(situation, own);
  requireSafeAddresses(situation, ips);
  if (mode === "underlay") requireFreeVethName(situation);
  const path = findPath(situation, nics);
  const restored = findRestored(situation);
  const families = familiesOf([...ips, ...restored.flatMap(({ addresses }) => addresses)]);
  requireUsableMtu(situation, families);
  const { networks, warnings } = findNetworks(situation, nics, restored);
  const sources = [...findSources(situation, ips), ...findSourcesInUse(observed)];
  const present = serviceRoutesIn(pod);
  const service = path === undefined ? [] : serviceRoutes(present, path, { families, networks, sources, nics });
  const reply =
    path === undefined || mode !== "underlay"
      ? EMPTY_PART
      : planReplyPath(situation, path, { families, sources, nics });
  // Not by a later NIC: its undone ADD deletes the address, and with a link's only IPv4 address all routes over it.
  const hasPairAddress = mode === "underlay" && families.includes(4) && decidesAboutPair(situation);
  const routes: PodRoutes = conf.tunePodRoutes
    ? planPodRoutes({
        pod,
        nics,
        ifName,
        defaultNic: situation.defaultNic,
        losesMainRoutes: situation.losesMainRoutes,
        replyFamilies: [...replyFamiliesOf(pod), ...reply.wanted.rules.map(({ family }) => family)],
        servicePath: path === undefined ? present : service,
        sources,
      })
    : EMPTY_PART;
  if (isReached(path)) {
    requireOwnTable(situation);
    requireUnusedAddresses(situation, path, ips);
  }
  const host = isReached(path) ? planHost(situation, path, { ips, restored }) : EMPTY_PART;
  const carriers = ["all", ifName, ...(path === undefined ? [] : [path.pod.link])];
  const pairEnd = mode === "underlay" ? [pair.pod.name] : [];
  const links: [string, LinkSettings][] = [
    ...pairEnd.map((name): [string, LinkSettings] => [name, { up: true, mtu: pairMtu(situation) }]),
    [ifName, { mac: situation.mac }],
  ];
  return {
    plan: {
      ...(mode === "underlay" ? { veth: { pair, wanted: true } } : {}),
      wanted: {
        pod: {
          links: new Map(links),
          sysctls: new Map([
            ...(families.includes(4) ? rpFilter(conf.hostRPFilter, carriers) : []),
            ...(families.includes(6) ? withIpv6(pairEnd) : []),
          ]),
          addresses: hasPairAddress ? pairAddresses(conf.vethLinkAddress) : [],
          neighbours: path === undefined ? [] : podNeighbours(path, families),
          routes: [...service, ...reply.wanted.routes, ...routes.wanted.routes],
          rules: [...reply.wanted.rules, ...routes.wanted.rules],
          tables: reply.wanted.tables,
        },
        host: host.wanted,
      },
      owned: {
        pod: {
          addresses: [],
          neighbours: pod.neighbours.filter(({ link, ip }) => link === POD_VETH && families.includes(ip.family)),
          routes: [...ownedServiceRoutes(present, service), ...reply.owned.routes, ...routes.owned.routes],
          rules: [...reply.owned.rules, ...routes.owned.rules],
          tables: reply.owned.tables,
        },
        host: host.owned,
      },
    },
    warnings: [...leftOut, ...warnings, ...routes.warnings, ...warnAboutHost(situation, families, path)],
  };
}
