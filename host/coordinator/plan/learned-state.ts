/** State of a NIC that routers of its segment have made: addresses, prefixes, other routes. */
import { IFA_F_MANAGETEMPADDR, IFA_F_TEMPORARY } from "../../kernel/netlink/address/constants.ts";
import { RT_TABLE_MAIN, RTPROT_KERNEL, RTPROT_RA } from "../../kernel/netlink/route/constants.ts";
import { isLinkLocal, isMulticast } from "../../net/ip.ts";
import { formatPrefix, maskPrefix } from "../../net/prefix.ts";
import type { AddressState, NamespaceState, RouteState } from "../../plan/state.ts";
import { includesIp } from "./own-objects.ts";
import type { PlanInput } from "./plan-input.ts";
import { linkOf } from "./plan-nics.ts";

type Learned = Pick<NamespaceState, "addresses" | "routes">;

/** The main plugin's result has the others, and a plugin may have added some that it does not have. */
export function findLearned({ conf, ifName, addresses, observed: { pod } }: PlanInput): Learned {
  if (conf.acceptRA) return { addresses: [], routes: [] };
  const isLearned = ({ link, flags, prefix: { ip } }: AddressState): boolean =>
    link === ifName &&
    ip.family === 6 &&
    (flags & (IFA_F_MANAGETEMPADDR | IFA_F_TEMPORARY)) !== 0 &&
    !includesIp(addresses, ip);
  const given = pod.addresses.filter((address) => address.link === ifName && !isLearned(address));
  const networks = given.flatMap(({ prefix, peer }) => [prefix, { ...prefix, ip: peer ?? prefix.ip }]);
  const own = new Set(networks.map((prefix) => formatPrefix(maskPrefix(prefix))));
  /** The kernel makes a route to the prefix of each address on the link, and to each that a router advertises. */
  const isPrefixOfNone = ({ table, protocol, destination }: RouteState): boolean =>
    table === RT_TABLE_MAIN &&
    protocol === RTPROT_KERNEL &&
    destination.ip.family === 6 &&
    !isLinkLocal(destination.ip) &&
    !isMulticast(destination.ip) &&
    !own.has(formatPrefix(destination));
  return {
    addresses: pod.addresses.filter(isLearned),
    routes: pod.routes.filter(
      (route) => linkOf(route) === ifName && (route.protocol === RTPROT_RA || isPrefixOfNone(route)),
    ),
  };
}

/** Returns the input as if nothing had been learned. */
export function withoutLearned(situation: PlanInput, learned: Learned): PlanInput {
  const { pod, host } = situation.observed;
  const addresses = pod.addresses.filter((each) => !learned.addresses.includes(each));
  const routes = pod.routes.filter((each) => !learned.routes.includes(each));
  return { ...situation, observed: { pod: { ...pod, addresses, routes }, host } };
}
