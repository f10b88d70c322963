/**
 * Deletions of rules and routes on the real kernel, which deletes the first match of the request: ours delete exactly
 * the named one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { createLink } from "../../host/kernel/netlink/link/requests.ts";
import { deleteWholeRoute, listRoutes, newRoute } from "../../host/kernel/netlink/route/requests.ts";
import { type Route, routeOf } from "../../host/kernel/netlink/route/route.ts";
import { deleteWholeRule, newRule } from "../../host/kernel/netlink/rule/requests.ts";
import type { Rule } from "../../host/kernel/netlink/rule/rule.ts";
import { ip, prefix } from "../world/values.ts";
import { linkIn, makeRoom, type Room } from "./kernel-room.ts";

let room: Room;
let link: number;
const show = (line: string) => room.show(room.near, line);

beforeAll(async () => {
  room = makeRoom("bkx");
  createLink(room.here, { name: "v0", kind: { kind: "veth" }, up: true, peer: { name: "p0" } });
  link = linkIn(room.here, "v0").index;
  for (const address of ["10.6.0.254/24", "fd06::254/64"]) show(`addr add ${address} dev v0`);
  show("link set p0 up");
  // The kernel adds a route to its local table when it has verified an IPv6 address.
  while (show("-6 addr show tentative") !== "") await sleep(20);
});

afterAll(() => {
  room[Symbol.dispose]();
});

beforeEach(() => {
  for (const family of ["-4", "-6"]) {
    const rules: { priority: number }[] = JSON.parse(show(`${family} -j rule`));
    const ours = rules.filter(({ priority }) => priority > 0 && priority < 32_000);
    for (const { priority } of ours) show(`${family} rule del pref ${priority}`);
  }
});

const ours: Rule = { family: 4, preference: 900, table: 500, action: 1, flags: 0, protocol: 98 };
const others: [what: string, line: string][] = [
  ["a mark", "rule add pref 900 fwmark 7 lookup 500 protocol 98"],
  ["a device", "rule add pref 900 iif v0 lookup 500 protocol 98"],
  ["a port", "rule add pref 900 ipproto tcp dport 80 lookup 500 protocol 98"],
  ["another owner", "rule add pref 900 lookup 500 protocol 77"],
  ["another table", "rule add pref 900 lookup 501 protocol 98"],
  ["a source", "rule add pref 900 from 10.0.0.0/8 lookup 500 protocol 98"],
  ["another type of service", "rule add pref 900 tos 0x10 lookup 500 protocol 98"],
];

it.each(others)("a rule of others with %s stays when ours is gone, and when ours stands before it", (_, line) => {
  show(line);
  const before = show("rule");
  expect(deleteWholeRule(room.here, ours)).toBe(false);
  expect(show("rule")).toBe(before);
  show("rule del pref 900");
  room.here.request(newRule(ours));
  show(line);
  expect(deleteWholeRule(room.here, ours)).toBe(true);
  expect(show("rule")).toBe(before);
});

it("a rule that the kernel would take instead is a refusal", () => {
  show("rule add pref 900 fwmark 7 lookup 500 protocol 98");
  room.here.request(newRule(ours));
  const before = show("rule");
  const message =
    "Cannot delete IPv4 rule pref 900 from all lookup 500 proto 98: resource busy or locked (EBUSY): a rule with";
  expect(() => deleteWholeRule(room.here, ours)).toThrow(message);
  expect(show("rule")).toBe(before);
});

it("the opposite of ours, which the kernel does not let stand beside ours, stays", () => {
  show("rule add not pref 900 lookup 500 protocol 98");
  const before = show("rule");
  expect(() => room.here.request(newRule(ours))).toThrow(/EEXIST/);
  expect(deleteWholeRule(room.here, ours)).toBe(false);
  expect(show("rule")).toBe(before);
});

it("a rule without an owner is not one with an owner", () => {
  room.here.request(newRule(ours));
  expect(deleteWholeRule(room.here, { ...ours, protocol: 0 })).toBe(false);
  expect(deleteWholeRule(room.here, { ...ours, family: 6 })).toBe(false);
  expect(deleteWholeRule(room.here, ours)).toBe(true);
});

const route = (destination: string, more: Partial<Route> = {}): Route => ({
  ...{ destination: prefix(destination), table: 500, type: 1, protocol: 98, scope: 0, flags: 0, link },
  ...more,
});

it.each<[what: string, line: string, more?: Partial<Route>]>([
  ["another metric", "10.1.0.0/16 dev v0 table 500 proto 98 scope global metric 9"],
  ["another source", "10.1.0.0/16 dev v0 table 500 proto 98 scope global src 10.6.0.254"],
  ["another owner", "10.1.0.0/16 dev v0 table 500 proto 77 scope global"],
  ["a gateway", "10.1.0.0/16 via 10.6.0.9 dev v0 table 500 proto 98"],
  ["another type", "blackhole 10.1.0.0/16 table 500 proto 98"],
  ["another table", "10.1.0.0/16 dev v0 table 501 proto 98 scope global"],
  ["another metric (IPv6)", "fd01::/64 dev v0 table 500 proto 98 metric 9"],
  [
    "one more next hop",
    "10.1.0.0/16 table 500 proto 98 nexthop via 10.6.0.9 dev v0 nexthop via 10.6.0.8 dev v0",
    { gateway: ip("10.6.0.9") },
  ],
])("a route of others with %s stays", (_, line, more = {}) => {
  const mine = route(line.includes("::") ? "fd01::/64" : "10.1.0.0/16", more);
  show(`route add ${line}`);
  const all = () => show("-4 route show table all") + show("-6 route show table all");
  onTestFinished(() => void show(`route del ${line}`));
  const before = all();
  expect(deleteWholeRoute(room.here, mine)).toBe(false);
  expect(all()).toBe(before);
});

const roundTrips: [what: string, mine: () => Route][] = [
  ["over a link", () => route("10.2.0.0/16", { scope: 253 })],
  ["with metric 0", () => route("10.2.0.0/16", { metric: 0 })],
  ["with several next hops", () => route("10.2.0.0/16", { link: undefined, nextHops: hops("10.6.0.8", "10.6.0.9") })],
  [
    "with several next hops (IPv6)",
    () => route("fd02::/64", { link: undefined, nextHops: hops("fd06::8", "fd06::9") }),
  ],
  ["that leads nowhere", () => route("10.2.0.0/16", { type: 6, link: undefined })],
  ["that leads nowhere (IPv6)", () => route("fd02::/64", { type: 7, link: undefined, metric: 1024 })],
];
const hops = (...gateways: string[]) => gateways.map((one) => ({ gateway: ip(one), link, weight: 1, flags: 0 }));

it.each(roundTrips)("a route %s is deleted, once", (_, mine) => {
  room.here.request(newRoute(mine()));
  expect(deleteWholeRoute(room.here, mine())).toBe(true);
  expect(deleteWholeRoute(room.here, mine())).toBe(false);
  expect(deleteWholeRoute(room.here, { ...mine(), nextHops: undefined, link: 999 })).toBe(false);
});

it("a route by a next hop object is read, deleted and made again as it was", () => {
  show("nexthop add id 5 via 10.6.0.9 dev v0");
  show("route add 10.3.0.0/16 nhid 5 table 500");
  const before = show("route show table 500");
  expect(before).toContain("nhid 5");
  const [told = expect.unreachable()] = listRoutes(room.here, { table: 500, family: 4 }).map(routeOf);
  expect(deleteWholeRoute(room.here, told)).toBe(true);
  expect(show("route show table 500")).toBe("");
  room.here.request(newRoute(told));
  expect(show("route show table 500")).toBe(before);
  show("nexthop del id 5");
});
