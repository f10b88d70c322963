/** Asks the kernel whether packets between a node and its pod arrive, whatever rules and routes others have added. */
import { BERTH_PROTOCOL } from "../../coordinator/plan/constants.ts";
import { includesIp } from "../../coordinator/plan/own-objects.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { findHostAddresses } from "../../coordinator/plan/plan-service-path.ts";
import { lookUpRoute } from "../../kernel/netlink/route/requests.ts";
import type { NamespaceSource } from "../../kernel/open-namespace.ts";
import { type Family, formatIp, type Ip } from "../../net/ip.ts";
import type { NamespaceState } from "../../plan/state.ts";

/** Most of the node's addresses that are tried. */
const MOST_ADDRESSES = 8;

type Side = Pick<NamespaceSource, "route">;

/** Where packets go that should take one of Berth's routes to the addresses, from the first source that does not. */
function findWay(
  { route }: Side,
  { links, routes }: NamespaceState,
  addresses: readonly Ip[],
  sources: (family: Family) => readonly (Ip | undefined)[],
): string | undefined {
  const own = routes.filter((each) => each.protocol === BERTH_PROTOCOL && includesIp(addresses, each.destination.ip));
  for (const { destination, link } of own) {
    const to = destination.ip;
    const index = links.find(({ name }) => name === link)?.index;
    if (index === undefined) continue;
    for (const from of sources(to.family)) {
      const found = lookUpRoute(route, to, from);
      if (found?.link === index) continue;
      const other = links.find((each) => each.index === found?.link)?.name ?? "nowhere";
      return `${formatIp(to)}${from === undefined ? "" : ` from ${formatIp(from)}`} to ${other}`;
    }
  }
  return undefined;
}

/**
 * Returns a sentence about the first of Berth's routes to the pod or in it to the node that the kernel does not take,
 * with the source that it chooses and with the node's addresses: something comes before it that Berth cannot move.
 */
export function findDetour(
  host: Side,
  pod: Side,
  { addresses, observed }: Pick<PlanInput, "addresses" | "observed">,
): string | undefined {
  const nodes = (family: Family) => findHostAddresses(observed.host, family, []).slice(0, MOST_ADDRESSES);
  const there = findWay(host, observed.host, addresses, (family) => [undefined, ...nodes(family)]);
  const comes = "a rule or route of other software comes before Berth's";
  if (there !== undefined) return `The node sends packets for ${there}, not to the pod: ${comes}`;
  const back = findWay(pod, observed.pod, [...nodes(4), ...nodes(6)], () => [undefined]);
  return back && `The pod sends packets for ${back}, not to its node: ${comes}`;
}
