/** Without a cluster: a pool gets another gateway, and another range, while pods run. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runBerthctl } from "../lab/berthctl.ts";
import { ipPool, macvlan, vendorConf } from "../lab/manifests.ts";
import { type LabNode, type LabPod, NetnsWorld } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";

const NETWORK = "fg";
const lan = (gateway: string, ips: string) =>
  ipPool("lan", "10.47.0.0/24", { ips: [ips], gateway, selection: "ascending", default: true });

let world: NetnsWorld;
let node: LabNode;

beforeAll(async () => {
  world = await NetnsWorld.build("fg", async (built) => built);
  const [netns, far] = [await world.addNetns("node"), await world.addNetns("lan")];
  await addVeth({ netns, name: "uplink" }, { netns: far, name: "end" });
  node = await world.addNode(netns, {
    "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "0s" }),
    "lan.yaml": lan("10.47.0.1", "10.47.0.1-10.47.0.5"),
  });
  await world.define(NETWORK, [macvlan("uplink", { type: "berth" })]);
});
afterAll(() => world?.delete());

async function start(name: string): Promise<{ pod: LabPod; address: string | undefined; gateway: string | undefined }> {
  const pod = await world.addPod(node, name);
  const [ip] = (await pod.attach(NETWORK)).ips;
  const route = await pod.netns.ip("route show default");
  return { pod, address: ip?.address, gateway: route.split(" ")[2] };
}

async function end({ pod }: { pod: LabPod }): Promise<void> {
  await pod.detach(NETWORK);
  await pod.netns.delete();
}

/** The findings of check about addresses. */
async function check(): Promise<string[]> {
  const { out } = await runBerthctl("--socket", node.agent.socket, "check");
  return out.split("\n").filter((line) => line.includes(" 10.47.0."));
}

const placeOf = async (address: string) => (await node.agent.get(`/v1/address?address=${address}`)).places[0].excluded;

it("the former gateway is held back until its pods have ended, also in another file and over a restart, and check names them", async () => {
  const old = await start("old");
  expect([old.address, old.gateway]).toEqual(["10.47.0.2/24", "10.47.0.1"]);
  await node.agent.remove("lan.yaml");
  expect((await node.agent.get("/v1/pools"))[0].gone).toBe(true);
  await node.agent.write("edge.yaml", lan("10.47.0.254", "10.47.0.1-10.47.0.5"));
  const next = await start("next");
  expect([next.address, next.gateway]).toEqual(["10.47.0.3/24", "10.47.0.254"]);
  expect(await placeOf("10.47.0.1")).toBe('pods of IPPool "lan" still route by it');
  await node.agent.restart();
  expect(await placeOf("10.47.0.1")).toBe('pods of IPPool "lan" still route by it');
  expect(await check()).toEqual([
    "warning: PodsWithOtherGateway: of pool lan: pods route by 10.47.0.1, which the pool does not name any more: " +
      "10.47.0.2 (pod shop/old); until they end no pod gets 10.47.0.1",
  ]);
  await end(old);
  await expect.poll(() => placeOf("10.47.0.1"), { timeout: 15_000 }).toBeUndefined();
  const first = await start("first");
  expect(first.address).toBe("10.47.0.1/24");
  for (const each of [first, next]) await end(each);
});

it("a planned change of range is one sentence of check, and no error", async () => {
  const pods = [await start("one"), await start("two")];
  await node.agent.write("edge.yaml", lan("10.47.0.254", "10.47.0.20-10.47.0.29"));
  await expect.poll(() => placeOf("10.47.0.2")).toBe("spec.ips does not have it");
  const named = pods.map(({ address }, nth) => `${address?.replace("/24", "")} (pod shop/${["one", "two"][nth]})`);
  expect(await check()).toEqual([
    "warning: AddressesOutside: of pool lan: in use and not among the addresses that the pool gives out now: " +
      `${named.sort().join(", ")}; each goes when it is released`,
  ]);
  for (const each of pods) await end(each);
});
