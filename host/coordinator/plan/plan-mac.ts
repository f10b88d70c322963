/** The MAC of a NIC with a fixed prefix (podMACPrefix): two octets of the configuration, four of the NIC's address. */
import { refuseInterface } from "../../cni/error.ts";
import { IPS_ANNOTATION } from "../../config/annotations.ts";
import { invariant } from "../../lib/invariant.ts";
import type { Ip } from "../../net/ip.ts";
import { type Mac, parseMac } from "../../net/mac.ts";
import type { LinkState } from "../../plan/state.ts";

/**
 * Returns `requested` if the pod requests a MAC, else that of the prefix; undefined without either. Throws CniError 106
 * for a link that cannot have a MAC of its own, or has no address.
 */
export function planMac(prefix: string, link: LinkState, addresses: readonly Ip[], requested?: Mac): Mac | undefined {
  if (prefix === "" && requested === undefined) return undefined;
  if (link.kind === "ipvlan" || link.mac === undefined) {
    const what = link.kind === "" ? "has no MAC address" : `is of kind ${link.kind}, which has none of its own`;
    const [name, value] =
      prefix === "" ? [`mac of annotation "${IPS_ANNOTATION}"`, requested] : ["podMACPrefix", prefix];
    refuseInterface(
      `${name} "${value}" cannot be applied to interface "${link.name}": it ${what}; remove ${name}, or use macvlan`,
    );
  }
  if (requested !== undefined) return requested;
  const ip = addresses.find(({ family }) => family === 4) ?? addresses[0];
  if (ip === undefined)
    refuseInterface(
      `podMACPrefix "${prefix}" cannot be applied to interface "${link.name}": it has no IP address to derive a MAC address from`,
    );
  return macOfAddress(prefix, ip);
}

/** Returns the MAC of the address. `prefix` is two octets as text. */
export function macOfAddress(prefix: string, ip: Ip): Mac {
  const octets = [24n, 16n, 8n, 0n].map((shift) => Number((ip.value >> shift) & 0xffn));
  const mac = parseMac([prefix, ...octets.map((octet) => octet.toString(16).padStart(2, "0"))].join(":"));
  invariant(mac !== undefined, `"${prefix}" is two octets`);
  return mac;
}
