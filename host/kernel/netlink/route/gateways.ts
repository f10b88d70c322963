/**
 * Gateways of routes and of next hop objects (`ip nexthop`), which routes refer to. No other field is decoded: a node
 * may have a hundred thousand routes.
 */
import { FAMILIES, type Ip } from "../../../net/ip.ts";
import { decodeAttributes } from "../attribute.ts";
import type { Conversation, Request } from "../conversation.ts";
import { encodeRouteMessage } from "../families.ts";
import { decodeFamily, decodeIpOf, encodeFamily } from "../ip-bytes.ts";
import type { Message } from "../message.ts";
import { uint8At } from "../numbers.ts";
import { RTA_GATEWAY, RTA_MULTIPATH, RTA_VIA, RTM_GETROUTE, RTM_NEWROUTE } from "./constants.ts";
import { decodeNextHops, decodeVia } from "./next-hop.ts";

/** linux/rtnetlink.h, linux/nexthop.h */
export const RTM_NEWNEXTHOP = 104;
export const RTM_DELNEXTHOP = 105;
const RTM_GETNEXTHOP = 106;
const NHA_GATEWAY = 6;

/** Lengths of struct rtmsg and struct nhmsg, which begin with the family. */
const ROUTE_BYTES = 12;
const NEXT_HOP_BYTES = 8;

const OF_ROUTE: ReadonlySet<number> = new Set([RTA_GATEWAY, RTA_VIA, RTA_MULTIPATH]);
const OF_NEXT_HOP: ReadonlySet<number> = new Set([NHA_GATEWAY]);

/** Returns the gateways of RTM_NEWROUTE or RTM_NEWNEXTHOP; none of other families. Throws NetlinkError. */
export function gatewaysIn({ type, payload }: Message): Ip[] {
  const family = decodeFamily(uint8At(payload, 0));
  if (family === undefined) return [];
  const isRoute = type === RTM_NEWROUTE;
  const start = isRoute ? ROUTE_BYTES : NEXT_HOP_BYTES;
  return decodeAttributes(payload, start, isRoute ? OF_ROUTE : OF_NEXT_HOP).flatMap(({ type, value }) => {
    if (type === RTA_MULTIPATH) return decodeNextHops(family, value).flatMap(({ gateway }) => gateway ?? []);
    return type === RTA_VIA ? decodeVia(value) : decodeIpOf(family, value);
  });
}

const LISTS: readonly Request[] = [
  ...FAMILIES.map((family) => ({
    operation: `list IPv${family} routes`,
    type: RTM_GETROUTE,
    payload: encodeRouteMessage({ family: encodeFamily(family) }),
  })),
  { operation: "list next hop objects", type: RTM_GETNEXTHOP, payload: new Uint8Array(NEXT_HOP_BYTES) },
];

/**
 * Yields the gateways of all routes and next hop objects in the kernel's parts of some hundred objects, with many
 * repetitions. The conversation has no other use until the end. Throws NetlinkError.
 */
export function* streamGateways(conversation: Conversation): Generator<Ip[]> {
  for (const list of LISTS) for (const messages of conversation.stream(list)) yield messages.flatMap(gatewaysIn);
}
