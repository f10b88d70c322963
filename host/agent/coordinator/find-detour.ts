/** Asks the kernel whether packets between a node and its pod arrive, whatever rules and routes others have added. */
import { BERTH_PROTOCOL, REPLY_MARK } from "../../coordinator/plan/constants.ts";
import { includesIp } from "../../coordinator/plan/own-objects.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { findHostAddresses } from "../../coordinator/plan/plan-service-path.ts";
import { replyFamiliesOf, replyRoutesIn } from "../../coordinator/plan/plan-tables.ts";
import { RT_TABLE_LOCAL, RT_TABLE_MAIN } from "../../kernel/netlink/route/constants.ts";
import { lookUpRoute, type Packet } from "../../kernel/netlink/route/requests.ts";
import type { NamespaceSource } from "../../kernel/open-namespace.ts";
import { equalIp, FAMILIES, formatIp, type Ip, parseIp } from "../../net/ip.ts";
import type { NamespaceState, RouteState } from "../../plan/state.ts";

/** Most of the node's addresses that are tried. */
const MOST_ADDRESSES = 8;
/** Clients of another network (RFC 5737, RFC 3849). */
const OUTSIDE = ["192.0.2.1", "2001:db8::1"].flatMap((text) => parseIp(text) ?? []);

type Side = Pick<NamespaceSource, "route">;
/** Where packets should go: by the link, or by any route of the table. */
type Way = { readonly link?: number | undefined; readonly table?: number; readonly to: string };

const ofFamily = (ips: readonly Ip[], { family }: Ip): Ip[] => ips.filter((ip) => ip.family === family);
const routesTo = ({ routes }: NamespaceState, ips: readonly Ip[]) =>
  routes.filter(({ protocol, destination }) => protocol === BERTH_PROTOCOL && includesIp(ips, destination.ip));
const indexOf = ({ links }: NamespaceState, link?: string) => links.find(({ name }) => name === link)?.index;

/** Returns a clause about the first packet that goes elsewhere. */
function findOther({ route, links }: Side & NamespaceState, packets: readonly Packet[], { link, table, to }: Way) {
  for (const packet of packets) {
    const found = lookUpRoute(route, packet);
    if (found !== undefined && (found.link === link || found.table === table)) continue;
    const from = packet.from === undefined ? "" : ` from ${formatIp(packet.from)}`;
    const other = links.find(({ index }) => index === found?.link)?.name ?? "nowhere";
    return `sends packets for ${formatIp(packet.to)}${from} to ${other}, not to ${to}`;
  }
  return undefined;
}

function* askAll(host: Side, pod: Side, { addresses, observed }: Pick<PlanInput, "addresses" | "observed">) {
  const node = { ...observed.host, route: host.route };
  const own = { ...observed.pod, route: pod.route };
  const ips = FAMILIES.flatMap((family) => findHostAddresses(node, family, []).slice(0, MOST_ADDRESSES));
  // Packets that come in from a pod do not reach an address in a VRF.
  const locals = ips.filter((to) => lookUpRoute(host.route, { to })?.table === RT_TABLE_LOCAL);
  for (const { destination, link } of routesTo(node, addresses)) {
    const [{ ip }, input] = [destination, indexOf(node, link)];
    const sent = [undefined, ...ofFamily(ips, ip)].map((from) => ({ to: ip, from }));
    const arriving = ofFamily(locals, ip).map((to) => ({ to, from: ip, input }));
    yield ["The node", findOther(node, sent, { link: input, to: "the pod" })];
    yield ["The node", findOther(node, arriving, { table: RT_TABLE_LOCAL, to: "itself" })];
  }
  // By a first NIC that others made the pod may reach its node, too.
  const way = (link: string | undefined) => ({ link: indexOf(own, link), to: "its node" });
  for (const { destination, link } of routesTo(own, ips))
    yield ["The pod", findOther(own, [{ to: destination.ip }], { ...way(link), table: RT_TABLE_MAIN })];
  // A sandbox may have taken the addresses.
  const sources = addresses.filter((ip) => own.addresses.some(({ prefix }) => equalIp(prefix.ip, ip)));
  const hasRule = ({ destination }: RouteState) => replyFamiliesOf(own).includes(destination.ip.family);
  for (const { destination, link } of replyRoutesIn(own).filter(hasRule)) {
    const clients = ofFamily(OUTSIDE, destination.ip);
    const marked = clients.flatMap((to) => ofFamily(sources, to).map((from) => ({ to, from, mark: REPLY_MARK })));
    yield ["In replies the pod", findOther(own, marked, way(link))];
  }
}

/**
 * Returns a sentence about a way between node and pod that is not Berth's, by the kernel's own choice: that of the
 * node's packets, with any of its addresses, of those that come in from the pod, and of the pod's packets and replies.
 * Something comes before Berth's that it cannot move.
 */
export function findDetour(...question: Parameters<typeof askAll>): string | undefined {
  for (const [sender, other] of askAll(...question))
    if (other !== undefined) return `${sender} ${other}: a rule or route of other software comes before Berth's`;
  return undefined;
}
