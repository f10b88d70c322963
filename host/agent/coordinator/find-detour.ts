/** Asks the kernel whether the node's packets to a pod reach it, whatever rules and routes others have added. */
import { BERTH_PROTOCOL } from "../../coordinator/plan/constants.ts";
import type { PlanInput } from "../../coordinator/plan/plan-input.ts";
import { findHostAddresses } from "../../coordinator/plan/plan-service-path.ts";
import { lookUpRoute } from "../../kernel/netlink/route/requests.ts";
import type { NamespaceSource } from "../../kernel/open-namespace.ts";
import { equalIp, formatIp } from "../../net/ip.ts";

/** Most of the node's addresses that are tried as sources. */
const MOST_SOURCES = 8;

/**
 * Returns a sentence about the first of Berth's routes to the pod that the kernel does not take, with the source that
 * it chooses and with the node's addresses: something comes before Berth's rule that it cannot move before.
 */
export function findDetour(
  host: Pick<NamespaceSource, "route">,
  { addresses, observed }: Pick<PlanInput, "addresses" | "observed">,
): string | undefined {
  const { links, routes } = observed.host;
  const own = routes.filter(({ protocol, destination }) => {
    return protocol === BERTH_PROTOCOL && addresses.some((ip) => equalIp(ip, destination.ip));
  });
  for (const { destination, link } of own) {
    const to = destination.ip;
    const index = links.find(({ name }) => name === link)?.index;
    if (index === undefined) continue;
    for (const from of [undefined, ...findHostAddresses(observed.host, to.family, []).slice(0, MOST_SOURCES)]) {
      const found = lookUpRoute(host.route, to, from);
      if (found?.link === index) continue;
      const other = links.find((each) => each.index === found?.link)?.name ?? "nowhere";
      const way = `${formatIp(to)}${from === undefined ? "" : ` from ${formatIp(from)}`} to ${other}`;
      return `The node sends packets for ${way}, not to the pod: a rule or route of other software comes before Berth's`;
    }
  }
  return undefined;
}
