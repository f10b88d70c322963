/** Asks the kernel whether packets between a node and its pod arrive, whatever rules and routes others have added. */
import { BERTH_PROTOCOL } from "../../coordinator/plan/constants.ts";
import { includesIp } from "../../coordinator/plan/own-objects.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { findHostAddresses } from "../../coordinator/plan/plan-service-path.ts";
import { lookUpRoute } from "../../kernel/netlink/route/requests.ts";
import type { NamespaceSource } from "../../kernel/open-namespace.ts";
import { FAMILIES, formatIp, type Ip } from "../../net/ip.ts";
import type { NamespaceState } from "../../plan/state.ts";

/** Most of the node's addresses that are tried. */
const MOST_ADDRESSES = 8;

type Side = Pick<NamespaceSource, "route">;

/** Where packets go, and from which of the sources, that do not take Berth's routes to the addresses. */
function findWay(
  { route }: Side,
  { links, routes }: NamespaceState,
  addresses: readonly Ip[],
  sources: readonly Ip[],
): string | undefined {
  const own = routes.filter((each) => each.protocol === BERTH_PROTOCOL && includesIp(addresses, each.destination.ip));
  for (const { destination, link } of own) {
    const to = destination.ip;
    const index = links.find(({ name }) => name === link)?.index;
    for (const from of [undefined, ...sources.filter(({ family }) => family === to.family)]) {
      const found = lookUpRoute(route, to, from)?.link;
      if (index === undefined || found === index) continue;
      const other = links.find((each) => each.index === found)?.name ?? "nowhere";
      return `${formatIp(to)}${from === undefined ? "" : ` from ${formatIp(from)}`} to ${other}`;
    }
  }
  return undefined;
}

/**
 * Returns a sentence about a way between node and pod that is not Berth's, by the kernel's own choice: that of the
 * node's packets, with any of its addresses, or of the pod's. Something comes before Berth's that it cannot move.
 */
export function findDetour(
  host: Side,
  pod: Side,
  { addresses, observed }: Pick<PlanInput, "addresses" | "observed">,
): string | undefined {
  const nodes = FAMILIES.flatMap((family) => findHostAddresses(observed.host, family, []).slice(0, MOST_ADDRESSES));
  const comes = "a rule or route of other software comes before Berth's";
  const there = findWay(host, observed.host, addresses, nodes);
  if (there !== undefined) return `The node sends packets for ${there}, not to the pod: ${comes}`;
  const back = findWay(pod, observed.pod, nodes, []);
  return back && `The pod sends packets for ${back}, not to its node: ${comes}`;
}
