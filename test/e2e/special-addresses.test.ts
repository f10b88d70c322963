/** Pools of addresses that are special, or look so: through the built agent, coordinator and main plugin. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ipPool, macvlan, podManifest, vendorConf } from "../lab/manifests.ts";
import { type LabNode, NetnsWorld } from "../lab/netns/world.ts";
import { addVeth, type Netns } from "../lab/netns.ts";

const network = `special${process.pid}`;
const choose = (pod: string, pool: string) => podManifest("shop", pod, { ippool: { ipv4: [pool] } });

let world: NetnsWorld;
let node: LabNode;
let lan: Netns;

beforeAll(async () => {
  world = await NetnsWorld.build("special", async (built) => built);
  const netns = await world.addNetns("node");
  lan = await world.addNetns("lan");
  await addVeth({ netns, name: "uplink" }, { netns: lan, name: "lan" });
  await lan.ip("addr add 240.10.0.1/24 dev lan");
  await netns.ip("addr add 240.10.0.2/24 dev uplink");
  node = await world.addNode(netns, {
    "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "0s" }),
    // As the last release accepted it.
    "pools.yaml": [
      ipPool("classe", "240.10.0.0/24", { ips: ["240.10.0.10-240.10.0.20"], gateway: "240.10.0.1", default: true }),
      ipPool("mixed", "192.0.0.0/2", { ips: ["223.255.255.255-224.0.0.9"], addressSpace: "wide" }),
      ipPool("loop", "127.10.0.0/24"),
      ipPool("edge", "10.77.0.0/24", { gateway: "10.77.0.255" }),
    ].join("---\n"),
    "pods.yaml": [choose("mixed", "mixed"), choose("loop", "loop")].join("---\n"),
  });
  await world.define(network, [macvlan("uplink"), { type: "coordinator", serviceCIDR: ["10.96.0.0/16"] }]);
});

afterAll(() => world?.delete());

it("a pod has an address of 240/4, and reaches its gateway and its node", async () => {
  const pod = await world.addPod(node, "e");
  await pod.attach(network);
  await pod.check(network);
  expect((await pod.netns.exec(["ping", "-c", "1", "-W", "2", "240.10.0.1"])).exitCode).toBe(0);
  expect((await node.netns.exec(["ping", "-c", "1", "-W", "2", pod.address(4)])).exitCode).toBe(0);
  await pod.detach(network);
});

it("a file of the last release serves its usable part after an upgrade, and its pools are reported with the fields", async () => {
  const { status, problems } = await node.agent.get("/v1/health");
  expect([status, problems]).toEqual([
    "ready",
    [
      expect.stringMatching(/^IPPool "loop" is refused: field "spec.subnet": found "127.10.0.0\/24"/),
      expect.stringMatching(
        /^IPPool "mixed" has values that new IPPools cannot have: field "spec.ips\[0\]": found "223.255.255.255-224.0.0.9"/,
      ),
      expect.stringMatching(
        /^IPPool "edge" has values that new IPPools cannot have: field "spec.gateway": found "10.77.0.255"/,
      ),
    ],
  ]);
  const mixed = await world.addPod(node, "mixed");
  await mixed.attach(network);
  expect(mixed.address(4)).toBe("223.255.255.255");
  await mixed.detach(network);
  const loop = await world.addPod(node, "loop");
  const refused = await loop.call("add", network);
  expect(`${refused.text}${refused.stderr}`).toContain('pool "loop" cannot be used');
});
