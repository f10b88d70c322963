/** `berthctl blocks probe`: an agent's findings on a real segment, on which a machine has addresses of the range. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runBerthctl } from "../../../../test/lab/berthctl.ts";
import { ipPool, macvlan, podManifest, vendorConf } from "../../../../test/lab/manifests.ts";
import { type LabNode, NetnsWorld } from "../../../../test/lab/netns/world.ts";
import { addVeth } from "../../../../test/lab/netns.ts";

const MAC = "02:00:00:00:00:77";

let world: NetnsWorld;
let node: LabNode;

beforeAll(async () => {
  world = await NetnsWorld.build("probe", async (built) => built);
  const [netns, lan] = [await world.addNetns("node"), await world.addNetns("lan")];
  await addVeth({ netns, name: "uplink" }, { netns: lan, name: "lan" });
  await lan.ip(`link set lan address ${MAC}`);
  for (const address of ["10.66.0.77/24", "10.66.0.200/24"]) await lan.ip(`addr add ${address} dev lan`);
  await lan.ip("addr add fd00:66::77/64 dev lan nodad");
  node = await world.addNode(netns, {
    "conf.yaml": vendorConf({}),
    "pools.yaml": [
      ipPool("four", "10.66.0.0/24", { default: true, ips: ["10.66.0.10-10.66.0.20"] }),
      ipPool("six", "fd00:66::/64", { default: true, ips: ["fd00:66::10-fd00:66::20"] }),
    ].join("---\n"),
    "pods.yaml": podManifest("shop", "web", {}),
  });
  await world.define(`probe${process.pid}`, [macvlan("uplink")]);
});
afterAll(() => world?.delete());

async function probe(subnet: string, ranges: string): Promise<unknown> {
  const words = ["blocks", "probe", subnet, "--ranges", ranges, "-o", "json", "--socket", node.agent.socket];
  const { code, out, error } = await runBerthctl(...words);
  expect([code, error]).toEqual([0, ""]);
  return JSON.parse(out);
}

it("is on the segment with a pod there, and names each machine that answers", async () => {
  expect(await probe("10.66.0.0/24", "10.66.0.64-10.66.0.127")).toEqual({ answered: [] });
  const pod = await world.addPod(node, "web");
  await pod.attach(`probe${process.pid}`);
  const four = { address: "10.66.0.77", mac: MAC };
  expect(await probe("10.66.0.0/24", "10.66.0.64-10.66.0.127")).toEqual({ link: "uplink", answered: [four] });
  // More addresses than one question has.
  const both = [four, { address: "10.66.0.200", mac: MAC }];
  expect(await probe("10.66.0.0/23", "10.66.0.21-10.66.1.100")).toEqual({ answered: [] });
  expect(await probe("10.66.0.0/24", "10.66.0.21-10.66.0.254")).toEqual({ link: "uplink", answered: both });
  expect(await probe("10.66.0.0/24", "10.66.0.128-10.66.0.199")).toEqual({ link: "uplink", answered: [] });
  expect(await probe("fd00:66::/64", "fd00:66::40-fd00:66::ff")).toEqual({
    ...{ link: "uplink", answered: [{ address: "fd00:66::77", mac: MAC }] },
  });
});
