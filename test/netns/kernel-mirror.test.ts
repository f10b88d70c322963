/** The mirror of a node against the kernel's lists, through changes at random, also when notifications are lost. */
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadNative, type Native } from "../../host/kernel/native.ts";
import { RTM_NEWADDR } from "../../host/kernel/netlink/address/constants.ts";
import { createTable, deleteTable, readTable } from "../../host/kernel/netlink/nftables/requests.ts";
import { RTM_NEWROUTE, RTNH_F_ONLINK } from "../../host/kernel/netlink/route/constants.ts";
import { listRoutes } from "../../host/kernel/netlink/route/requests.ts";
import { type Route, routeOf } from "../../host/kernel/netlink/route/route.ts";
import { NodeMirror } from "../../host/kernel/node-mirror.ts";
import { observeNamespace } from "../../host/kernel/observe-namespace.ts";
import { type NodeNamespace, openNode } from "../../host/kernel/open-namespace.ts";
import { equalIp, formatIp } from "../../host/net/ip.ts";
import { formatAddress, formatRule } from "../../host/plan/text.ts";
import { ruleset } from "../unit/kernel/ruleset.ts";
import { Seeded } from "../world/seeded.ts";
import { ip } from "../world/values.ts";
import { ipIn, showIn, sysctlIn } from "./kernel-scene.ts";

const TABLES = [500, 501];
const LINKS = ["v0", "v1", "v2", "v3"];

/** Time that the kernel takes to report a new IPv6 address, and that it may take on a busy machine. */
const REPORT_MS = 60;
const LATE_REPORT_MS = 2_000;
const addsIpv6 = (line: string): boolean => line.startsWith("addr add fd");

const node = `bkmin${process.pid}`;
const pods = `bkmip${process.pid}`;
let opened: NodeNamespace[] = [];

beforeEach(() => {
  for (const name of [node, pods]) execFileSync("ip", ["netns", "add", name]);
  sysctlIn(node, "net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0");
  ipIn(node, "link set lo up", "link add br0 type bridge", "link set br0 up", "addr add 10.9.0.1/24 dev br0");
});

afterEach(() => {
  for (const each of opened) each[Symbol.dispose]();
  opened = [];
  for (const name of [node, pods]) execFileSync("ip", ["netns", "del", name]);
});

function open(options: Parameters<typeof openNode>[1] = {}): NodeNamespace {
  const found = openNode(`/run/netns/${node}`, options);
  opened.push(found);
  return found;
}

/** The same, with a count of the requests to the kernel. */
function openCounted(options: Parameters<typeof openNode>[1] = {}) {
  const native = loadNative();
  const sent = { requests: 0 };
  const exchange: Native["exchange"] = (...words) => {
    sent.requests++;
    return native.exchange(...words);
  };
  return { host: open({ ...options, native: { ...native, exchange } }), sent };
}

/** Makes the changes that the kernel accepts. Waits until it has reported IPv6 addresses, which it does later. */
async function change(...lines: string[]): Promise<void> {
  const input = lines.join("\n");
  spawnSync("ip", ["-n", node, "-force", "-batch", "-"], { input, stdio: ["pipe", "ignore", "ignore"] });
  if (lines.some(addsIpv6)) await sleep(REPORT_MS);
}

/** The route without the state of its next hops, which is not part of it. */
const routeText = ({ nextHops, ...route }: Route): string =>
  JSON.stringify(
    { ...route, nextHops: nextHops?.map((hop) => ({ ...hop, flags: hop.flags & RTNH_F_ONLINK })) },
    (_, part: unknown) => (typeof part === "bigint" ? String(part) : part instanceof Uint8Array ? [...part] : part),
  );

function mirrored({ mirror }: NodeNamespace) {
  const { addresses, rules } = mirror.read();
  return {
    addresses: addresses.map((each) => `${formatAddress(each)} ${each.flags}`),
    rules: rules.map((each) => `${each.family} ${formatRule(each)}`),
    routes: TABLES.map((table) => inGroups(mirror.routesOf(table))),
  };
}

/** By destination, those to one in the kernel's order. */
function inGroups(routes: readonly Route[]): Record<string, string[]> {
  const groups = Object.groupBy(routes, ({ destination: { ip, length } }) => `${formatIp(ip)}/${length}`);
  return Object.fromEntries(Object.entries(groups).map(([key, list = []]) => [key, list.map(routeText)]));
}

/** The same from fresh lists. */
function listed(source: NodeNamespace) {
  const { addresses, rules } = observeNamespace(source, { addresses: true, rules: true });
  const inTable = (table: number) => listRoutes(source.route, { table }).flatMap((message) => routeOf(message) ?? []);
  return {
    addresses: addresses
      .filter(({ prefix }) => !formatIp(prefix.ip).startsWith("fe80:"))
      .map((each) => `${formatAddress(each)} ${each.flags}`),
    rules: rules.map((each) => `${each.family} ${formatRule(each)}`),
    routes: TABLES.map((table) => inGroups(inTable(table))),
  };
}

const sorted = (gateways: readonly string[]): string[] => [...new Set(gateways)].sort();

/** Those that the mirror knows. */
const knownGateways = ({ mirror }: NodeNamespace): string[] => sorted(mirror.read().gateways.map(formatIp));

/** Those of all routes and next hop objects. */
function listedGateways({ route }: NodeNamespace): string[] {
  const all = listRoutes(route).flatMap((message) => routeOf(message) ?? []);
  const ofRoutes = all.flatMap(({ gateway, nextHops = [] }) => [gateway, ...nextHops.map((hop) => hop.gateway)]);
  const ofObjects: { gateway?: string }[] = JSON.parse(showIn(node, "-j nexthop"));
  return sorted([
    ...ofRoutes.flatMap((each) => (each === undefined ? [] : [formatIp(each)])),
    ...ofObjects.flatMap(({ gateway }) => gateway ?? []),
  ]);
}

/** The gateways that are there are known at once, and after a listing no others. */
async function expectGateways(host: NodeNamespace, context?: string): Promise<void> {
  expect(knownGateways(host), context).toEqual(expect.arrayContaining(listedGateways(host)));
  await host.mirror.listGateways();
  expect(knownGateways(host), context).toEqual(listedGateways(host));
}

/** One change of a node's life, in the words of `ip`. */
function randomLine(random: Seeded): string {
  const link = random.pick(LINKS);
  const number = random.below(6);
  const [to, whole] = random.chance(0.5) ? [`10.40.0.${number}`, 32] : [`fd40::${number + 1}`, 128];
  const table = random.pick(["500", "500", "500", "501", "main"]);
  const near = random.chance(0.5) ? "10.9.0" : "fd09:";
  const via = near === "fd09:" ? `via fd09::${number + 2}` : `via 10.9.0.${number + 2}`;
  const verb = random.pick(["add", "add", "del", "replace", "append", "prepend"]);
  const family = to.includes(":") ? "-6 " : "";
  const lines = [
    `link add ${link} type veth peer name p${link} netns ${pods}`,
    `link set ${link} up`,
    `link set ${link} up`,
    `link set ${link} down`,
    `link del ${link}`,
    `link set ${link} master br0`,
    `link set ${link} nomaster`,
    `link set ${link} name w${link}`,
    `link set w${link} name ${link}`,
    `addr add 10.${50 + number}.0.1/${random.pick([24, 32])} dev ${link}`,
    `addr del 10.${50 + number}.0.1/${random.pick([24, 32])} dev ${link}`,
    `addr add fd5${number}::1/64 dev ${link} nodad`,
    `addr flush dev ${link} scope global`,
    `addr add fd09::1/64 dev br0 nodad`,
    `route ${verb} ${to}/${whole} dev ${link} table ${table} proto 98`,
    `route ${verb} ${to}/${whole} dev ${link} table ${table} proto 98`,
    `route ${verb} ${to}/${whole} dev ${link} table ${table} proto 98`,
    `route ${verb} ${to}/${whole} dev ${link} table ${table} metric ${random.below(3)}`,
    `route ${verb} 10.40.0.${number} dev ${link} table ${table} src 10.${50 + number}.0.1`,
    `${family}route ${verb} ${random.pick(["default", "10.60.0.0/16", "fd60::/64"])} ${via} table ${table}`,
    `route ${verb} 10.61.0.0/16 table ${table} nexthop via 10.9.0.3 dev br0 nexthop via 10.9.0.${4 + number} dev br0`,
    `route ${verb} blackhole ${to}/${whole} table ${table}`,
    `nexthop ${random.pick(["replace", "del"])} id 7 ${via}`,
    `route ${verb} 10.62.0.${number} nhid 7 table ${table}`,
    `route flush table ${table}`,
    `${family}rule ${random.pick(["add", "del"])} pref ${900 + number} lookup ${random.pick(TABLES)} protocol 98`,
  ];
  return random.pick(lines);
}

it.each<[name: string, bufferBytes: number | undefined, steps: number]>([
  ["the mirror agrees with the kernel's lists after every change", undefined, 120],
  ["so it is if the queue is so short that notifications are lost", 1, 60],
])("%s", { timeout: 120_000 }, async (_, bufferBytes, steps) => {
  const seed = Number(process.env.BERTH_SEED ?? Date.now() % 1_000_000);
  const random = new Seeded(seed);
  let losses = 0;
  const host = open({ onLoss: () => void losses++, ...(bufferBytes !== undefined && { bufferBytes }) });
  for (let step = 0; step < steps; step++) {
    const lines = Array.from({ length: 1 + random.below(bufferBytes === undefined ? 4 : 30) }, () =>
      randomLine(random),
    );
    await change(...lines);
    if (random.chance(0.5)) await turn();
    if (lines.some(addsIpv6) && !isDeepStrictEqual(mirrored(host), listed(host))) await sleep(LATE_REPORT_MS);
    expect(mirrored(host), `seed ${seed}, step ${step}: ${lines.join("; ")}`).toEqual(listed(host));
    const wanted = ["10.40.0.1", "10.40.0.3", "fd40::2"].map(ip);
    const isWanted = ({ protocol, destination }: Route): boolean =>
      protocol !== 98 || wanted.some((each) => equalIp(each, destination.ip));
    for (const table of TABLES) {
      expect(inGroups(host.mirror.selectRoutes(table, wanted, 98))).toEqual(
        inGroups(host.mirror.routesOf(table).filter(isWanted)),
      );
    }
    expect(knownGateways(host), `seed ${seed}`).toEqual(expect.arrayContaining(listedGateways(host)));
    if (random.chance(0.1)) await expectGateways(host, `seed ${seed}`);
    if (random.chance(0.1)) expect(host.mirror.verify(), `seed ${seed}`).toEqual([]);
  }
  if (bufferBytes === undefined) expect(losses).toBe(0);
  else expect(losses).toBeGreaterThan(10);
});

it("a change by pods is followed without listing anything", async () => {
  ipIn(node, ...LINKS.slice(1).map((name) => `link add ${name} type veth peer name p${name} netns ${pods}`));
  const { host, sent } = openCounted();
  mirrored(host);
  sent.requests = 0;
  await change(
    `link add v0 type veth peer name pv0 netns ${pods}`,
    "link set v0 alias berth group 98 up",
    "neigh add 10.40.0.1 lladdr 02:00:00:00:00:01 dev v0 nud permanent",
    "route add 10.40.0.1 dev v0 table 500 proto 98 scope link",
    "route add fd40::1 dev v0 table 500 proto 98",
    "route add 10.40.0.2 dev v0 table 500 proto 98 scope link",
    "route del 10.40.0.2 dev v0 table 500 proto 98",
  );
  expect(Object.keys(mirrored(host).routes[0] ?? {}).sort()).toEqual(["10.40.0.1/32", "fd40::1/128"]);
  await change("link del v0");
  expect(mirrored(host).routes[0]).toEqual({});
  expect(sent.requests).toBe(0);
  expect(mirrored(host)).toEqual(listed(host));
});

it("a link that goes down takes its gateways along, a last address its routes, and a new name is followed", async () => {
  const host = open();
  await change("route add default via 10.9.0.7", "route add 10.60.0.0/16 via 10.9.0.8");
  await expectGateways(host);
  await change(
    `link add v0 type veth peer name pv0 netns ${pods}`,
    "link set v0 up",
    "addr add fd77::1/64 dev v0 nodad",
  );
  await sleep(REPORT_MS);
  expect(mirrored(host)).toEqual(listed(host));
  await change("link set v0 name w0");
  expect(mirrored(host)).toEqual(listed(host));
  await change("addr add 10.50.0.1/24 dev w0", "route add 10.40.0.1 dev w0 table 500 proto 98 scope link");
  expect(Object.keys(mirrored(host).routes[0] ?? {})).toEqual(["10.40.0.1/32"]);
  await change("addr del 10.50.0.1/24 dev w0");
  expect(mirrored(host).routes[0]).toEqual({});
  await change("link set br0 down");
  await expectGateways(host);
  expect(knownGateways(host)).toEqual([]);
  expect(mirrored(host)).toEqual(listed(host));
});

describe("gateways", () => {
  it("that come are known at once and go with a listing; none is made meanwhile, whatever changes", async () => {
    const lines = Array.from(
      { length: 2_000 },
      (_, at) => `route add 10.${128 + (at >> 8)}.${at & 255}.0/24 via 10.9.0.2`,
    );
    await change("addr add fd09::1/64 dev br0 nodad", ...lines, "route add 10.127.0.0/16 via 10.9.0.3");
    let outdated = 0;
    const { host, sent } = openCounted({ onGatewaysOutdated: () => void outdated++ });
    expect(knownGateways(host)).toEqual(["10.9.0.2", "10.9.0.3"]);
    [sent.requests, outdated] = [0, 0];
    await change("route add 10.60.0.0/16 via inet6 fd09::7 table 170", "route add 10.61.0.0/16 via 10.9.0.5");
    expect([...knownGateways(host), outdated]).toEqual(["10.9.0.2", "10.9.0.3", "10.9.0.5", "fd09::7", 0]);
    await change(
      "route del 10.60.0.0/16 table 170",
      "route replace 10.61.0.0/16 nexthop via 10.9.0.6 nexthop via 10.9.0.8",
    );
    expect(knownGateways(host)).toEqual(["10.9.0.2", "10.9.0.3", "10.9.0.5", "10.9.0.6", "10.9.0.8", "fd09::7"]);
    expect([sent.requests, outdated]).toEqual([0, 2]);

    await change("route add 10.62.0.0/16 via 10.9.0.2");
    await sleep(20); // further notifications wait for each other
    const listing = host.mirror.listGateways();
    await change("route del 10.127.0.0/16"); // has been listed
    await listing;
    // The list may lack routes, so those of the former one are kept until the next one.
    expect(knownGateways(host)).toContain("10.9.0.5");
    await expectGateways(host);
    expect(knownGateways(host)).toEqual(["10.9.0.2", "10.9.0.6", "10.9.0.8"]);
    expect(host.mirror.read().gateways).toBe(host.mirror.read().gateways);
  });

  it("are those of next hop objects, too, which routes name only", async () => {
    sysctlIn(node, "net.ipv4.nexthop_compat_mode=0");
    await change(
      "addr add fd09::1/64 dev br0 nodad",
      "nexthop add id 9 via 10.9.0.20 dev br0",
      "route add default nhid 9",
    );
    const host = open();
    expect(knownGateways(host)).toEqual(["10.9.0.20"]);
    await change("nexthop add id 10 via fd09::20 dev br0", "-6 route add default nhid 10");
    expect(knownGateways(host)).toEqual(["10.9.0.20", "fd09::20"]);
    await change("nexthop replace id 9 via 10.9.0.21 dev br0", "nexthop add id 11 via 10.9.0.22 dev br0");
    expect(knownGateways(host)).toEqual(["10.9.0.20", "10.9.0.21", "10.9.0.22", "fd09::20"]);
    await expectGateways(host);
    expect(knownGateways(host)).toEqual(["10.9.0.21", "10.9.0.22", "fd09::20"]);
  });

  it("are known after lost notifications, also while the list of before is still being read", async () => {
    const lines = Array.from(
      { length: 2_000 },
      (_, at) => `route add 10.${128 + (at >> 8)}.${at & 255}.0/24 via 10.9.0.2`,
    );
    await change(...lines);
    let losses = 0;
    const host = open({ bufferBytes: 1, onLoss: () => void losses++ });
    expect(knownGateways(host)).toEqual(["10.9.0.2"]);
    const listing = host.mirror.listGateways();
    await change(...Array.from({ length: 200 }, (_, at) => `route add 10.127.${at}.0/24 via 10.9.0.${20 + at}`));
    expect(knownGateways(host)).toEqual(listedGateways(host));
    expect(losses).toBeGreaterThan(0);
    await listing;
    await expectGateways(host);
  });
});

/** The addon without notifications of one type, once `drops` is set. */
function dropping(type: number): { drops: boolean; native: Native } {
  const native = loadNative();
  const recv: Native["recv"] = (fd, into, flags) => {
    let length = native.recv(fd, into, flags);
    while (state.drops && length > 0 && (into[4] ?? 0) === type) length = native.recv(fd, into, flags);
    return length;
  };
  const state = { drops: false, native: { ...native, recv } };
  return state;
}

it("a change that no notification reported is found by comparing, and taken over", () => {
  const addon = dropping(RTM_NEWROUTE);
  const host = open({ native: addon.native });
  ipIn(node, `link add v0 type veth peer name pv0 netns ${pods}`, "link set v0 up");
  mirrored(host);
  addon.drops = true;
  ipIn(node, "route add 10.40.0.1 dev v0 table 500 proto 98");
  expect(mirrored(host).routes[0]).toEqual({});
  expect(host.mirror.verify()).toEqual([
    expect.stringMatching(/^\+route 10\.40\.0\.1\/32 dev \d+ table 500 proto 98$/),
  ]);
  expect(host.mirror.verify()).toEqual([]);
  expect(mirrored(host)).toEqual(listed(host));
});

it("an IPv6 address that the kernel has not reported yet is found when it is asked for", () => {
  const addon = dropping(RTM_NEWADDR);
  const host = open({ native: addon.native });
  mirrored(host);
  addon.drops = true;
  ipIn(node, "addr add fd77::1/64 dev br0");
  const has = ({ addresses }: ReturnType<NodeMirror["read"]>): boolean =>
    addresses.some(({ prefix }) => formatIp(prefix.ip) === "fd77::1");
  expect(has(host.mirror.readFor([ip("fd77::2")]))).toBe(false);
  expect(has(host.mirror.readFor([ip("10.0.0.1"), ip("fd77::1")]))).toBe(true);
});

it("a table of nf_tables is read again after a change of it, and not before", () => {
  const { host, sent } = openCounted();
  const read = () => host.mirror.nftTable(host.netfilter, "berth");
  expect(read()).toBeUndefined();
  createTable(host.netfilter, ruleset);
  expect(read()?.chains).toHaveLength(ruleset.chains.length);
  sent.requests = 0;
  expect(read()).toEqual(readTable(open().netfilter, "berth"));
  expect(sent.requests).toBe(1);
  deleteTable(host.netfilter, "berth");
  createTable(host.netfilter, { ...ruleset, chains: [] });
  expect(read()?.chains).toEqual([]);
});

it("closes its sockets, and the namespace is let go", () => {
  open()[Symbol.dispose](); // what is loaded once stays open
  const openFds = () => readdirSync("/proc/self/fd").length;
  const before = openFds();
  const host = open();
  mirrored(host);
  expect(openFds()).toBeGreaterThan(before);
  host[Symbol.dispose]();
  opened = [];
  expect(openFds()).toBe(before);
  expect(() => new NodeMirror({ fd: -1, path: "/nowhere", route: host.route })).toThrow(/nowhere/);
});
