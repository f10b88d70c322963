/** State observed in a namespace, compared with the output of `ip -d -j` and `nft` there. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTable } from "../../host/kernel/netlink/nftables/requests.ts";
import { identityOf } from "../../host/kernel/netns.ts";
import { type NamespaceQuery, observeNamespace } from "../../host/kernel/observe-namespace.ts";
import { openNamespace } from "../../host/kernel/open-namespace.ts";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { formatIp } from "../../host/net/ip.ts";
import { formatPrefix } from "../../host/net/prefix.ts";
import {
  EMPTY_NAMESPACE,
  type NamespaceState,
  type NextHopState,
  type Place,
  type RouteState,
  type RuleState,
} from "../../host/plan/state.ts";
import { ruleset } from "../unit/kernel/ruleset.ts";
import { readSysctl } from "../world/sysctl.ts";
import { ip } from "../world/values.ts";
import { everything } from "./kernel-operations.ts";
import { dumpOf, ipIn, ipJson, makeScene, type Scene } from "./kernel-scene.ts";

let scene: Scene;
const PLACES: readonly Place[] = ["pod", "host"];
const states = new Map<Place, NamespaceState>();
const stateOf = (place: Place) => states.get(place) ?? expect.unreachable();

beforeAll(() => {
  scene = makeScene("bko");
  createTable(scene.pod.netfilter, ruleset);
  for (const place of PLACES) states.set(place, observeNamespace(scene[place], everything));
});

afterAll(() => {
  scene[Symbol.dispose]();
});

/** With numbers instead of names, and a name for the rows' type that the compiler can follow. */
type Row = Record<string, ReturnType<typeof JSON.parse>>;
const rows = (place: Place, line: string): Row[] => ipJson(scene.names[place], `-N ${line}`);
const sorted = (list: readonly unknown[]) => list.map((one) => JSON.stringify(one)).sort();

it.each(PLACES)("the links of the %s", (place) => {
  const shown = rows(place, "link").map((row) => ({
    name: row.ifname,
    index: row.ifindex,
    kind: row.linkinfo?.info_kind ?? "",
    mac: row.address,
    up: row.flags.includes("UP"),
    carrier: row.flags.includes("LOWER_UP"),
    loopback: row.flags.includes("LOOPBACK"),
    alias: row.ifalias ?? "",
    group: Number(row.group),
    parentElsewhere: row.link_netnsid !== undefined,
    master: row.master,
    mtu: row.mtu,
  }));
  expect(stateOf(place).links.map(({ parent: _, ...link }) => link)).toEqual(shown);
  expect(new Set(shown.map(({ kind }) => kind))).toEqual(
    new Set(["", "veth", "bridge", ...(place === "pod" ? ["macvlan"] : [])]),
  );
});

it("links have their parents, here or elsewhere", () => {
  const links = new Map(stateOf("pod").links.map((link) => [link.name, link]));
  const onHost = new Map(stateOf("host").links.map(({ name, index }) => [name, index]));
  expect(links.get("eth0")).toMatchObject({
    parent: onHost.get("node-eth0"),
    parentElsewhere: true,
    alias: "first-NIC",
  });
  expect(links.get("net1")).toMatchObject({ parent: onHost.get("up0"), parentElsewhere: true });
  expect(links.get("held0")).toMatchObject({
    parent: links.get("held1")?.index,
    parentElsewhere: false,
    master: "spare0",
  });
});

it.each(PLACES)("the addresses of the %s", (place) => {
  const shown = rows(place, "addr").flatMap(({ ifname, addr_info }) =>
    addr_info.map((one: Row) => [ifname, `${one.local}/${one.prefixlen}`, Number(one.scope)]),
  );
  const seen = stateOf(place).addresses.map(({ link, prefix, scope }) => [link, formatPrefix(prefix), scope]);
  expect(sorted(seen)).toEqual(sorted(shown));
  expect(shown.length).toBeGreaterThan(2);
});

function shownHop(row: Row) {
  return { via: row.gateway ?? row.via?.host, dev: row.dev, onlink: row.flags.includes("onlink") };
}

function shownRoute(row: Row) {
  const isV6 = `${row.dst}${row.gateway ?? row.nexthops?.[0].gateway}`.includes(":") && !row.dst.includes(".");
  return {
    ...{ dst: row.dst === "default" ? (isV6 ? "::/0" : "0.0.0.0/0") : row.dst },
    ...{ type: Number(row.type), table: Number(row.table), protocol: Number(row.protocol), scope: Number(row.scope) },
    ...{ src: row.prefsrc, metric: row.metric ?? 0 },
    ...(row.nexthops === undefined ? shownHop(row) : { onlink: false }),
    hops: row.nexthops?.map((hop: Row) => ({ ...shownHop(hop), weight: hop.weight })),
  };
}

const seenHop = ({
  gateway,
  link,
  flags,
}: Pick<NextHopState, "gateway" | "flags"> & { link?: string | undefined }) => ({
  ...{ via: gateway && formatIp(gateway), dev: link, onlink: flags === 4 },
});

function seenRoute(route: RouteState) {
  const { destination, type, table, protocol, scope, preferredSource, metric, nextHops } = route;
  const isWhole = destination.length === (destination.ip.family === 4 ? 32 : 128);
  return {
    ...{ dst: isWhole ? formatIp(destination.ip) : formatPrefix(destination), type, table, protocol, scope },
    ...{ src: preferredSource && formatIp(preferredSource), metric },
    ...(nextHops === undefined ? seenHop(route) : { onlink: route.flags === 4 }),
    hops: nextHops?.map((hop) => ({ ...seenHop(hop), weight: hop.weight })),
  };
}

/** IPv6 shows `lo` for routes that lead nowhere. */
const withoutNowhere = (row: ReturnType<typeof shownRoute>) => (row.type >= 6 ? { ...row, dev: undefined } : row);

describe.each(PLACES)("the routes of the %s", (place) => {
  it.each(["254", "101", "102", "500"])("in table %s", (table) => {
    const shown = ["-4", "-6"].flatMap((family) => rows(place, `${family} route show table ${table}`));
    const withTable = shown.map((row) => withoutNowhere(shownRoute({ ...row, table: row.table ?? table })));
    const seen = stateOf(place).routes.filter((route) => route.table === Number(table));
    const canonical = (list: readonly object[]) =>
      sorted(list.map((one) => Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))));
    expect(canonical(seen.map(seenRoute))).toEqual(canonical(withTable));
  });
});

it("routes with several next hops, of both families, and with attributes that are not read", () => {
  const hops = stateOf("pod").routes.filter(({ nextHops }) => nextHops !== undefined);
  expect(hops.map(({ destination }) => formatPrefix(destination)).sort()).toEqual([
    "10.20.0.0/16",
    "::/0",
    "fd20::/64",
  ]);
  const [metrics] = stateOf("pod").routes.filter(({ metric }) => metric === 50);
  expect(metrics?.rest.map(({ type }) => type)).toEqual([8]);
});

function seenRule({ family: _, ...rule }: RuleState) {
  const selector = (prefix: RuleState["from"]) => prefix && formatIp(prefix.ip);
  return {
    ...{ pref: rule.preference, not: rule.flags === 2, table: rule.table, protocol: rule.protocol, tos: rule.tos },
    ...{ from: selector(rule.from), fromLength: rule.from?.length, to: selector(rule.to), toLength: rule.to?.length },
    ...{ mark: rule.mark?.value, mask: rule.mark?.mask, iif: rule.inputName, oif: rule.outputName },
    // newer kernels add masks to ports, which `ip` does not show
    rest: rule.rest
      .map(({ type }) => type)
      .filter((type) => type < 28)
      .sort(),
  };
}

function shownRule(row: Row) {
  const length = (address: string | undefined, given: number | undefined) =>
    address === undefined || address === "all" ? undefined : (given ?? (address.includes(":") ? 128 : 32));
  const rest = [
    ...[row.ipproto !== undefined && 22, (row.sport ?? row.sport_start) !== undefined && 23],
    ...[row.dport !== undefined && 24, row.suppress_prefixlen !== undefined && 14, row.uid_start !== undefined && 20],
  ];
  return {
    ...{
      pref: row.priority,
      not: row.not === null,
      table: Number(row.table ?? 0),
      protocol: Number(row.protocol ?? 0),
    },
    tos: Number(row.tos ?? 0),
    ...{ from: row.src === "all" ? undefined : row.src, fromLength: length(row.src, row.srclen) },
    ...{ to: row.dst, toLength: length(row.dst, row.dstlen) },
    ...{ mark: row.fwmark && Number(row.fwmark), mask: row.fwmask && Number(row.fwmask), iif: row.iif, oif: row.oif },
    rest: rest.filter((type) => type !== false).sort(),
  };
}

it.each(PLACES)("the rules of the %s, those of others with ports, users and the like", (place) => {
  const shown = ["-4", "-6"].flatMap((family) => rows(place, `${family} rule`)).map(shownRule);
  expect(stateOf(place).rules.map(seenRule)).toEqual(shown);
});

it("neighbours: fixed ones without those that were learned", () => {
  const shown = rows("pod", "neigh show nud permanent").map(({ dst, dev, lladdr }) => [dst, dev, lladdr]);
  const fixed = stateOf("pod").neighbours.map(({ ip: address, link, mac }) => [formatIp(address), link, mac]);
  expect(sorted(fixed)).toEqual(sorted(shown));
  expect(fixed).toHaveLength(3);
});

it("neighbours that are asked for one by one, of a link, and of an address on any link", () => {
  const ask = (neighbours: NamespaceQuery["neighbours"]) => {
    const state = observeNamespace(scene.pod, { neighbours });
    return state.neighbours.map((one) => `${formatIp(one.ip)} ${one.link}`).sort();
  };
  expect(
    ask([
      { link: "eth0", ip: ip("10.6.0.9") },
      { link: "eth0", ip: ip("10.6.0.9") },
    ]),
  ).toEqual(["10.6.0.9 eth0"]);
  expect(ask([{ ip: ip("10.6.0.9") }])).toEqual(["10.6.0.9 eth0", "10.6.0.9 net1"]);
  expect(ask([{ link: "net1" }])).toEqual(["10.6.0.9 net1"]);
  expect(
    ask([{ link: "eth0", ip: ip("10.6.0.99") }, { link: "gone0", ip: ip("10.6.0.9") }, { link: "gone0" }]),
  ).toEqual([]);
});

it("our table is read whole, those of others are not asked for and stay", () => {
  const before = dumpOf(scene.names.pod);
  expect(stateOf("pod").tables[0]).toEqual(ruleset);
  expect(stateOf("host").tables.map(({ name }) => name)).toEqual(["others"]);
  const [others = expect.unreachable()] = stateOf("host").tables;
  // chains that only other chains call are none of ours
  expect(others.chains.map(({ name, rules }) => [name, rules.length])).toEqual([["input", 1]]);
  observeNamespace(scene.pod, everything);
  expect(dumpOf(scene.names.pod)).toEqual(before);
});

it("objects that are not asked for are not read", () => {
  const { links, ...rest } = observeNamespace(scene.pod, {});
  expect(links.length).toBeGreaterThan(3);
  expect(rest).toEqual({ ...EMPTY_NAMESPACE, links: undefined });
});

it("a way in stays with its namespace, whatever becomes of the path, and leaves no descriptor open", () => {
  const openFds = () => readdirSync("/proc/self/fd").length;
  const before = openFds();
  for (let round = 0; round < 50; round++) {
    using namespace = openNamespace(scene.pod.path);
    observeNamespace(namespace, everything);
    expect(identityOf(namespace)).toEqual(identityOf(scene.pod));
  }
  expect(openFds()).toBe(before);

  const name = `bkog${process.pid}`;
  execFileSync("ip", ["netns", "add", name]);
  using held = openNamespace(`/run/netns/${name}`);
  execFileSync("ip", ["netns", "del", name]);
  execFileSync("ip", ["netns", "add", name]);
  ipIn(name, "link add other0 type bridge");
  writeSysctl(held.entrance, "ipv4/conf/all/arp_notify", "1");
  const { links, sysctls } = observeNamespace(held, { sysctls: ["ipv4/conf/all/arp_notify"], tables: ["berth"] });
  expect(links.map(({ name: one }) => one)).toEqual(["lo"]);
  expect([...sysctls.values()]).toEqual(["1"]);
  using fresh = openNamespace(`/run/netns/${name}`);
  expect(fresh.inode).not.toBe(held.inode);
  expect(readSysctl(fresh.entrance, "ipv4/conf/all/arp_notify")).toBe("0");
  execFileSync("ip", ["netns", "del", name]);
});
