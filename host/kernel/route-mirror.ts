/**
 * The routes of one table as notifications report them. They are replayed while they are simple: one route per
 * destination, over one link. Anything else makes the mirror stale, and the table must be listed again.
 *
 * The kernel does not report all deletions: a link that goes down takes along its IPv4 routes, an address the routes
 * with it as their source, a next hop object its routes. The mirror follows the first and is stale after the others.
 */
import { equalIp, type Ip } from "../net/ip.ts";
import { formatPrefix, wholePrefix } from "../net/prefix.ts";
import type { Attribute } from "./netlink/attribute.ts";
import { NLM_F_APPEND, NLM_F_REPLACE } from "./netlink/constants.ts";
import { RTA_NH_ID } from "./netlink/route/constants.ts";
import { encodeRoute, type Route } from "./netlink/route/route.ts";

const textOf = (route: Route): string => Buffer.from(encodeRoute(route)).toString("latin1");

const keyOf = ({ destination }: Route): string => formatPrefix(destination);

/** Returns whether the kernel removes the route only with its link, or reports the removal. */
function isSimple({ preferredSource, nextHops, source, gateway, link, rest = [] }: Route): boolean {
  if (preferredSource !== undefined || nextHops !== undefined || source !== undefined || gateway !== undefined)
    return false;
  return link !== undefined && rest.every(({ type }) => type !== RTA_NH_ID);
}

/** Returns the attributes without views into the buffer that received them. */
export function detached(attributes: readonly Attribute[] = []): Attribute[] {
  return attributes.map((each) => ({ ...each, value: each.value.slice() }));
}

export class RouteMirror {
  /** By destination, in the kernel's order. */
  readonly #routes = new Map<string, Route[]>();
  /** By link, its routes' destinations as keys of #routes: a lost link costs the same with any number of others. */
  readonly #links = new Map<number, string[]>();
  readonly #protocols = new Map<number, number>();
  #isSimple = true;
  /** The table must be listed before the mirror is used. */
  isStale = true;

  /** Takes over a fresh list of the whole table. */
  replace(routes: readonly Route[]): void {
    this.#routes.clear();
    this.#links.clear();
    this.#protocols.clear();
    for (const route of routes) this.#insert({ ...route, rest: detached(route.rest) });
    this.#isSimple = routes.every(isSimple);
    this.isStale = false;
  }

  /** `flags`: of the notification (NLM_F_*). */
  added(route: Route, flags: number): void {
    if (this.isStale) return;
    const present = this.#routes.get(keyOf(route));
    if (present?.some((each) => textOf(each) === textOf(route)) === true) return; // the list had it already
    const isOnly = present === undefined && (flags & (NLM_F_REPLACE | NLM_F_APPEND)) === 0;
    if (isOnly && isSimple(route)) this.#insert({ ...route, rest: detached(route.rest) });
    else this.isStale = true;
  }

  removed(route: Route): void {
    if (this.isStale) return;
    const key = keyOf(route);
    const present = this.#routes.get(key);
    if (present === undefined) return; // went with its link, or was never in the list
    const at = present.findIndex((each) => textOf(each) === textOf(route));
    if (at < 0) this.isStale = true;
    else this.#delete(key, present, at);
  }

  /** The link was deleted or is down. */
  linkLost(link: number): void {
    if (this.isStale) return;
    for (const key of [...(this.#links.get(link) ?? [])]) {
      const routes = this.#routes.get(key) ?? [];
      for (let at = routes.length - 1; at >= 0; at--) if (routes[at]?.link === link) this.#delete(key, routes, at);
    }
  }

  /** An address of the link was deleted: the last IPv4 address of a link takes along all IPv4 routes over it. */
  addressLost(link: number): void {
    if (!this.#isSimple || this.#links.has(link)) this.isStale = true;
  }

  /** A next hop object was changed or deleted. */
  nextHopLost(): void {
    if (!this.#isSimple) this.isStale = true;
  }

  /** Returns the routes to these addresses, and all of protocols other than `own`, at the same cost for any table. */
  select(ips: readonly Ip[], own: number): Route[] {
    if (this.#foreignOf(own) > 0) {
      const isWanted = (ip: Ip): boolean => ips.some((each) => equalIp(each, ip));
      return this.all().filter(({ protocol, destination }) => protocol !== own || isWanted(destination.ip));
    }
    return ips.flatMap((ip) => this.#routes.get(formatPrefix(wholePrefix(ip))) ?? []);
  }

  #foreignOf(own: number): number {
    let count = 0;
    for (const [protocol, routes] of this.#protocols) if (protocol !== own) count += routes;
    return count;
  }

  /** Returns all routes, those to one destination in the kernel's order. */
  all(): Route[] {
    return [...this.#routes.values()].flat();
  }

  #insert(route: Route): void {
    const key = keyOf(route);
    const present = this.#routes.get(key);
    if (present === undefined) this.#routes.set(key, [route]);
    else present.push(route);
    if (route.link !== undefined) this.#note(route.link, key);
    count(this.#protocols, route.protocol, 1);
  }

  #delete(key: string, routes: Route[], at: number): void {
    const [route] = routes.splice(at, 1);
    if (routes.length === 0) this.#routes.delete(key);
    if (route?.link !== undefined) this.#forget(route.link, key);
    if (route !== undefined) count(this.#protocols, route.protocol, -1);
  }

  #note(link: number, key: string): void {
    this.#links.getOrInsertComputed(link, () => []).push(key);
  }

  #forget(link: number, key: string): void {
    const keys = this.#links.get(link) ?? [];
    keys.splice(keys.indexOf(key), 1);
    if (keys.length === 0) this.#links.delete(link);
  }
}

function count(counts: Map<number, number>, key: number, change: 1 | -1): void {
  const next = (counts.get(key) ?? 0) + change;
  if (next === 0) counts.delete(key);
  else counts.set(key, next);
}
