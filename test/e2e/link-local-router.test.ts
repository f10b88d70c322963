/** Networks whose router has a link-local address only: IPAM, main plugin, detection, tables, CHECK. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requireRefusal } from "../lab/cnitool.ts";
import { ipPool, macvlan, manifest, podManifest, vendorConf } from "../lab/manifests.ts";
import { type LabNode, NetnsWorld } from "../lab/netns/world.ts";
import { addVeth, type Netns } from "../lab/netns.ts";

const OUTSIDE = "fd00:99::1";
/** Each segment has a router fe80::1 and the network fd00:66:N::/64. */
const SEGMENTS = [1, 2];

let world: NetnsWorld;
let node: LabNode;
let router: Netns;
const networkOf = (segment: number): string => `ll${process.pid}-${segment}`;

beforeAll(async () => {
  world = await NetnsWorld.build("ll", async (built) => built);
  const [netns, lan] = [await world.addNetns("node"), await world.addNetns("lan")];
  router = lan;
  for (const segment of SEGMENTS) {
    await addVeth({ netns, name: `uplink${segment}` }, { netns: lan, name: `lan${segment}` });
    await lan.ip(`link set lan${segment} addrgenmode none`);
    await lan.ip(`-6 addr flush dev lan${segment}`);
    await lan.ip(`addr add fe80::1/64 dev lan${segment} nodad`);
    await lan.ip(`route add fd00:66:${segment}::/64 dev lan${segment}`);
  }
  await lan.ip("link set lo up");
  await lan.ip(`addr add ${OUTSIDE}/128 dev lo nodad`);
  for (const last of [3, 4]) await lan.ip(`addr add fd00:7${last}::1/128 dev lo nodad`);
  await lan.exec(["sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"]);
  node = await world.addNode(netns, {
    "conf.yaml": vendorConf({ enableIPv4: false, allocationCooldown: "0s" }),
    "coordinator.yaml": manifest("Coordinator", "default", {
      detectGateway: true,
      detectIPConflict: true,
      detectOptions: { retry: 2, interval: "50ms", timeout: "200ms" },
    }),
    "pools.yaml": SEGMENTS.map((segment) =>
      ipPool(`six${segment}`, `fd00:66:${segment}::/64`, {
        ...{ gateway: "fe80::1", default: segment === 1 },
        routes: segment === 1 ? [{ dst: "fd00:73::/64", gw: "fe80::1" }] : [],
      }),
    ).join("---\n"),
    "pods.yaml": [
      podManifest("shop", "one", { routes: [{ dst: "fd00:74::/64", gw: "fe80::1" }] }),
      podManifest("shop", "two", {
        ippools: [
          { interface: "eth0", ipv6: ["six1"] },
          { interface: "net1", ipv6: ["six2"] },
        ],
      }),
    ].join("---\n"),
  });
  for (const segment of SEGMENTS)
    await world.define(networkOf(segment), [macvlan(`uplink${segment}`), { type: "coordinator" }]);
});

afterAll(() => world?.delete());

const ping = async (from: Netns, to: string, source?: string): Promise<number> =>
  (await from.exec(["ping", "-6", "-c", "1", "-W", "2", ...(source === undefined ? [] : ["-I", source]), to])).exitCode;

describe("a pod whose router has only fe80::1", () => {
  it("gets the router as gateway, and the routes of pool and annotation over it", async () => {
    const pod = await world.addPod(node, "one");
    const { ips, routes } = Object.assign({ routes: [] }, await pod.attach(networkOf(1)));
    expect(ips).toMatchObject([{ gateway: "fe80::1" }]);
    expect(routes).toEqual([
      { dst: "::/0", gw: "fe80::1" },
      { dst: "fd00:73::/64", gw: "fe80::1" },
      { dst: "fd00:74::/64", gw: "fe80::1" },
    ]);
    for (const target of [OUTSIDE, "fd00:73::1", "fd00:74::1"]) expect(await ping(pod.netns, target), target).toBe(0);
    await pod.check(networkOf(1));
    const { lines } = await node.agent.get("/v1/explain?namespace=shop&pod=one");
    expect(lines.join("\n")).toContain('eth0 IPv6 pool "six1": fits');
    await pod.detach(networkOf(1));
  });

  it("is refused when the router does not answer", async () => {
    await router.ip("addr del fe80::1/64 dev lan1");
    const pod = await world.addPod(node, "lonely");
    const outcome = await pod.call("add", networkOf(1));
    await router.ip("addr add fe80::1/64 dev lan1 nodad");
    expect(outcome.exitCode).not.toBe(0);
    expect(`${outcome.text}${outcome.stderr}`).toContain(
      'Gateway fe80::1 of interface "eth0" did not answer 2 requests',
    );
    await pod.detach(networkOf(1));
  });
});

it("a pod with two NICs, each with a router fe80::1, reaches the outside from both, and CHECK finds a default route that is gone", async () => {
  const pod = await world.addPod(node, "two");
  await pod.attach(networkOf(1), "eth0");
  await pod.attach(networkOf(2), "net1");
  for (const ifName of ["eth0", "net1"]) expect(await ping(pod.netns, OUTSIDE, pod.address(6, ifName)), ifName).toBe(0);
  for (const [ifName, segment] of [
    ["eth0", 1],
    ["net1", 2],
  ] as const) {
    const { stdout } = await pod.netns.exec(["ip", "-6", "route", "get", OUTSIDE, "from", pod.address(6, ifName)]);
    expect(stdout).toContain(`via fe80::1 dev ${ifName} `);
    await pod.check(networkOf(segment), ifName);
  }
  // The copy in the table of the first NIC: the main table has the route still.
  await pod.netns.ip("-6 route del default table 101");
  const refusal = requireRefusal(await pod.coordinate("CHECK", networkOf(1)), "CHECK", "any");
  expect(refusal.msg).toContain("pod: ip -6 route add default via fe80::1 dev eth0 table 101");
});
