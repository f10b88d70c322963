import { formatIp, type Ip } from "../../../net/ip.ts";
import type { Mac } from "../../../net/mac.ts";
import { decodeMac, encodeMac } from "../../mac-bytes.ts";
import { attribute, findValue, optional, present, readValue } from "../attribute.ts";
import { encodeNeighbourMessage, type NeighbourMessage } from "../families.ts";
import { decodeFamily, decodeIpOf, encodeFamily, encodeIp } from "../ip-bytes.ts";
import { uint32At } from "../numbers.ts";
import { NDA_CACHEINFO, NDA_DST, NDA_LLADDR, NTF_PROXY } from "./constants.ts";

export interface Neighbour {
  readonly ip: Ip;
  /** Undefined while unresolved, and for proxies. */
  readonly mac?: Mac | undefined;
  readonly link: number;
  /** NUD_*; the kernel ignores it for proxies. */
  readonly state: number;
  /** NTF_* */
  readonly flags: number;
}

/** Returns undefined for entries of other families, such as forwarding tables of bridges. */
export function neighbourOf({ family, index, state, flags, attributes }: NeighbourMessage): Neighbour | undefined {
  const known = decodeFamily(family);
  const address = findValue(attributes, NDA_DST);
  if (known === undefined || address === undefined) return undefined;
  const mac = readValue(attributes, NDA_LLADDR, decodeMac);
  return { ip: decodeIpOf(known, address), mac, link: index, state, flags };
}

/** USER_HZ: the kernel reports times to user space in hundredths of a second. */
const MS_PER_TICK = 10;

/** Returns the time since the neighbour last proved its MAC (linux/neighbour.h, ndm_confirmed): milliseconds. */
export function confirmedAgoMs({ attributes }: NeighbourMessage): number | undefined {
  return readValue(attributes, NDA_CACHEINFO, (bytes) => uint32At(bytes, 0) * MS_PER_TICK);
}

export function encodeNeighbour({ ip, mac, link, state, flags }: Neighbour): Uint8Array {
  const attributes = present([attribute(NDA_DST, encodeIp(ip)), optional(NDA_LLADDR, mac, encodeMac)]);
  return encodeNeighbourMessage({ family: encodeFamily(ip.family), index: link, state, flags, attributes });
}

/** Formats the neighbour as `10.6.0.9 lladdr 02:00:00:00:00:09 dev 7`, with the link's index instead of `ip`'s name. */
export function formatNeighbour({ ip, mac, link, flags }: Neighbour): string {
  const proxy = (flags & NTF_PROXY) !== 0 ? "proxy " : "";
  return `${proxy}${formatIp(ip)}${mac === undefined ? "" : ` lladdr ${mac}`} dev ${link}`;
}
