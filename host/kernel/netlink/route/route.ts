import { formatIp } from "../../../net/ip.ts";
import { formatPrefix } from "../../../net/prefix.ts";
import type { RouteState } from "../../../plan/state.ts";
import { type Attribute, decodeUint32, encodeUint32, findValue, optional, present, readValue } from "../attribute.ts";
import { encodeRouteMessage, type RouteMessage } from "../families.ts";
import { decodeFamily, decodeIpOf, decodePrefixOf, encodeFamily, encodeIp, encodePrefix } from "../ip-bytes.ts";
import {
  RT_TABLE_UNSPEC,
  RTA_CACHEINFO,
  RTA_DST,
  RTA_GATEWAY,
  RTA_MULTIPATH,
  RTA_NH_ID,
  RTA_OIF,
  RTA_PREFSRC,
  RTA_PRIORITY,
  RTA_SRC,
  RTA_TABLE,
  RTA_VIA,
  RTN_BLACKHOLE,
  RTN_PROHIBIT,
  RTN_THROW,
  RTN_UNREACHABLE,
  RTNH_F_STATE,
} from "./constants.ts";
import { decodeNextHops, decodeVia, encodeNextHops, encodeVia, type NextHop } from "./next-hop.ts";

/** Refers to links by index. Without `metric`, `tos` and `rest`: the default, 0 and none. */
export interface Route extends Omit<RouteState, "link" | "nextHops" | "metric" | "tos" | "rest"> {
  readonly link?: number | undefined;
  readonly nextHops?: readonly NextHop[] | undefined;
  readonly metric?: number | undefined;
  readonly tos?: number | undefined;
  readonly rest?: RouteState["rest"] | undefined;
}

const KNOWN = new Set([
  RTA_DST,
  RTA_GATEWAY,
  RTA_MULTIPATH,
  RTA_OIF,
  RTA_PREFSRC,
  RTA_PRIORITY,
  RTA_SRC,
  RTA_TABLE,
  RTA_VIA,
  RTA_CACHEINFO, // ages and counters
]);

const NOWHERE = [RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW];

/** Returns whether routes of this type have no device. The kernel reports `lo` for them in IPv6. */
export function leadsNowhere({ type }: Pick<Route, "type">): boolean {
  return NOWHERE.includes(type);
}

/** Returns undefined for families other than IP. Throws NetlinkError for contradicting lengths and families. */
export function routeOf(message: RouteMessage): Route | undefined {
  const { attributes } = message;
  const family = decodeFamily(message.family);
  if (family === undefined) return undefined;
  const own = (value: Uint8Array) => decodeIpOf(family, value);
  const { sourceLength } = message;
  return {
    destination: decodePrefixOf(family, findValue(attributes, RTA_DST), message.destinationLength),
    table: readValue(attributes, RTA_TABLE, decodeUint32) ?? message.table,
    type: message.type,
    protocol: message.protocol,
    scope: message.scope,
    flags: message.flags & ~RTNH_F_STATE & 0xff,
    gateway: readValue(attributes, RTA_GATEWAY, own) ?? readValue(attributes, RTA_VIA, decodeVia),
    link: readValue(attributes, RTA_OIF, decodeUint32),
    metric: readValue(attributes, RTA_PRIORITY, decodeUint32),
    preferredSource: readValue(attributes, RTA_PREFSRC, own),
    source: sourceLength === 0 ? undefined : decodePrefixOf(family, findValue(attributes, RTA_SRC), sourceLength),
    nextHops: readValue(attributes, RTA_MULTIPATH, (value) => decodeNextHops(family, value)),
    tos: message.tos,
    rest: attributes.filter(({ type }) => !KNOWN.has(type)),
  };
}

/** The kernel reports a next hop object (`ip nexthop`) together with its next hops, but accepts only one of the two. */
function withoutNextHops(route: Route): Route {
  const byObject = route.rest?.some(({ type }) => type === RTA_NH_ID) ?? false;
  return byObject ? { ...route, gateway: undefined, link: undefined, nextHops: undefined } : route;
}

function encodeRouteAttributes(route: Route): Attribute[] {
  const { destination, gateway, link, table, source, nextHops, rest = [] } = withoutNextHops(route);
  const { family } = destination.ip;
  const own = gateway?.family === family;
  return present([
    optional(RTA_DST, encodePrefix(destination), (value) => value),
    optional(RTA_SRC, source && encodePrefix(source), (value) => value),
    optional(RTA_GATEWAY, own ? gateway : undefined, encodeIp),
    optional(RTA_VIA, own ? undefined : gateway, encodeVia),
    optional(RTA_TABLE, table > 255 ? table : undefined, encodeUint32),
    optional(RTA_PRIORITY, route.metric, encodeUint32),
    optional(RTA_PREFSRC, route.preferredSource, encodeIp),
    optional(RTA_MULTIPATH, nextHops, (hops) => encodeNextHops(family, hops)),
    optional(RTA_OIF, link, encodeUint32),
    ...rest,
  ]);
}

export function encodeRoute(route: Route): Uint8Array {
  const { destination, source, tos = 0, table, protocol, scope, type, flags } = route;
  return encodeRouteMessage({
    family: encodeFamily(destination.ip.family),
    destinationLength: destination.length,
    sourceLength: source?.length ?? 0,
    tos,
    table: table > 255 ? RT_TABLE_UNSPEC : table,
    protocol,
    scope,
    type,
    flags,
    attributes: encodeRouteAttributes(route),
  });
}

/** Formats the route for errors: `default via 10.6.0.1 dev 7 table 101`, with the link's index, not its name. */
export function formatRoute({ destination, gateway, link, table, metric }: Route): string {
  const to = destination.length === 0 ? "default" : formatPrefix(destination);
  const via = gateway && ` via ${formatIp(gateway)}`;
  const device = link !== undefined && ` dev ${link}`;
  const priority = metric !== undefined && ` metric ${metric}`;
  return `${to}${via ?? ""}${device || ""} table ${table}${priority || ""}`;
}
