/**
 * Wherever an ADD of the ifacer fails, the node is as it was found: links, members, addresses, routes, as `ip` shows
 * them.
 */

import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { toCniError } from "../../host/agent/server/answer.ts";
import { ofRun } from "../world/long-cases.ts";
import { type IfacerNode, makeIfacerNode } from "./ifacer-node.ts";

let node: IfacerNode;

beforeAll(() => {
  node = makeIfacerNode("uiu", ["m0", "m1", "m2"]);
});

afterAll(() => node.delete());
beforeEach(() => node.reset());

/** A bond without members has an address at random, and the features of its last member. */
function tidy(line: string): string {
  return line.includes('name":"bond0"')
    ? line.replace(/"(?:address|mac)":"[^"]*"|"[gt]so_max[a-z_]*":[0-9]+/g, "")
    : line;
}

/** The kernel gives a link that is up again its link-local address a moment later. */
const becomes = (observe: () => readonly string[], wanted: readonly string[], message: string) =>
  expect.poll(observe, { timeout: 5_000, interval: 20, message }).toEqual(wanted);

interface Scene {
  readonly made: readonly string[];
  readonly conf: object;
}

const bond = { name: "b0", mode: 1, options: "miimon=100;updelay=200;primary=m1" };
const members = ["m0", "m1"];

/** Addresses and routes of every sort that moves. */
const LOAD = [
  "addr add 10.9.0.1/24 brd 10.9.0.255 dev m0",
  "addr add 10.9.0.2/24 dev m0",
  "addr add 10.9.1.1/24 metric 50 dev m0",
  "addr add 10.9.2.1 peer 10.9.2.2 dev m0",
  "addr add 10.9.3.1/24 noprefixroute dev m1",
  "addr add fd09::1/64 nodad dev m0",
  "addr add fe80::9/64 nodad dev m0",
  "neigh add 10.9.0.77 lladdr 02:00:00:00:00:77 dev m0 nud permanent",
  "addr add fd09:1::1/64 noprefixroute nodad dev m1",
  "route add 10.9.3.0/24 dev m1 proto kernel scope link src 10.9.3.1 metric 70",
  "route add default via 10.9.0.254 dev m0 src 10.9.0.2 metric 30",
  "route add 10.20.0.0/16 via 10.9.3.254 dev m1 table 77 mtu 1400",
  "route add 10.30.0.0/16 nexthop via 10.9.0.253 dev m0 weight 2 nexthop via 10.9.3.253 dev m1 weight 1",
  "route add 10.40.0.0/16 dev m2 src 10.9.0.1",
  "route add fd09:2::/48 via fd09::fe dev m0 metric 40",
  "route add default via fd09::fe dev m0 src fd09::1",
];

const scenes: Record<string, Scene> = {
  "VLAN on a master that is down": { made: ["link set m0 down"], conf: { interfaces: ["m0"], vlanID: 100 } },
  "VLAN on a new bond": { made: ["link set m1 down"], conf: { interfaces: members, vlanID: 100, bond } },
  "a further member of a bond that is down": {
    made: ["link add b0 type bond mode 1", "link set m0 down", "link set m0 master b0"],
    conf: { interfaces: members, bond },
  },
  "the bond of the module": {
    made: ["link add bond0 type bond"],
    conf: { interfaces: members, bond: { name: "bond0", mode: 4, options: "miimon=50;updelay=150;lacp_rate=fast" } },
  },
  "members with addresses and routes": { made: LOAD, conf: { interfaces: members, vlanID: 9, bond, takeOver: true } },
};

/** The one with most operations takes as long as the others together. */
const isShort = ([name]: readonly [string, Scene]) => name !== "members with addresses and routes";

describe.each(ofRun(Object.entries(scenes), isShort))("%s", (_name, { made, conf }) => {
  it("is undone, whichever operation fails", async () => {
    for (const line of made) node.ip(line);
    const [links, state] = [node.observe(), node.state().map(tidy)];
    let failures = 0;
    for (let number = 1; ; number += 1) {
      const plan = { action: "fail", number, point: "kernel.apply" } as const;
      const ending = await node.add(conf, plan).then(
        () => "made",
        (error: Error) => error.message,
      );
      if (ending === "made") break;
      failures = number;
      expect(ending).toContain(`Effect ${number} (kernel.apply) failed: injected`);
      expect(ending).not.toContain("could not be undone");
      await becomes(() => node.observe().map(tidy), links.map(tidy), ending);
      // The output of ip has more in it, and takes longer.
      if (number % 16 === 2) await becomes(() => node.state().map(tidy), state, ending);
    }
    expect(failures).toBeGreaterThan(2);
    await node.check(conf);
  });
});

it("the bond of the module loses the options that the kernel shows in mode 802.3ad only", async () => {
  node.ip("link add bond0 type bond");
  const options = "ad_actor_sys_prio=300;ad_actor_system=02:00:00:00:00:07;ad_user_port_key=9";
  const plan = { action: "fail", number: 3, point: "kernel.apply" } as const;
  const ending = node.add({ interfaces: members, bond: { name: "bond0", mode: 4, options } }, plan);
  await expect(ending).rejects.toThrow("injected");
  node.ip("link set bond0 type bond mode 802.3ad");
  const names = ["ad_actor_sys_prio", "ad_actor_system", "ad_user_port_key"];
  const left = names.map((name) => node.file(`/sys/class/net/bond0/bonding/${name}`).trim());
  expect(left).toEqual(["65535", "00:00:00:00:00:00", "0"]);
});

it.each<[what: string, made: string[], conf: object, text: string, code: number]>([
  [
    "a member that cannot be one, after another has joined",
    ["link add nlmon0 type nlmon"],
    { interfaces: ["m0", "nlmon0"], bond: { name: "b0" } },
    '"host: ip link set nlmon0 master b0" failed',
    108,
  ],
  ["VLANs on the loopback", [], { interfaces: ["lo"], vlanID: 5 }, "VLANs not supported on device", 108],
  [
    "a VLAN's id that another namespace has",
    ["link add link m1 name foreign netns OTHER type vlan id 7"],
    { interfaces: ["m1"], vlanID: 7 },
    'VLAN 7 of "m1" exists in another network namespace',
    106,
  ],
  [
    "a member that a pod's macvlan is on, before it is set down",
    ["addr add 10.9.0.1/24 dev m1", "link add link m1 name foreign netns OTHER type macvlan mode bridge"],
    { interfaces: members, bond, takeOver: true },
    'Interface "m1" is in use by macvlan',
    106,
  ],
  [
    "one that a bond lacks, and a pod's ipvlan is on",
    ["link add b0 type bond mode 1", "link add link m1 name foreign netns OTHER type ipvlan"],
    { interfaces: members, bond },
    'Interface "m1" is in use by macvlan',
    106,
  ],
])("a refusal of the kernel: %s", async (_what, made, conf, text, code) => {
  const other = `${node.name}w`;
  for (const line of made) node.ip(line.replace("OTHER", other));
  const found = node.observe();
  // Counts how often the link went down and came back.
  const changes = node.file("/sys/class/net/m1/carrier_changes");
  const error = await node.add(conf).then(() => expect.unreachable(), toCniError);
  expect(error.message).toContain(text);
  expect(error.code).toBe(code);
  await becomes(() => node.observe(), found, error.message);
  expect(node.file("/sys/class/net/m1/carrier_changes")).toBe(changes);
  spawnSync("ip", ["-n", other, "link", "del", "foreign"]);
});

describe("takeOver", () => {
  const conf = { interfaces: members, bond, takeOver: true };

  it("moves addresses and routes to the bond, with all that they say", async () => {
    for (const line of LOAD) node.ip(line);
    const routes = () => ["-4", "-6"].flatMap((family) => node.ip(`${family} route show table all`).split("\n"));
    const moved = (text: string) => text.replaceAll(/\bm[01]\b/g, "b0");
    const sorted = (lines: string[]) =>
      lines
        .map((line) => line.trim())
        .filter((line) => !/fe80|ff00|^$|local/.test(line))
        .sort();
    const wanted = sorted(routes().map(moved));
    const addresses = (names: string[]) =>
      node
        .json("addr show")
        .filter(({ ifname }) => names.includes(ifname))
        .flatMap(({ addr_info }) => addr_info)
        .map(({ local, prefixlen, address, broadcast, scope, metric }) =>
          JSON.stringify({ local, prefixlen, address, broadcast, scope, metric }),
        )
        .filter((line) => !line.includes("fe80"))
        .sort();
    const had = addresses(members);
    await node.add(conf);
    expect(addresses(["b0"])).toEqual(had);
    expect(addresses(members)).toEqual([]);
    expect(sorted(routes())).toEqual(wanted);
    expect(
      node
        .json("-6 addr show b0")[0]
        .addr_info.some(
          ({ tentative, scope }: { tentative?: boolean; scope: string }) => tentative && scope === "global",
        ),
    ).toBe(false);
    await node.check(conf);
  });

  it.each<[what: string, made: string[], text: string]>([
    [
      "an address",
      ["addr add 10.9.0.1/24 valid_lft 600 preferred_lft 600 dev m0"],
      "has address 10.9.0.1/24 dev m0, which has a limited lifetime",
    ],
    [
      "a route",
      ["addr add fd09::1/64 nodad dev m0", "route add default via fd09::fe dev m0 proto ra"],
      "has route default via fd09::fe",
    ],
  ])("does not move %s that is renewed", async (_what, made, text) => {
    for (const line of made) node.ip(line);
    const found = node.observe();
    await expect(node.add(conf)).rejects.toThrow(text);
    expect(node.observe()).toEqual(found);
  });
});
