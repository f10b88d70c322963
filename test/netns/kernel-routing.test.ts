/** Addresses, routes, rules and neighbours on the real kernel: what we make, `ip` shows, and what is there, we read. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Address, addressOf } from "../../host/kernel/netlink/address/address.ts";
import {
  createAddress,
  deleteAddress,
  findAddresses,
  listAddresses,
} from "../../host/kernel/netlink/address/requests.ts";
import type { Conversation } from "../../host/kernel/netlink/conversation.ts";
import { linkOf } from "../../host/kernel/netlink/link/link.ts";
import { createLink, findLink, listLinks, setLink } from "../../host/kernel/netlink/link/requests.ts";
import { type Neighbour, neighbourOf } from "../../host/kernel/netlink/neighbour/neighbour.ts";
import {
  createNeighbour,
  deleteNeighbour,
  listNeighbours,
  replaceNeighbour,
} from "../../host/kernel/netlink/neighbour/requests.ts";
import { createRoute, deleteRoute, listRoutes } from "../../host/kernel/netlink/route/requests.ts";
import { type Route, routeOf } from "../../host/kernel/netlink/route/route.ts";
import { createRule, deleteRule, listRules } from "../../host/kernel/netlink/rule/requests.ts";
import { type Rule, ruleOf } from "../../host/kernel/netlink/rule/rule.ts";
import { openRouteSocket } from "../../host/kernel/netlink/socket.ts";
import { ip, mac, prefix } from "../world/values.ts";
import { linkIn, makeRoom, type Room } from "./kernel-room.ts";

let room: Room;
let near: string;
let here: Conversation;

beforeAll(() => {
  room = makeRoom("bkr");
  ({ near, here } = room);
  createLink(here, { name: "v0", kind: { kind: "veth" }, up: true, peer: { name: "p0" } });
  createLink(here, { name: "b0", kind: { kind: "bridge" } });
  setLink(here, linkIn(here, "p0").index, { up: true });
});

afterAll(() => {
  room[Symbol.dispose]();
});

const show = (netns: string, line: string) => room.show(netns, line);

describe("addresses", () => {
  const values = (index: number) => (findAddresses(here, index) ?? []).map(addressOf);

  it("are added, read back, listed and deleted", () => {
    const { index } = linkIn(here, "v0");
    const wanted: Address[] = [
      { link: index, prefix: prefix("10.6.0.21/24"), scope: 0, flags: 0x80 },
      { link: index, prefix: prefix("192.0.2.1/32"), peer: ip("192.0.2.2"), scope: 253, flags: 0x80 },
      { link: index, prefix: prefix("fd00::21/64"), scope: 0, flags: 0x82 },
      { link: index, prefix: prefix("10.7.0.21/24"), scope: 0, flags: 0x280 },
    ];
    for (const address of wanted) createAddress(here, address);
    for (const address of wanted) {
      expect(values(index)).toContainEqual({ peer: undefined, ...address });
      expect(() => createAddress(here, address)).toThrow(/^Cannot add address .*EEXIST/);
    }
    expect(show(near, "route show dev v0")).not.toContain("10.7.0.0/24"); // IFA_F_NOPREFIXROUTE
    expect(listAddresses(here).length).toBeGreaterThanOrEqual(wanted.length);
    for (const address of wanted) expect(deleteAddress(here, address)).toBe(true);
    for (const address of wanted) expect(deleteAddress(here, address)).toBe(false);
    expect(deleteAddress(here, { ...(wanted[0] ?? expect.unreachable()), link: 999 })).toBe(false);
    expect(findAddresses(here, 999)).toBeUndefined();
  });
});

/** A link with addresses of both families, for routes and neighbours. */
function withAddresses(): number {
  const { index } = linkIn(here, "v0");
  for (const own of ["10.6.0.254/24", "fd00::254/64"]) {
    show(near, `addr replace ${own} dev v0 nodad`);
  }
  return index;
}

describe("routes", () => {
  const plain = { table: 500, type: 1, protocol: 4, scope: 0, flags: 0 };
  const values = (table: number) => listRoutes(here, { table }).map(routeOf);

  it("of both families are added, read back and deleted, in tables above 255 too", () => {
    const index = withAddresses();
    const wanted: Route[] = [
      { ...plain, destination: prefix("0.0.0.0/0"), gateway: ip("10.6.0.1"), link: index },
      { ...plain, destination: prefix("10.8.0.1"), link: index, scope: 253, preferredSource: ip("10.6.0.254") },
      {
        ...plain,
        destination: prefix("203.0.113.0/24"),
        gateway: ip("192.168.77.1"),
        link: index,
        flags: 4,
        metric: 9,
      },
      { ...plain, destination: prefix("::/0"), gateway: ip("fd00::1"), link: index, metric: 7 },
      { ...plain, destination: prefix("fd09::/64"), gateway: ip("fe80::1"), link: index, metric: 1024 },
    ];
    for (const route of wanted) createRoute(here, route);
    const told = values(500);
    expect(told).toHaveLength(wanted.length);
    for (const route of wanted) {
      expect(
        told.find(
          (one) =>
            one?.destination.ip.value === route.destination.ip.value &&
            one.destination.ip.family === route.destination.ip.family,
        ),
      ).toMatchObject(route);
      expect(() => createRoute(here, route)).toThrow(/^Cannot add route .*EEXIST/);
    }
    expect(values(500)).toHaveLength(wanted.length);
    expect(show(near, "route show table 500").trim().split("\n").sort()[2]).toMatch(/^default via 10.6.0.1 dev v0/);
    for (const route of wanted) expect(deleteRoute(here, route)).toBe(true);
    for (const route of wanted) expect(deleteRoute(here, route)).toBe(false);
    expect(values(500)).toEqual([]);
    expect(values(4_000_000)).toEqual([]); // never was
  });

  it("are copied whole to another table, with what this code does not read", () => {
    const index = withAddresses();
    show(near, "route add 10.13.0.0/16 via 10.6.0.1 dev v0 table 600 mtu lock 1300 advmss 1200 proto 77");
    show(near, "-6 route add fd13::/64 via fd00::1 dev v0 table 600 mtu 1300 pref high");
    show(near, "route add 10.14.0.0/16 table 600 nexthop via 10.6.0.1 dev v0 weight 2 nexthop via 10.6.0.2 dev v0");
    for (const route of values(600)) createRoute(here, { ...(route ?? expect.unreachable()), table: 601 });
    const lines = (table: number) =>
      show(near, `route show table ${table}`) + show(near, `-6 route show table ${table}`);
    expect(lines(601)).toBe(lines(600));
    expect(lines(601)).toContain("mtu lock 1300 advmss 1200");
    expect(listRoutes(here, { table: 601, family: 6 })).toHaveLength(1);
    expect(listRoutes(here, { link: index }).length).toBeGreaterThanOrEqual(4);
  });

  it("that cannot be are errors in the kernel's words", () => {
    const route = { ...plain, destination: prefix("10.9.0.0/16"), gateway: ip("172.16.0.1"), link: withAddresses() };
    expect(() => createRoute(here, route)).toThrow(
      /^Cannot add route 10.9.0.0\/16 via 172.16.0.1 dev \d+ table 500: .*ENETUNREACH.*: Nexthop has invalid gateway/,
    );
  });
});

describe("rules", () => {
  const plain = { action: 1, flags: 0 };
  const wanted: Rule[] = [
    { ...plain, family: 4, preference: 900, table: 500 },
    { ...plain, family: 6, preference: 900, table: 500 },
    { ...plain, family: 4, preference: 99, mark: { value: 1, mask: 1 }, table: 100 },
    { ...plain, family: 4, preference: 100, from: prefix("10.6.0.21"), to: prefix("10.0.0.0/8"), table: 101 },
    { ...plain, family: 6, preference: 100, from: prefix("fd00::21"), inputName: "v0", outputName: "b0", table: 101 },
  ];

  it("are added, read back as whole rules, and deleted alone", () => {
    for (const rule of wanted) createRule(here, rule);
    const told = listRules(here).map(ruleOf);
    for (const rule of wanted) {
      const found = told.filter((one) => one?.family === rule.family && one.preference === rule.preference);
      expect(found).toEqual([{ tos: 0, protocol: 0, rest: [], ...rule }]);
      expect(() => createRule(here, rule)).toThrow(/^Cannot add IPv[46] rule .*EEXIST/);
    }
    show(near, "rule add pref 900 from 10.99.0.0/16 lookup 500");
    for (const rule of wanted) expect(deleteRule(here, rule)).toBe(true);
    expect(show(near, "rule show pref 900")).toMatch(/^900:\s+from 10.99.0.0\/16 lookup 500\s*$/);
    const [, ...rest] = wanted;
    for (const rule of rest) expect(deleteRule(here, rule)).toBe(false);
    expect(listRules(here, 6).map(ruleOf)).toHaveLength(2);
  });
});

describe("neighbours", () => {
  it("are added, read back, replaced and deleted; proxies apart", () => {
    const index = withAddresses();
    const wanted: Neighbour[] = ["10.6.0.9", "fd00::9"].map((text) => ({
      ip: ip(text),
      mac: mac("02:00:00:00:00:09"),
      link: index,
      state: 0x80,
      flags: 0,
    }));
    for (const neighbour of wanted) {
      createNeighbour(here, neighbour);
      expect(listNeighbours(here, index).map(neighbourOf)).toContainEqual(neighbour);
      expect(() => createNeighbour(here, neighbour)).toThrow(/^Cannot add neighbour .*EEXIST/);
      replaceNeighbour(here, { ...neighbour, mac: mac("02:00:00:00:00:0a") });
    }
    expect(show(near, "neigh show dev v0")).toContain("10.6.0.9 lladdr 02:00:00:00:00:0a PERMANENT");
    const proxy = { ip: ip("10.6.0.77"), link: index, state: 0x80, flags: 8 };
    replaceNeighbour(here, proxy);
    expect(show(near, "neigh show proxy dev v0")).toMatch(/^10\.6\.0\.77 /);
    expect(deleteNeighbour(here, proxy)).toBe(true);
    expect(show(near, "neigh show proxy")).toBe("");
    for (const neighbour of wanted) expect(deleteNeighbour(here, neighbour)).toBe(true);
    expect(deleteNeighbour(here, { ...proxy, flags: 0 })).toBe(false);
    expect(deleteNeighbour(here, { ...proxy, link: 999 })).toBe(false);
    expect(listNeighbours(here, 999)).toEqual([]);
  });
});

it("how long it takes", () => {
  const index = withAddresses();
  const address = { link: index, prefix: prefix("10.66.0.1/24"), scope: 0, flags: 0 };
  const route = {
    table: 700,
    type: 1,
    protocol: 4,
    scope: 253,
    flags: 0,
    destination: prefix("10.67.0.1"),
    link: index,
  };
  const rule: Rule = { family: 4, preference: 77, from: prefix("10.68.0.1"), table: 700, action: 1, flags: 0 };
  const neighbour = { ip: ip("10.6.0.69"), mac: mac("02:00:00:00:00:69"), link: index, state: 0x80, flags: 0 };
  const works: [string, () => unknown][] = [
    ["link by name", () => findLink(here, "v0")],
    ["dump of links", () => listLinks(here).map(linkOf)],
    ["dump of routes", () => listRoutes(here).map(routeOf)],
    ["dump of rules", () => listRules(here).map(ruleOf)],
    ["address add and delete", () => [createAddress(here, address), deleteAddress(here, address)]],
    ["route add and delete", () => [createRoute(here, route), deleteRoute(here, route)]],
    ["rule add and delete", () => [createRule(here, rule), deleteRule(here, rule)]],
    ["neighbour add and delete", () => [createNeighbour(here, neighbour), deleteNeighbour(here, neighbour)]],
    ["open and close a socket", () => openRouteSocket(`/run/netns/${near}`)[Symbol.dispose]()],
  ];
  const figures = works.map(([what, work]) => {
    const times = Array.from({ length: 300 }, () => {
      const start = performance.now();
      work();
      return performance.now() - start;
    }).sort((a, b) => a - b);
    return { what, median: times[150] ?? Number.NaN };
  });
  console.log(figures.map(({ what, median }) => `${what} ${(median * 1_000).toFixed(0)} µs`).join(", "));
  for (const { what, median } of figures) expect(median, what).toBeLessThan(2);
});
