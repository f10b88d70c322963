/**
 * Next hops of a multipath route: the value of RTA_MULTIPATH ↔ a list.
 *
 *      0        2       3            4      8        length
 *      ├ length ┼ flags ┼ weight - 1 ┼ link ┼ attributes …   ┤ padding to a multiple of 4
 *      (linux/rtnetlink.h, struct rtnexthop)
 */
import type { Family, Ip } from "../../../net/ip.ts";
import { align, decodeAttributes, encodeAttributes, optional, present, readValue, viewOf } from "../attribute.ts";
import { AF_INET, AF_INET6 } from "../constants.ts";
import { malformed } from "../error.ts";
import { decodeIpOf, encodeFamily, encodeIp } from "../ip-bytes.ts";
import { RTA_GATEWAY, RTA_VIA } from "./constants.ts";

const HEADER_BYTES = 8;

export interface NextHop {
  /** Undefined if the destination is on the link. May be of the other family than the route. */
  readonly gateway?: Ip | undefined;
  readonly link: number;
  /** 1 to 256 */
  readonly weight: number;
  /** RTNH_F_* */
  readonly flags: number;
}

/** RTA_VIA: family, then address (linux/rtnetlink.h, struct rtvia). */
export function encodeVia(ip: Ip): Uint8Array {
  const address = encodeIp(ip);
  const bytes = new Uint8Array(2 + address.length);
  viewOf(bytes).setUint16(0, encodeFamily(ip.family), true);
  bytes.set(address, 2);
  return bytes;
}

export function decodeVia(value: Uint8Array): Ip {
  const family = value.length < 2 ? undefined : viewOf(value).getUint16(0, true);
  if (family !== AF_INET && family !== AF_INET6) throw malformed("via", 0, `family ${family}`, "2 or 10");
  return decodeIpOf(family === AF_INET ? 4 : 6, value.subarray(2));
}

export function decodeNextHops(family: Family, value: Uint8Array): NextHop[] {
  const view = viewOf(value);
  const hops: NextHop[] = [];
  for (let at = 0; at < value.length; ) {
    const left = value.length - at;
    const length = left < HEADER_BYTES ? 0 : view.getUint16(at, true);
    if (length < HEADER_BYTES || length > left) throw malformed("next hop", at, `length ${length}`, `8 to ${left}`);
    const attributes = decodeAttributes(value.subarray(at + HEADER_BYTES, at + length));
    const own = readValue(attributes, RTA_GATEWAY, (bytes) => decodeIpOf(family, bytes));
    hops.push({
      gateway: own ?? readValue(attributes, RTA_VIA, decodeVia),
      link: view.getUint32(at + 4, true),
      weight: view.getUint8(at + 3) + 1,
      flags: view.getUint8(at + 2),
    });
    at += align(length);
  }
  return hops;
}

export function encodeNextHops(family: Family, hops: readonly NextHop[]): Uint8Array {
  const parts = hops.map(({ gateway, link, weight, flags }) => {
    const own = gateway?.family === family;
    const bytes = encodeAttributes(
      present([
        optional(RTA_GATEWAY, own ? gateway : undefined, encodeIp),
        optional(RTA_VIA, own ? undefined : gateway, encodeVia),
      ]),
      HEADER_BYTES,
    );
    const view = viewOf(bytes);
    view.setUint16(0, bytes.length, true);
    view.setUint8(2, flags);
    view.setUint8(3, weight - 1);
    view.setUint32(4, link, true);
    return bytes;
  });
  return new Uint8Array(Buffer.concat(parts));
}
