import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { FAMILIES } from "../../host/net/ip.ts";
import { segmentAddress, segmentSubnet } from "../lab/addressing.ts";
import { openCapture } from "../lab/capture.ts";
import { ipPool } from "../lab/manifests.ts";
import { macvlanOn } from "../lab/netns/coordinator.ts";
import { ask } from "../lab/traffic.ts";
import {
  ENTRY,
  expectDefault,
  expectNodePort,
  expectReplies,
  expectServices,
  makeNicLab,
  type NicLab,
  type NicPlace,
  PORT,
  SERVICE,
} from "./coordinator-nics.ts";

/** Segment 1 with the network of segment 0, as two customers have it: its router has the same address. */
const SAME_NETWORK = Object.fromEntries(
  FAMILIES.map((family) => {
    const at = (host: number) => segmentAddress(0, host, family);
    const spec = { gateway: at(1), ips: [`${at(200)}-${at(205)}`], addressSpace: "other" };
    return [`copy-v${family}.yaml`, ipPool(`copy-v${family}`, segmentSubnet(0, family), spec)];
  }),
);
const SAME_NETWORK_IPAM = { type: "berth", default_ipv4_ippool: ["copy-v4"], default_ipv6_ippool: ["copy-v6"] };

let lab: NicLab;

beforeAll(async () => {
  lab = await makeNicLab("cw", { config: SAME_NETWORK });
  await lab.define("cw-a", [macvlanOn(0), ENTRY]);
  await lab.define("cw-b", [macvlanOn(0), { ...ENTRY, podDefaultRouteNic: "net1" }]);
  await lab.define("cw-copy", [{ type: "macvlan", master: "eth1", mode: "bridge", ipam: SAME_NETWORK_IPAM }, ENTRY]);
});

afterAll(() => lab?.delete());

async function addPod(name: string) {
  return await lab.addServer(name);
}

describe("two NICs with the same network on one segment", () => {
  it.each(["cw-a", "cw-b"])("each address answers by its own NIC, in network %s", async (second) => {
    const pod = await addPod(`same-${second}`);
    const nics = [
      { ifName: "eth0", segment: 0 },
      { ifName: "net1", segment: 0 },
    ] as const;
    await pod.attach("cw-a");
    await pod.attach(second, "net1");
    using frames = await openCapture(lab.fabric.router, "seg0");
    for (const family of FAMILIES) {
      const expected = { lab, pod, family, nics };
      await expectDefault(expected, second === "cw-a" ? nics[0] : nics[1]);
      await expectReplies(expected);
      await expectServices(expected);
      for (const { ifName } of nics) {
        frames.clear();
        await ask(lab.fabric.outside, pod.address(family, ifName), PORT);
        const replies = frames
          .frames()
          .filter(({ from, protocol }) => protocol === "tcp" && from === pod.address(family, ifName));
        expect(new Set(replies.map(({ sourceMac }) => sourceMac)), ifName).toEqual(new Set([await pod.mac(ifName)]));
      }
    }
    for (const [network, ifName] of [
      ["cw-a", "eth0"],
      [second, "net1"],
    ] as const)
      await pod.check(network, ifName);
    await pod.detach(second, "net1");
    for (const family of FAMILIES) {
      const expected = { lab, pod, family, nics: [nics[0]] };
      await expectDefault(expected, nics[0]);
      await expectReplies(expected);
      await expectServices(expected);
    }
    await pod.detach("cw-a");
  });
});

it("two segments with the same network, whose routers have the same address: each address answers by its own NIC", async () => {
  const pod = await addPod("copy");
  const nics = [
    { ifName: "eth0", segment: 0 },
    { ifName: "net1", segment: 1 },
  ] as const;
  await pod.attach("cw-a");
  await pod.attach("cw-copy", "net1");
  for (const family of FAMILIES) {
    // The router has the gateway's address there, too, and knows on which segment this one host is.
    const { router } = lab.fabric;
    await router.ip(`addr add ${segmentAddress(0, 1, family)}/${family === 4 ? 32 : 128} dev seg1`);
    await router.ip(`route add ${pod.address(family, "net1")} dev seg1`);
    const expected = { lab, pod, family, nics };
    await expectDefault(expected, nics[0]);
    await expectReplies(expected);
    await expectServices(expected);
  }
  await pod.check("cw-copy", "net1");
  await pod.detach("cw-a");
  for (const family of FAMILIES) {
    const expected = { lab, pod, family, nics: [nics[1]] };
    await expectDefault(expected, nics[1]);
    await expectReplies(expected);
  }
  await pod.detach("cw-copy", "net1");
});

const FOUR = { ifName: "eth0", segment: 0, family: 4 } as const;
const SIX = { ifName: "net1", segment: 1, family: 6 } as const;
const BOTH = { ifName: "net2", segment: 2 } as const;

it.each(["", "net2"])(
  "NICs of different families: each family has its default route on a NIC that has it, with podDefaultRouteNic %j",
  async (wish) => {
    const entry = { ...ENTRY, podDefaultRouteNic: wish };
    const network = (name: string) => `cw-${name}${wish}`;
    for (const { ifName, segment, family } of [FOUR, SIX])
      await lab.define(network(ifName), [macvlanOn(segment, [family]), entry]);
    await lab.define(network("net2"), [macvlanOn(2), entry]);
    const pod = await addPod(`mixed${wish}`);
    const checkFamilies = async (four: readonly NicPlace[], six: readonly NicPlace[], holders: readonly NicPlace[]) => {
      for (const [index, nics] of [four, six].entries()) {
        const [family, holder] = [FAMILIES[index], holders[index]];
        if (family === undefined || holder === undefined) continue;
        const expected = { lab, pod, family, nics };
        await expectDefault(expected, holder);
        await expectReplies(expected);
        await expectServices(expected);
        await expectNodePort(expected);
      }
    };
    await pod.attach(network("eth0"));
    await checkFamilies([FOUR], [], [FOUR]);
    await pod.attach(network("net1"), "net1");
    await checkFamilies([FOUR], [SIX], [FOUR, SIX]);
    await pod.attach(network("net2"), "net2");
    await checkFamilies([FOUR, BOTH], [SIX, BOTH], wish === "net2" ? [BOTH, BOTH] : [FOUR, SIX]);
    for (const { ifName } of [FOUR, SIX, BOTH]) await pod.check(network(ifName), ifName);
    await pod.detach(network("net1"), "net1");
    await checkFamilies([FOUR, BOTH], [BOTH], [wish === "net2" ? BOTH : FOUR, BOTH]);
    await pod.detach(network("net2"), "net2");
    await checkFamilies([FOUR], [], [FOUR]);
    await pod.detach(network("eth0"));
  },
);

it("a NIC of a network without the coordinator changes nothing for the others: the first NIC keeps the default route, CHECK passes", async () => {
  await lab.define("cw-stranger", [macvlanOn(1)]);
  await lab.define("cw-third", [macvlanOn(2), ENTRY]);
  const pod = await addPod("strange");
  const [first, stranger, third] = [
    { ifName: "eth0", segment: 0 },
    { ifName: "net1", segment: 1 },
    { ifName: "net2", segment: 2 },
  ];
  const expectWorking = async (...nics: NicPlace[]): Promise<void> => {
    for (const family of FAMILIES) {
      const expected = { lab, pod, family, nics };
      await expectDefault(expected, first);
      await expectReplies(expected);
    }
  };
  await pod.attach("cw-a");
  await pod.attach("cw-stranger", "net1");
  await pod.check("cw-a");
  await pod.attach("cw-third", "net2");
  await expectWorking(first, stranger, third);
  await pod.check("cw-a");
  await pod.check("cw-third", "net2");
  await pod.detach("cw-stranger", "net1");
  await expectWorking(first, third);
  await pod.check("cw-a");
  await pod.check("cw-third", "net2");
  await pod.detach("cw-third", "net2");
  await expectWorking(first);
  await pod.check("cw-a");
  await pod.detach("cw-a");
});

/** Number of connections that all take the right one of two routes by chance once in a billion runs. */
const TIMES = 16;

it("tunePodRoutes false leaves the routes as the main plugins made them: replies of one of two NICs leave by the other", async () => {
  await lab.define("cw-plain0", [macvlanOn(0), { ...ENTRY, tunePodRoutes: false }]);
  await lab.define("cw-plain1", [macvlanOn(1), { ...ENTRY, tunePodRoutes: false }]);
  const pod = await addPod("plain");
  await pod.attach("cw-plain0");
  const before = await pod.netns.ip("route show default");
  await pod.attach("cw-plain1", "net1");
  expect(await pod.netns.ip("route show default")).toContain(before);
  // Else a pair of addresses takes the same route of two each time, by a number that the kernel draws when it
  // boots: perhaps the right one.
  writeSysctl(pod.netns.path, "ipv6/fib_multipath_hash_policy", "1");
  for (const family of FAMILIES) {
    expect(await pod.netns.ip(`-${family} rule show`)).not.toContain("910:");
    const seen: number[][] = [];
    for (const ifName of ["eth0", "net1"]) {
      lab.watch.clear();
      // Of two default routes for IPv6 each connection takes one by its ports.
      for (let time = 0; time < TIMES; time++) await ask(lab.fabric.outside, pod.address(family, ifName), PORT);
      seen.push(lab.watch.segmentsOf(({ from }) => from === pod.address(family, ifName)));
    }
    expect(seen).not.toEqual([[0], [1]]);
    expect(await ask(pod.netns, SERVICE[family], 80)).toMatchObject({ server: lab.fabric.node1.name });
  }
  await pod.detach("cw-plain1", "net1");
  await pod.detach("cw-plain0");
});
