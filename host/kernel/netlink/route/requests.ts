import { bitsOf, FAMILIES, type Family, formatIp, type Ip } from "../../../net/ip.ts";
import { EACCES, EHOSTUNREACH, EINVAL, ENETUNREACH, ENODEV, ENOENT, ESRCH, EXDEV } from "../../errno.ts";
import { encodeUint32, optional, present } from "../attribute.ts";
import { NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL } from "../constants.ts";
import type { Conversation, Request } from "../conversation.ts";
import { unlessRefused } from "../error.ts";
import { decodeRouteMessage, encodeRouteMessage, type RouteMessage } from "../families.ts";
import { encodeFamily } from "../ip-bytes.ts";
import type { Message } from "../message.ts";
import {
  IP6_RT_PRIO_USER,
  RT_TABLE_LOCAL,
  RTA_IIF,
  RTA_MARK,
  RTA_NH_ID,
  RTA_OIF,
  RTA_TABLE,
  RTM_DELROUTE,
  RTM_F_CLONED,
  RTM_F_LOOKUP_TABLE,
  RTM_GETROUTE,
  RTM_NEWROUTE,
} from "./constants.ts";
import { encodeRoute, formatRoute, leadsNowhere, type Route, routeOf } from "./route.ts";

/** The routes to list; undefined fields match everything. */
interface RouteFilter {
  readonly family?: Family | undefined;
  readonly table?: number | undefined;
  readonly link?: number | undefined;
  /** Leaves out, undecoded, the table of the namespace's own addresses, the longest one of a pod. */
  readonly withoutLocal?: boolean | undefined;
}

/** Offset of the table's number in the fixed part. */
const TABLE_OFFSET = 4;

function isLocal({ payload }: Message): boolean {
  return payload[TABLE_OFFSET] === RT_TABLE_LOCAL;
}

/**
 * Returns routes without the cached copies that lookups make. A table that does not exist has no routes. A kernel
 * without IPv6 (`ipv6.disable=1`) answers with the routes of all other families; those are left out.
 */
export function listRoutes(conversation: Conversation, filter: RouteFilter = {}): RouteMessage[] {
  const { table, link } = filter;
  const attributes = present([optional(RTA_TABLE, table, encodeUint32), optional(RTA_OIF, link, encodeUint32)]);
  const families = filter.family === undefined ? FAMILIES : [filter.family];
  const messages = families.flatMap((family) => {
    const payload = encodeRouteMessage({ family: encodeFamily(family), attributes });
    const operation = `list IPv${family} routes${table === undefined ? "" : ` of table ${table}`}`;
    const found = unlessRefused([ENOENT], () => conversation.dump({ operation, type: RTM_GETROUTE, payload })) ?? [];
    return found.filter((message) => message.payload[0] === encodeFamily(family));
  });
  const wanted = filter.withoutLocal ? messages.filter((message) => !isLocal(message)) : messages;
  return wanted.map(decodeRouteMessage).filter(({ flags }) => (flags & RTM_F_CLONED) === 0);
}

/** A packet that is sent or, with the index of the link `input`, received there. `mark`: as a rule matches it. */
export interface Packet {
  readonly to: Ip;
  /** By default the kernel chooses. */
  readonly from?: Ip | undefined;
  readonly mark?: number;
  readonly input?: number | undefined;
}

/** The kernel's errors for a packet without a route; a strict reverse path gives EINVAL or EXDEV. */
const NO_WAY = [EACCES, EHOSTUNREACH, EINVAL, ENETUNREACH, EXDEV];

/** Returns the packet's route, as `ip route get`; undefined if it has none. */
export function lookUpRoute(conversation: Conversation, { to, from, mark, input }: Packet): Route | undefined {
  const whole = (ip: Ip) => ({ ip, length: bitsOf(ip.family) });
  const rest = present([optional(RTA_MARK, mark, encodeUint32), optional(RTA_IIF, input, encodeUint32)]);
  const about = { destination: whole(to), source: from && whole(from), rest };
  // IPv6 always names the table, and refuses the flag.
  const flags = to.family === 4 ? RTM_F_LOOKUP_TABLE : 0;
  const payload = encodeRoute({ ...about, table: 0, type: 0, protocol: 0, scope: 0, flags });
  const question = { operation: `get route to ${formatIp(to)}`, type: RTM_GETROUTE, payload };
  const [answer] = unlessRefused(NO_WAY, () => conversation.request(question)) ?? [];
  return answer && routeOf(decodeRouteMessage(answer));
}

/** For a route with the same destination and metric in the table: refuse, or add before or after it. */
const BESIDE = { none: NLM_F_EXCL, first: 0, last: NLM_F_APPEND } as const;

/**
 * Returns the request to create the route. The kernel refuses with EEXIST if the table already has a route with the
 * same destination and metric, unless `beside` allows several.
 */
export function newRoute(route: Route, beside: keyof typeof BESIDE = "none"): Request {
  const operation = () => `add route ${formatRoute(route)}`;
  return { operation, type: RTM_NEWROUTE, flags: NLM_F_CREATE | BESIDE[beside], payload: encodeRoute(route) };
}

/**
 * Returns the fields that the kernel compares when it deletes a route: not the route metrics (RTA_METRICS), nor the
 * device that IPv6 assigns to routes without one.
 */
function identityOf(route: Route): Route {
  const rest = route.rest?.filter(({ type }) => type === RTA_NH_ID);
  const metric = route.destination.ip.family === 4 && route.metric === 0 ? undefined : route.metric;
  return { ...route, rest, metric, link: leadsNowhere(route) ? undefined : route.link };
}

/**
 * Returns whether the route existed. Absent fields are not compared: gateway, link, metric; type and protocol 0; scope
 * RT_SCOPE_NOWHERE.
 */
function deleteRoute(conversation: Conversation, route: Route): boolean {
  const operation = `delete route ${formatRoute(route)}`;
  const payload = encodeRoute(identityOf(route));
  const deleted = unlessRefused([ESRCH], () => conversation.request({ operation, type: RTM_DELROUTE, payload }));
  return deleted !== undefined;
}

/** Routes listed by the first of several deletions, without those deleted since, by query; encoded. */
export type ListedRoutes = Map<string, string[]>;

const textOf = (route: Route): string => Buffer.from(encodeRoute(identityOf(route))).toString("latin1");

/**
 * Deletes the route that equals this one, also in metric and source. Returns whether it existed. Consecutive deletions,
 * with no other change in between, may share `listed`; otherwise each lists its table again.
 */
export function deleteWholeRoute(conversation: Conversation, route: Route, listed: ListedRoutes = new Map()): boolean {
  const metric = route.metric ?? (route.destination.ip.family === 6 ? IP6_RT_PRIO_USER : undefined);
  const wanted = identityOf({ ...route, metric });
  const filter = { family: route.destination.ip.family, table: route.table, link: wanted.link };
  const texts = listed.getOrInsertComputed(JSON.stringify(filter), () => {
    const messages = unlessRefused([ENODEV], () => listRoutes(conversation, filter)) ?? [];
    return messages.map(routeOf).flatMap((route) => (route === undefined ? [] : [textOf(route)]));
  });
  const at = texts.indexOf(textOf(wanted));
  if (at < 0) return false;
  texts.splice(at, 1);
  return deleteRoute(conversation, wanted);
}
