/**
 * The NIC of a container without a main plugin of CNI: a macvlan or ipvlan on a link of the node.
 * Effects: links, addresses, routes and settings in the container's network namespace.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CniError, ErrorCode } from "../../host/cni/error.ts";
import type { CniResult, ResultRoute } from "../../host/cni/result.ts";
import type { PlacedEntry } from "../../host/config/network-definition.ts";
import { applyOperations } from "../../host/kernel/apply.ts";
import { EEXIST, EINVAL } from "../../host/kernel/errno.ts";
import { REMOVAL_GROUP } from "../../host/kernel/link-remover.ts";
import { addressesIn } from "../../host/kernel/netlink/address/address.ts";
import { IFA_F_DADFAILED, IFA_F_TENTATIVE } from "../../host/kernel/netlink/address/constants.ts";
import { findAddresses } from "../../host/kernel/netlink/address/requests.ts";
import { attribute, encodeUint16 } from "../../host/kernel/netlink/attribute.ts";
import { type Conversation, createConversation } from "../../host/kernel/netlink/conversation.ts";
import { NetlinkError } from "../../host/kernel/netlink/error.ts";
import { IFLA_IPVLAN_MODE, MACVLAN_MODE_BRIDGE } from "../../host/kernel/netlink/link/constants.ts";
import { kindName, type LinkKind } from "../../host/kernel/netlink/link/kind.ts";
import {
  createLink,
  deleteGroupAside,
  findLink,
  findLinkName,
  readLink,
  readLinkByIndex,
  setLink,
} from "../../host/kernel/netlink/link/requests.ts";
import { RT_SCOPE_LINK, RT_TABLE_MAIN, RTN_UNICAST, RTPROT_BOOT } from "../../host/kernel/netlink/route/constants.ts";
import { listRoutes } from "../../host/kernel/netlink/route/requests.ts";
import { routeOf } from "../../host/kernel/netlink/route/route.ts";
import { openRouteSocket } from "../../host/kernel/netlink/socket.ts";
import { NetnsError, OWN_NETNS } from "../../host/kernel/netns.ts";
import { openPodNamespace } from "../../host/kernel/open-namespace.ts";
import { equalIp, formatIp, type Ip } from "../../host/net/ip.ts";
import type { Mac } from "../../host/net/mac.ts";
import type { Operation } from "../../host/plan/operation.ts";
import { IPV6_METRIC, type RouteState } from "../../host/plan/state.ts";

const KINDS: Readonly<Record<string, LinkKind>> = {
  macvlan: { kind: "macvlan", mode: MACVLAN_MODE_BRIDGE },
  // IPVLAN_MODE_L2
  ipvlan: { kind: "other", name: "ipvlan", attributes: [attribute(IFLA_IPVLAN_MODE, encodeUint16(0))] },
};

/** A NIC as a call names it. */
interface NicPlace {
  readonly netns: string;
  readonly ifName: string;
}

function refuse(code: ErrorCode, text: string, cause?: unknown): never {
  throw new CniError(code, text, { cause });
}

/**
 * Creates the NIC, which is down, and returns its MAC address. Throws CniError 106 if the node has no such link or one
 * of a lower MTU, or the namespace has one of the name, NetnsError, NetlinkError.
 */
export function createNic({ netns, ifName }: NicPlace, entry: PlacedEntry["entry"], mac: Mac | undefined): Mac {
  using pod = openPodNamespace(netns);
  using socket = openRouteSocket(OWN_NETNS);
  const node = createConversation(socket);
  const { master, type, mtu } = entry;
  const parent = master === undefined ? findDefaultLink(node) : findNamed(node, String(master));
  const kind = KINDS[type];
  if (parent === undefined || kind === undefined) {
    const what = master === undefined ? "default route" : `interface "${String(master)}"`;
    refuse(ErrorCode.InterfaceRefused, `The node has no ${what}; correct the option master of the network`);
  }
  try {
    createLink(node, {
      name: ifName,
      kind,
      parent,
      mac,
      mtu: mtu === undefined ? undefined : Number(mtu),
      netnsFd: pod.fd,
    });
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    if (error.errno === EEXIST) refuse(ErrorCode.InterfaceRefused, `Interface "${ifName}" exists in ${netns}`, error);
    const below = error.errno === EINVAL ? readLinkByIndex(node, parent) : undefined;
    if (below === undefined || !(Number(mtu) > below.mtu)) throw error;
    const text = `Option mtu of the network: found ${Number(mtu)}, want at most ${below.mtu}, as "${below.name}" has`;
    refuse(ErrorCode.InterfaceRefused, text, error);
  }
  return readLink(pod.route, ifName)?.mac ?? refuse(ErrorCode.InterfaceRefused, `Interface "${ifName}" is gone`);
}

function findNamed(node: Conversation, master: string): number | undefined {
  const name = findLinkName(node, master);
  return name === undefined ? undefined : findLink(node, name)?.index;
}

/** Returns the link of the node's default route, of IPv4 first. */
function findDefaultLink(node: Conversation): number | undefined {
  const routes = listRoutes(node, { table: RT_TABLE_MAIN }).flatMap((message) => routeOf(message) ?? []);
  const defaults = routes.filter(({ destination, link }) => destination.length === 0 && link !== undefined);
  return defaults.sort(
    (a, b) => a.destination.ip.family - b.destination.ip.family || (a.metric ?? 0) - (b.metric ?? 0),
  )[0]?.link;
}

/** Returns the routes as the options of the network want them. */
export function routesFor(routes: readonly ResultRoute[], entry: PlacedEntry["entry"]): readonly ResultRoute[] {
  const { metric, no_default_route: isWithout = "false" } = entry;
  return routes.flatMap((route) => {
    if (route.dst.length > 0) return [route];
    if (isWithout === "true" || isWithout === "1") return [];
    return [metric === undefined ? route : { ...route, priority: Number(metric) }];
  });
}

function routeState(ifName: string, { dst, gw, priority, table }: ResultRoute): RouteState {
  const isSix = dst.ip.family === 6;
  return {
    destination: dst,
    gateway: gw,
    link: ifName,
    metric: priority ?? (isSix ? IPV6_METRIC : 0),
    scope: gw === undefined && !isSix ? RT_SCOPE_LINK : 0,
    ...{ table: table ?? RT_TABLE_MAIN, type: RTN_UNICAST, protocol: RTPROT_BOOT, flags: 0, tos: 0, rest: [] },
  };
}

/** Like the reference plugin: neighbours learn the owner of the addresses when the NIC is set up. */
function operationsOf(ifName: string, { ips, routes }: CniResult): Operation[] {
  const place = "pod";
  const hasSix = ips.some(({ address }) => address.ip.family === 6);
  const six = hasSix ? { [`ipv6/conf/${ifName}/disable_ipv6`]: "0", [`ipv6/conf/${ifName}/ndisc_notify`]: "1" } : {};
  const settings = { [`ipv4/conf/${ifName}/arp_notify`]: "1", ...six };
  return [
    ...Object.entries(settings).map(
      ([key, to]): Operation => ({ kind: "set-sysctl", place, key, from: undefined, to }),
    ),
    ...ips.map(
      ({ address: prefix }): Operation => ({
        kind: "add-address",
        place,
        address: { link: ifName, prefix, scope: 0, flags: 0 },
      }),
    ),
    { kind: "set-link", place, link: ifName, from: { up: false }, to: { up: true } },
    ...routes.map(
      // another NIC may have a default route
      (route): Operation => ({ kind: "add-route", place, route: routeState(ifName, route), beside: "last" }),
    ),
  ];
}

/** Time for which the kernel may probe IPv6 addresses; on a link without carrier it never ends: milliseconds. */
const MAX_DUPLICATE_DETECTION_MS = 5_000;

/** Interval at which to look whether the kernel has probed them: milliseconds. */
const LOOK_MS = 20;

/**
 * Puts addresses and routes on the NIC and sets it up. Resolves when the kernel has probed its IPv6 addresses. Rejects
 * with CniError 104 if another machine has one, ApplyError, NetnsError, and the reason of `signal`.
 */
export async function configureNic({ netns, ifName }: NicPlace, result: CniResult, signal: AbortSignal): Promise<void> {
  using pod = openPodNamespace(netns);
  await applyOperations(operationsOf(ifName, result), { pod, host: pod });
  const index = findLink(pod.route, ifName)?.index ?? 0;
  const endMs = performance.now() + MAX_DUPLICATE_DETECTION_MS;
  for (;;) {
    const found = addressesIn(findAddresses(pod.route, index));
    const own = found.filter(({ prefix }) => result.ips.some(({ address }) => equalIp(address.ip, prefix.ip)));
    const failed = own.find(({ flags }) => (flags & IFA_F_DADFAILED) !== 0);
    if (failed !== undefined) {
      const text = `Address ${formatIp(failed.prefix.ip)} is in use by another machine on the segment of interface "${ifName}"`;
      refuse(ErrorCode.AddressConflict, text);
    }
    if (own.every(({ flags }) => (flags & IFA_F_TENTATIVE) === 0) || performance.now() > endMs) return;
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/**
 * Deletes the NIC while a thread waits for the kernel, if it is of a kind of {@link createNic} and has one of the
 * addresses, which a NIC in another container's namespace at that path has not. Undefined `ips`: whatever it has.
 * Nothing to do is no error.
 */
export async function deleteNic({ netns, ifName }: NicPlace, ips: readonly Ip[] | undefined): Promise<void> {
  try {
    using pod = openPodNamespace(netns);
    const link = readLink(pod.route, ifName);
    if (link?.kind === undefined || KINDS[kindName(link.kind)] === undefined) return;
    const found = addressesIn(findAddresses(pod.route, link.index));
    const isOwn = (ip: Ip): boolean => found.some(({ prefix }) => equalIp(prefix.ip, ip));
    if (ips !== undefined && !ips.some(isOwn)) return;
    setLink(pod.route, link.index, { group: REMOVAL_GROUP });
    await deleteGroupAside(pod.route, REMOVAL_GROUP);
  } catch (error) {
    if (!(error instanceof NetnsError)) throw error;
  }
}
