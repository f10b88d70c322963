import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runBerthctl } from "../lab/berthctl.ts";
import { ipPool, macvlan, vendorConf } from "../lab/manifests.ts";
import { type LabNode, type LabPod, NetnsWorld } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";

const COORDINATOR = { type: "coordinator", serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };
const POOLS = {
  // The node has the first address of both, its router the last one of the first.
  four: ipPool("four", "10.7.0.0/24", { ips: ["10.7.0.2-10.7.0.4", "10.7.0.200"], selection: "ascending" }),
  six: ipPool("six", "fd00:7::/64", { ips: ["fd00:7::2-fd00:7::4"], selection: "ascending" }),
  routed: ipPool("routed", "10.8.0.0/24", {
    ips: ["10.8.0.250-10.8.0.254"],
    gateway: "10.8.0.1",
    routes: [{ dst: "172.20.0.0/16", gw: "10.8.0.254" }],
    selection: "ascending",
  }),
  // Of the same network, with other routers.
  sibling: ipPool("sibling", "10.8.0.0/24", {
    ips: ["10.8.0.251"],
    gateway: "10.8.0.253",
    routes: [{ dst: "172.21.0.0/16", gw: "10.8.0.252" }],
  }),
  late4: ipPool("late4", "10.9.0.0/24", { ips: ["10.9.0.2-10.9.0.4"], selection: "ascending" }),
  late6: ipPool("late6", "fd00:9::/64", { ips: ["fd00:9::2-fd00:9::4"], selection: "ascending" }),
  hops4: ipPool("hops4", "10.13.0.0/24", { ips: ["10.13.0.2-10.13.0.9"], selection: "ascending" }),
  hops6: ipPool("hops6", "fd00:13::/64", { ips: ["fd00:13::2-fd00:13::9"], selection: "ascending" }),
  kept: ipPool("kept", "10.12.0.0/24", { ips: ["10.12.0.2-10.12.0.4"], selection: "ascending" }),
  none: ipPool("none", "10.7.0.0/24", { ips: ["10.7.0.2"] }),
  // One address that another address space has as well.
  here: ipPool("here", "10.11.0.0/24", { ips: ["10.11.0.7"] }),
  there: ipPool("there", "10.11.0.0/24", {
    ips: ["10.11.0.7-10.11.0.8"],
    addressSpace: "other",
    selection: "ascending",
  }),
  bridged: ipPool("bridged", "10.40.0.0/29", { ips: ["10.40.0.1-10.40.0.3"], selection: "ascending" }),
};
const of = (four?: string, six?: string): object => ({
  type: "berth",
  ...(four === undefined ? {} : { default_ipv4_ippool: [four] }),
  ...(six === undefined ? {} : { default_ipv6_ippool: [six] }),
});

async function makeWorld() {
  return NetnsWorld.build("oa", async (world) => {
    const [netns, lan] = [await world.addNetns("node"), await world.addNetns("lan")];
    await addVeth({ netns, name: "uplink" }, { netns: lan, name: "end" });
    await netns.ip("addr add 10.7.0.2/24 dev uplink");
    await netns.ip("addr add fd00:7::2/64 dev uplink nodad");
    await netns.ip("route add default via 10.7.0.200");
    const config = Object.fromEntries(Object.entries(POOLS).map(([name, text]) => [`${name}.yaml`, text]));
    const node = await world.addNode(netns, {
      ...config,
      "second.yaml": JSON.stringify({
        ...{ apiVersion: "v1", kind: "Pod" },
        metadata: { namespace: "shop", name: "second", uid: "uid-second" },
      }),
      "conf.yaml": vendorConf({ allowSingleFamily: true, allocationCooldown: "1h" }),
    });
    return Object.assign(world, { node });
  });
}

let world: Awaited<ReturnType<typeof makeWorld>>;
let node: LabNode;

beforeAll(async () => {
  world = await makeWorld();
  node = world.node;
});
afterAll(() => world.delete());

/** Runs `test` with a pod on the network of these plugins; both are gone afterwards. */
async function withPod<T>(name: string, plugins: readonly object[], test: (pod: LabPod) => Promise<T>): Promise<T> {
  const network = `oa-${name}`;
  await world.define(network, plugins);
  const pod = await world.addPod(node, name, { uid: `uid-${name}` });
  try {
    return await test(pod);
  } finally {
    await pod.detach(network);
    await pod.netns.delete();
  }
}

const attachTo = (four: string | undefined, six?: string) => [macvlan("uplink", of(four, six)), COORDINATOR];

const explain = async (...words: readonly string[]): Promise<string> =>
  (await runBerthctl("--socket", node.agent.socket, "explain", ...words)).out;

const addresses = async (pod: LabPod, network: string): Promise<string[]> =>
  (await pod.attach(network)).ips.map(({ address }) => address.replace(/\/.*/, ""));

describe("addresses that no pod can have", () => {
  it("the node's own, and next hops of its routes, are passed over in both families", () =>
    withPod("own", attachTo("four", "six"), async (pod) => {
      expect(await addresses(pod, "oa-own")).toEqual(["10.7.0.3", "fd00:7::3"]);
      expect(await explain("pool", "four")).toContain(
        'never allocated: 10.7.0.2 (the node has it on "uplink"), 10.7.0.200 (it is a next hop of the node\'s routes)',
      );
      const [pool] = (await node.agent.get("/v1/pools")).filter(({ name }: { name: string }) => name === "four");
      expect(pool).toMatchObject({ total: "2", free: "1" });
      const { places } = await node.agent.get("/v1/address?address=10.7.0.2");
      expect(places[0]).toMatchObject({ pool: "four", excluded: 'the node has it on "uplink"' });
    }));

  it("virtual ones that arrive later are passed over, and served when they are gone", async () => {
    await node.netns.ip("addr add 10.9.0.2/32 dev uplink");
    await node.netns.ip("addr add fd00:9::2/128 dev uplink nodad");
    const plugins = attachTo("late4", "late6");
    await withPod("virtual", plugins, async (pod) => {
      expect(await addresses(pod, "oa-virtual")).toEqual(["10.9.0.3", "fd00:9::3"]);
    });
    await node.netns.ip("addr del 10.9.0.2/32 dev uplink");
    await node.netns.ip("addr del fd00:9::2/128 dev uplink");
    await withPod("after", plugins, async (pod) => {
      expect(await addresses(pod, "oa-after")).toEqual(["10.9.0.2", "fd00:9::2"]);
    });
  });

  it("those of Services that kube-proxy keeps on the node (ipvs) are no reason: tenants choose them", async () => {
    await node.netns.ip("link add kube-ipvs0 type bridge");
    await node.netns.ip("addr add 10.9.0.4/32 dev kube-ipvs0");
    await withPod("ipvs", attachTo("late4"), async (pod) => {
      expect(await addresses(pod, "oa-ipvs")).toEqual(["10.9.0.4"]);
    });
    await node.netns.ip("link del kube-ipvs0");
  });

  it("next hops of routes and of next hop objects are passed over from the moment they are there", async () => {
    // From now on a route names its next hop object alone.
    await node.netns.exec(["sysctl", "-qw", "net.ipv4.nexthop_compat_mode=0"]);
    const plugins = attachTo("hops4", "hops6");
    // Each time the address that would be next; former ones are cooling.
    const steps: [text: string, four: string, six: string][] = [
      ["route add 172.30.0.0/16 via 10.13.0.2 dev uplink onlink table 170", "10.13.0.3", "fd00:13::2"],
      ["-6 route add fd00:30::/64 via fd00:13::3 dev uplink onlink table 170", "10.13.0.4", "fd00:13::4"],
      ["nexthop add id 9 via 10.13.0.5 dev uplink onlink", "10.13.0.6", "fd00:13::5"],
      ["nexthop add id 10 via fd00:13::6 dev uplink onlink", "10.13.0.7", "fd00:13::7"],
      ["route add 172.31.0.0/16 via inet6 fd00:13::8 dev uplink onlink", "10.13.0.8", "fd00:13::9"],
    ];
    for (const [index, [text, ...expected]] of steps.entries()) {
      await node.netns.ip(text);
      await withPod(`hops${index}`, plugins, async (pod) => {
        expect(await addresses(pod, `oa-hops${index}`), text).toEqual(expected);
      });
    }
  });

  it("next hops that have gone are served soon", async () => {
    await node.netns.ip("route flush table 170");
    await node.netns.ip("nexthop flush");
    await expect.poll(() => explain("pool", "hops4"), { timeout: 30_000 }).not.toContain("10.13.0.2 (it is a next hop");
    await withPod("hopsgone", attachTo("hops4"), async (pod) => {
      expect(await addresses(pod, "oa-hopsgone")).toEqual(["10.13.0.2"]);
    });
  });

  it("a pod keeps its address, and does not get it again, when the node gets it", async () => {
    const plugins = [macvlan("uplink", of("kept"))];
    await withPod("kept", plugins, async (pod) => {
      expect(await addresses(pod, "oa-kept")).toEqual(["10.12.0.2"]);
      await node.netns.ip("addr add 10.12.0.2/32 dev uplink");
      await pod.check("oa-kept");
      await pod.detach("oa-kept");
      expect(await addresses(pod, "oa-kept")).toEqual(["10.12.0.3"]);
    });
    await node.netns.ip("addr del 10.12.0.2/32 dev uplink");
  });

  it("routers that a pool, or another one of its network, names are passed over", () =>
    withPod("routed", [macvlan("uplink", of("routed"))], async (pod) => {
      expect(await addresses(pod, "oa-routed")).toEqual(["10.8.0.250"]);
      expect(await explain("pool", "routed")).toContain(
        "never allocated: " +
          '10.8.0.252 (it is a next hop of spec.routes of IPPool "sibling"), ' +
          '10.8.0.253 (it is the gateway of IPPool "sibling"), 10.8.0.254 (it is a next hop of spec.routes)',
      );
    }));

  it("one that the coordinator refused is not offered to the pod again", () =>
    withPod("first", attachTo("here"), async (first) => {
      expect(await addresses(first, "oa-first")).toEqual(["10.11.0.7"]);
      await withPod("second", attachTo("there"), async (second) => {
        const refused = await second.call("add", "oa-second");
        expect(refused.text + refused.stderr).toContain("Address 10.11.0.7 is already in use on this node");
        await second.call("del", "oa-second");
        expect(await explain("-n", "shop", "second", "--network", "oa-second")).toContain(
          'eth0 is not given 10.11.0.7 of pool "there": the coordinator refused it for this pod: it is already in use on this node',
        );
        expect(await addresses(second, "oa-second")).toEqual(["10.11.0.8"]);
      });
    }));
});

describe("a bridge that is the gateway of a pool without one", () => {
  const bridge = (more: object) => [{ type: "bridge", bridge: "oa0", ipam: of("bridged"), ...more }];

  it.each([{ isGateway: true }, { isDefaultGateway: true }])("takes the first address itself: %j", (keys) =>
    withPod("bridge", bridge(keys), async (pod) => {
      expect(await addresses(pod, "oa-bridge")).toEqual(["10.40.0.2"]);
      expect(await node.netns.ip("addr show dev oa0")).toContain("10.40.0.1/29");
      await node.netns.ip("link del oa0");
    }),
  );
});
