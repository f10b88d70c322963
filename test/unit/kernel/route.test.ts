import { describe, expect, it } from "vitest";
import { attribute } from "../../../host/kernel/netlink/attribute.ts";
import { NLM_F_CREATE, NLM_F_REPLACE } from "../../../host/kernel/netlink/constants.ts";
import { decodeRouteMessage } from "../../../host/kernel/netlink/families.ts";
import { RTM_NEWROUTE } from "../../../host/kernel/netlink/route/constants.ts";
import { createRoute, deleteRoute, listRoutes } from "../../../host/kernel/netlink/route/requests.ts";
import { encodeRoute, type Route, routeOf } from "../../../host/kernel/netlink/route/route.ts";
import { formatPrefix } from "../../../host/net/prefix.ts";
import { ip, prefix } from "../../world/values.ts";
import { type Ask, answersTo, itSends, sentFor } from "./recorded.ts";

const plain = { table: 254, type: 1, protocol: 3, scope: 0, flags: 0, link: 7 };
const mtu = attribute(8, Uint8Array.from([8, 0, 2, 0, 0x14, 5, 0, 0, 8, 0, 1, 0, 4, 0, 0, 0]));
/** The kernel puts the lock first. */
const mtuAnswered = attribute(8, Uint8Array.from([8, 0, 1, 0, 4, 0, 0, 0, 8, 0, 2, 0, 0x14, 5, 0, 0]));

const to = (destination: string, more: Partial<Route> = {}): Route => {
  return { ...plain, destination: prefix(destination), ...more };
};
const [v4, v6, noLink] = [{ gateway: ip("10.6.0.1") }, { gateway: ip("fd00::1") }, { link: undefined }];
const hop = (gateway: string, weight: number) => ({ gateway: ip(gateway), link: 7, weight, flags: 0 });
const byObject = { ...noLink, rest: [attribute(30, Uint8Array.of(5, 0, 0, 0))] };

const made: Record<string, Route> = {
  "ip route add 10.9.0.0/16 via 10.6.0.1 dev v0 table 500 metric 7 src 10.6.0.254 proto 99": to("10.9.0.0/16", {
    ...{ ...v4, table: 500, metric: 7, preferredSource: ip("10.6.0.254"), protocol: 99 },
  }),
  "ip route add 10.8.0.1/32 dev v0 scope link": to("10.8.0.1", { scope: 253 }),
  "ip route add 203.0.113.0/24 via 192.168.77.1 dev v0 onlink": to("203.0.113.0/24", {
    ...{ gateway: ip("192.168.77.1"), flags: 4 },
  }),
  "ip route add fd09::/64 via fd00::1 dev v0 table 101": to("fd09::/64", { ...v6, table: 101 }),
  "ip route add 10.11.0.0/16 via inet6 fd00::1 dev v0": to("10.11.0.0/16", v6),
  "ip route add blackhole 10.12.0.0/16": to("10.12.0.0/16", { ...noLink, type: 6 }),
  "ip -6 route add unreachable fd12::/64": to("fd12::/64", { ...noLink, type: 7 }),
  "ip route add 10.20.0.0/16 nhid 5": to("10.20.0.0/16", byObject),
  "ip route add 10.13.0.0/16 via 10.6.0.1 dev v0 mtu lock 1300": to("10.13.0.0/16", { ...v4, rest: [mtu] }),
  "ip route add 10.99.0.0/16 nexthop via 10.6.0.1 dev v0 weight 2 nexthop via inet6 fd00::1 dev v0": to(
    "10.99.0.0/16",
    { ...{ ...noLink, nextHops: [hop("10.6.0.1", 2), hop("fd00::1", 1)] } },
  ),
  "ip -6 route add fd99::/64 nexthop via fd00::1 dev v0 nexthop via fd00::2 dev v0 weight 3": to("fd99::/64", {
    ...{ ...noLink, nextHops: [hop("fd00::1", 1), hop("fd00::2", 3)] },
  }),
};

const defaultRoute = to("0.0.0.0/0", { ...v4, table: 101 });
const replacing = { operation: "replace", type: RTM_NEWROUTE, flags: NLM_F_CREATE | NLM_F_REPLACE };
const anyTo = { type: 0, protocol: 0, scope: 255, flags: 0 };

const others: Record<string, Ask> = {
  "ip route replace default via 10.6.0.1 dev v0 table 101": (to) =>
    to.request({ ...replacing, payload: encodeRoute(defaultRoute) }),
  "ip route del 10.9.0.0/16 table 500": (to) =>
    deleteRoute(to, { ...anyTo, destination: prefix("10.9.0.0/16"), table: 500 }),
  "ip route del 10.20.0.0/16 nhid 5": (to) =>
    deleteRoute(to, { ...plain, destination: prefix("10.20.0.0/16"), ...byObject, ...anyTo }),
  "ip route show table 500": (to) => listRoutes(to, { family: 4, table: 500 }),
  "ip -4 route show table all": (to) => listRoutes(to, { family: 4 }),
  "ip -6 route show table all": (to) => listRoutes(to, { family: 6 }),
};

describe("route requests", () => {
  itSends("route", made, createRoute, others);
});

function listed(command: string): Route[] {
  return answersTo("route", command)
    .map(decodeRouteMessage)
    .map(routeOf)
    .filter((route) => route !== undefined);
}

function find(command: string, destination: string, table = 254): Route {
  return (
    listed(command).find((route) => formatPrefix(route.destination) === destination && route.table === table) ??
    expect.unreachable(`${destination} in ${table}`)
  );
}

describe("routes", () => {
  it.each(sentFor("route", made))("are read from what `ip` sends: $command", ({ value, message }) =>
    expect({ tos: 0, rest: [], ...routeOf(decodeRouteMessage(message)) }).toEqual({ tos: 0, rest: [], ...value }),
  );

  it("are read from the kernel's messages, main and other tables", () => {
    const all = "ip -4 route show table all";
    expect(find("ip route show table 500", "10.9.0.0/16", 500)).toMatchObject({ metric: 7, protocol: 99, link: 7 });
    expect(find(all, "0.0.0.0/0", 101)).toMatchObject({ gateway: ip("10.6.0.1"), scope: 0 });
    expect(find(all, "203.0.113.0/24")).toMatchObject({ flags: 4 });
    expect(find(all, "10.11.0.0/16")).toMatchObject({ gateway: ip("fd00::1") });
    expect(find(all, "10.13.0.0/16").rest).toEqual([mtuAnswered]);
    expect(find(all, "10.99.0.0/16").nextHops).toEqual(
      made["ip route add 10.99.0.0/16 nexthop via 10.6.0.1 dev v0 weight 2 nexthop via inet6 fd00::1 dev v0"]?.nextHops,
    );
    const six = find("ip -6 route show table all", "fd09::/64", 101);
    expect(six).toMatchObject({ gateway: ip("fd00::1"), metric: 1024 });
  });

  it("of other families are none", () => {
    const [message] = answersTo("route", "ip route show table 500").map(decodeRouteMessage);
    expect(message && routeOf({ ...message, family: 28 })).toBeUndefined();
  });
});

describe("route messages", () => {
  const [message = expect.unreachable()] = answersTo("route", "ip route show table 500");
  const decoded = decodeRouteMessage(message);
  const to = attribute(1, new Uint8Array(4));
  const via = (length: number) => ({ attributes: [to, attribute(18, new Uint8Array(length))] });
  const nextHop = (...bytes: number[]) => ({ attributes: [to, attribute(9, Uint8Array.from(bytes))] });

  it.each<[what: string, change: object, expected: RegExp]>([
    ["a prefix length beyond the family", { destinationLength: 33 }, /length 33, want at most 32/],
    ["a prefix length without address", { attributes: [] }, /length 16 without address/],
    ["an address of the other family", { family: 10 }, /4 bytes, want 16/],
    ["a source length beyond the family", { sourceLength: 40 }, /length 40, want at most 32/],
    ["a via of no family", via(6), /family 0/],
    ["a via without family", via(1), /undefined/],
    ["half a next hop", nextHop(0, 0, 0, 0, 0, 0, 0), /length 0/],
    ["a next hop of length 0", nextHop(0, 0, 0, 0, 0, 0, 0, 0), /next hop.*length 0, want 8 to 8/],
    ["a next hop longer than its list", nextHop(9, 0, 0, 0, 0, 0, 0, 0), /length 9, want 8 to 8/],
  ])("with %s are refused", (_, change, expected) =>
    expect(() => routeOf({ ...decoded, ...change })).toThrow(expected),
  );
});
