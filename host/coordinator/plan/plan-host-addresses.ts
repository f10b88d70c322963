/** Selects the node's addresses that a pod uses to reach it. */
import type { Family, Ip } from "../../net/ip.ts";
import { prefixContains } from "../../net/prefix.ts";
import type { AddressState, NamespaceState } from "../../plan/state.ts";
import { uniqueIps } from "./own-objects.ts";

/** Links of container networks, tunnels and local services: no other machine can reach their addresses. */
const VIRTUAL_LINKS =
  /^(?:lo|docker|cni|cali|cilium|lxc|flannel|veth|virbr|br-[0-9a-f]{12}|tunl|vxlan|genev|wg|wireguard|kube-|nodelocaldns|dummy|ovn|antrea|weave|ip6tnl|sit|gre)/;

/** RT_SCOPE_UNIVERSE */
const GLOBAL = 0;
/** IFA_F_TEMPORARY, IFA_F_DADFAILED, IFA_F_DEPRECATED, IFA_F_TENTATIVE (linux/if_addr.h): addresses that may disappear. */
const UNRELIABLE = 0x01 | 0x08 | 0x20 | 0x40;
/** IFA_F_TEMPORARY and IFA_F_SECONDARY are the same bit, which IPv4 sets on every further address of a subnet. */
const UNRELIABLE_IPV4 = 0x08 | 0x20;

function isReliable({ prefix, scope, flags }: AddressState): boolean {
  const bad = prefix.ip.family === 6 ? UNRELIABLE : UNRELIABLE_IPV4;
  return scope === GLOBAL && (flags & bad) === 0;
}

/**
 * Returns the source address that the kernel selects for IPv4 over the link `end`: its own, as a bridge has, else, over a link without one such as the pair's,
 * the first of all links (inet_select_addr in net/ipv4/devinet.c), possibly on the loopback. For IPv6 it selects the one with the longest common prefix.
 */
function kernelSourceAddress(host: NamespaceState, family: Family, end: string): AddressState[] {
  const candidates = host.addresses.filter((address) => address.prefix.ip.family === 4 && isReliable(address));
  const own = candidates.filter(({ link }) => link === end);
  return family === 4 ? [...own, ...candidates].slice(0, 1) : [];
}

/**
 * Returns the node's addresses of one family, each once: first those in a subnet with one of the pod's addresses, then the others
 * in the kernel's order of links, and last the kernel's default source address towards the pod, over the link `end`.
 */
export function findHostAddresses(host: NamespaceState, family: Family, podAddresses: readonly Ip[], end = ""): Ip[] {
  const counts = (address: AddressState): boolean => isReliable(address) && !VIRTUAL_LINKS.test(address.link);
  const own = host.addresses.filter((address) => address.prefix.ip.family === family && counts(address));
  const isNear = ({ prefix }: AddressState): boolean => podAddresses.some((ip) => prefixContains(prefix, ip));
  const ordered = [...own.filter(isNear), ...own, ...(own.length === 0 ? [] : kernelSourceAddress(host, family, end))];
  return uniqueIps(ordered.map(({ prefix }) => prefix.ip));
}
