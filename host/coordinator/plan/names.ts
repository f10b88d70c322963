/**
 * Names and MAC addresses of the veth pair between a pod and its node. They derive from the container ID alone, so that
 * a DEL finds the links of its ADD after any loss of state.
 */
import { hash } from "node:crypto";
import { invariant } from "../../lib/invariant.ts";
import { type Mac, parseMac } from "../../net/mac.ts";
import type { Veth } from "../../plan/operation.ts";
import { POD_VETH } from "./constants.ts";

/** Returns a locally administered unicast MAC. */
function macOf(octets: Uint8Array): Mac {
  const first = ((octets[0] ?? 0) & 0xfc) | 0x02;
  const text = [first, ...octets.subarray(1, 6)].map((octet) => octet.toString(16).padStart(2, "0")).join(":");
  const mac = parseMac(text);
  invariant(mac !== undefined, `${text} is a MAC address`);
  return mac;
}

/** The start of the names of all pairs' host ends, as with most CNI plugins. */
export const PAIR_START = "veth";

/** Returns whether {@link nameVeth} may have made the name of the host's end. */
export const isPairName = (name: string): boolean => /^veth[0-9a-f]{11}$/.test(name);

/** Links that the kernel adds to every namespace with their module (net.core.fb_tunnels_only_for_init_net). */
const FALLBACK_TUNNELS = "tunl0 gre0 gretap0 erspan0 ip_vti0 sit0 ip6tnl0 ip6gre0 ip6_vti0".split(" ");

/** Returns whether a link of this name in a pod is none of its NICs. */
export function isNoNic(name: string): boolean {
  return name === "lo" || name === POD_VETH || FALLBACK_TUNNELS.includes(name);
}

/** The host's end is `veth` and 11 hexadecimal digits of a hash, since the prefixes of container IDs collide. */
export function nameVeth(containerId: string): Veth {
  const digest = hash("sha256", containerId, "buffer");
  return {
    host: { name: `${PAIR_START}${digest.toString("hex").slice(0, 11)}`, mac: macOf(digest.subarray(6, 12)) },
    pod: { name: POD_VETH, mac: macOf(digest.subarray(12, 18)) },
  };
}
