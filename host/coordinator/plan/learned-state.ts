/** State of a NIC that routers of its segment have made: addresses, prefixes, other routes. */
import { IFA_F_MANAGETEMPADDR, IFA_F_TEMPORARY } from "../../kernel/netlink/address/constants.ts";
import { RTPROT_KERNEL, RTPROT_RA } from "../../kernel/netlink/route/constants.ts";
import { type Ip, isLinkLocal, isMulticast } from "../../net/ip.ts";
import { formatPrefix, maskPrefix, wholePrefix } from "../../net/prefix.ts";
import type { Operation } from "../../plan/operation.ts";
import type { AddressState, NamespaceState, RouteState } from "../../plan/state.ts";
import { includesIp } from "./own-objects.ts";
import { linkOf } from "./plan-nics.ts";

/** Returns the operations that take it off. The main plugin's result has `given`; a plugin may have added others. */
export function planUnlearning(pod: NamespaceState, ifName: string, given: readonly Ip[]): Operation[] {
  const onNic = pod.addresses.filter(({ link }) => link === ifName);
  const isLearned = ({ flags, prefix: { ip } }: AddressState): boolean =>
    ip.family === 6 && (flags & (IFA_F_MANAGETEMPADDR | IFA_F_TEMPORARY)) !== 0 && !includesIp(given, ip);
  const stays = onNic.filter((address) => !isLearned(address));
  const networks = stays.flatMap(({ prefix, peer }) => [maskPrefix(prefix), ...(peer ? [wholePrefix(peer)] : [])]);
  const own = new Set(networks.map(formatPrefix));
  /** The kernel makes one for each address, and for each prefix that a router advertises; `sbr` copies them. */
  const isPrefixOfNone = ({ protocol, destination }: RouteState): boolean =>
    protocol === RTPROT_KERNEL &&
    destination.ip.family === 6 &&
    !isLinkLocal(destination.ip) &&
    !isMulticast(destination.ip) &&
    !own.has(formatPrefix(destination));
  const routes = pod.routes.filter(
    (route) => linkOf(route) === ifName && (route.protocol === RTPROT_RA || isPrefixOfNone(route)),
  );
  return [
    ...routes.map((route) => ({ kind: "delete-route", place: "pod", route }) as const),
    ...onNic.filter(isLearned).map((address) => ({ kind: "delete-address", place: "pod", address }) as const),
  ];
}
