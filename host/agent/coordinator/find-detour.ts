/** Asks the kernel whether packets between a node and its pod arrive, whatever rules and routes others have added. */
import { BERTH_PROTOCOL } from "../../coordinator/plan/constants.ts";
import { includesIp } from "../../coordinator/plan/own-objects.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { findHostAddresses } from "../../coordinator/plan/plan-service-path.ts";
import { RT_TABLE_MAIN } from "../../kernel/netlink/route/constants.ts";
import { lookUpRoute } from "../../kernel/netlink/route/requests.ts";
import type { NamespaceSource } from "../../kernel/open-namespace.ts";
import { FAMILIES, formatIp, type Ip } from "../../net/ip.ts";
import type { NamespaceState } from "../../plan/state.ts";

/** Most of the node's addresses that are tried. */
const MOST_ADDRESSES = 8;

type Side = Pick<NamespaceSource, "route"> & Pick<NamespaceState, "links" | "routes">;

/** Where packets go that take neither Berth's routes to the addresses nor one of this table. `from`: also by these. */
function findWay({ route, links, routes }: Side, to: readonly Ip[], from: readonly Ip[], table?: number) {
  const own = routes.filter((each) => each.protocol === BERTH_PROTOCOL && includesIp(to, each.destination.ip));
  for (const { destination, link } of own) {
    const { ip } = destination;
    const index = links.find(({ name }) => name === link)?.index;
    for (const source of [undefined, ...from.filter(({ family }) => family === ip.family)]) {
      const found = lookUpRoute(route, ip, source);
      if (index === undefined || found?.link === index || (found !== undefined && found.table === table)) continue;
      const other = links.find((each) => each.index === found?.link)?.name ?? "nowhere";
      return `${formatIp(ip)}${source === undefined ? "" : ` from ${formatIp(source)}`} to ${other}`;
    }
  }
  return undefined;
}

/**
 * Returns a sentence about a way between node and pod that is not Berth's, by the kernel's own choice: that of the
 * node's packets, with any of its addresses, or of the pod's. Something comes before Berth's that it cannot move.
 */
export function findDetour(
  host: Pick<Side, "route">,
  pod: Pick<Side, "route">,
  { addresses, observed }: Pick<PlanInput, "addresses" | "observed">,
) {
  const nodes = FAMILIES.flatMap((family) => findHostAddresses(observed.host, family, []).slice(0, MOST_ADDRESSES));
  const comes = "a rule or route of other software comes before Berth's";
  const there = findWay({ ...observed.host, route: host.route }, addresses, nodes);
  if (there !== undefined) return `The node sends packets for ${there}, not to the pod: ${comes}`;
  // By a first NIC that others made the pod may reach its node, too.
  const back = findWay({ ...observed.pod, route: pod.route }, nodes, [], RT_TABLE_MAIN);
  return back && `The pod sends packets for ${back}, not to its node: ${comes}`;
}
