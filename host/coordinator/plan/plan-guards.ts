/**
 * Which addresses a pod may bring. Definitions are written by tenants, and any IPAM may stand in them: an address of a pod is one that the
 * whole node reaches over the pair, before all of its other routes.
 * Called by plan-attachment.ts.
 * Effects: none.
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { RT_SCOPE_UNIVERSE } from "../../kernel/netlink/route/constants.ts";
import { equalIp, formatIp, type Ip } from "../../net/ip.ts";
import { type Prefix, parsePrefix, prefixContains } from "../../net/prefix.ts";
import { MAX_POD_ADDRESSES } from "../limits.ts";
import { isOneOf } from "./plan-parts.ts";
import type { Situation } from "./situation.ts";

/** No machine's: this host, loopback, multicast, reserved, link-local of IPv6, IPv4 in IPv6's clothes. */
const NOT_OF_A_MACHINE: readonly Prefix[] = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "224.0.0.0/3",
  "::/128",
  "::1/128",
  "::ffff:0:0/96",
  "fe80::/10",
  "ff00::/8",
].flatMap((text) => parsePrefix(text) ?? []);

function whyNot(ip: Ip, { observed, gateways = [] }: Situation): string | undefined {
  if (NOT_OF_A_MACHINE.some((prefix) => prefixContains(prefix, ip))) return "no machine can have it";
  const own = observed.host.addresses.find(({ prefix }) => equalIp(prefix.ip, ip));
  if (own !== undefined) return `the node has it on "${own.link}"`;
  return isOneOf(gateways, ip) ? "it is a gateway of the node" : undefined;
}

/**
 * Throws CniError 106 when the name of the pair, 44 bits of a hash, is that of a link with another MAC address, which are 46 other bits of it:
 * of another container, or of somebody else.
 */
export function requireFreeName({ observed, pair }: Situation): void {
  const found = observed.host.links.find(({ name }) => name === pair.host.name);
  if (found === undefined || found.mac === pair.host.mac) return;
  const whose = found.alias === "" ? "" : ` (${JSON.stringify(found.alias)})`;
  throw new CniError(
    ErrorCode.InterfaceRefused,
    `The node has a link "${found.name}"${whose} that is not of this container; give it another name, or start the pod again`,
  );
}

/** Throws CniError 106 for an address that would take the node's own traffic, and for more than one pod can need. */
export function requireHarmless(situation: Situation, ips: readonly Ip[]): void {
  const { ifName, observed } = situation;
  const count = observed.pod.addresses.filter(({ scope }) => scope === RT_SCOPE_UNIVERSE).length;
  if (Math.max(count, ips.length) > MAX_POD_ADDRESSES) {
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `The pod of interface "${ifName}" has ${Math.max(count, ips.length)} addresses; each is a route of the node, ` +
        `and ${MAX_POD_ADDRESSES} is the most that a pod may have`,
    );
  }
  for (const ip of ips) {
    const reason = whyNot(ip, situation);
    if (reason === undefined) continue;
    throw new CniError(
      ErrorCode.InterfaceRefused,
      `Interface "${ifName}" has address ${formatIp(ip)}, which the node would look for in the pod: ${reason}; give the pod another one`,
    );
  }
}
