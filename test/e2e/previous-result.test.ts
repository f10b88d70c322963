/** Content of another plugin's result, and requests of a runtime to other plugins, in every version. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requireSuccess } from "../lab/cnitool.ts";
import { ALL_VERSIONS, ipPool, macvlan, vendorConf } from "../lab/manifests.ts";
import { type LabNode, type LabPod, NetnsWorld } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";

const network = `previous${process.pid}`;
let world: NetnsWorld;
let node: LabNode;
let pod: LabPod;

beforeAll(async () => {
  world = await NetnsWorld.build("prev", async (built) => built);
  const [netns, lan] = [await world.addNetns("node"), await world.addNetns("lan")];
  await addVeth({ netns, name: "uplink" }, { netns: lan, name: "lan" });
  node = await world.addNode(netns, {
    "conf.yaml": vendorConf({ enableIPv6: false, allocationCooldown: "0s" }),
    "blue.yaml": ipPool("blue", "10.6.0.0/24", { default: true }),
  });
  await world.define(network, [macvlan("uplink")]);
  pod = await world.addPod(node, "one");
  await pod.attach(network);
});

afterAll(() => world?.delete());

describe.each(ALL_VERSIONS)("in version %s", (cniVersion) => {
  it("coordinator and ifacer pass on all that a previous result has", async () => {
    const family = cniVersion < "1.0.0" ? { version: "4" } : {};
    const prevResult = {
      cniVersion,
      interfaces: [
        {
          name: "eth0",
          mac: await pod.mac(),
          sandbox: pod.netns.path,
          mtu: 1400,
          pciID: "0000:00:1f.6",
          socketPath: "/run/s",
        },
      ],
      ips: [{ ...family, address: `${pod.address(4)}/24`, gateway: "10.6.0.1", interface: 0 }],
      routes: [{ dst: "192.0.2.0/24", gw: "10.6.0.1", mtu: 1300, advmss: 1200, priority: 50, table: 7, scope: 0 }],
      dns: { nameservers: ["10.6.0.53"], domain: "a.b", search: ["a.b"], options: ["ndots:2"] },
    };
    const conf = { cniVersion, name: network };
    const coordinator = { ...conf, type: "coordinator", serviceCIDR: ["10.96.0.0/16"] };
    expect(requireSuccess(await pod.run("coordinator", "ADD", { conf: coordinator, prevResult }), "ADD")).toEqual(
      prevResult,
    );
    const ifacer = { ...conf, type: "ifacer", interfaces: ["uplink"] };
    expect(requireSuccess(await pod.run("ifacer", "ADD", { conf: ifacer, prevResult }), "ADD")).toEqual(prevResult);
  });

  it.each(["", "0242.ac11.0007", "02-42-ac-11-00-07"])(
    "a requested MAC %j, which Berth does not use, is no reason to refuse",
    async (mac) => {
      const conf = { cniVersion, name: network, type: "macvlan", ipam: { type: "berth" }, runtimeConfig: { mac } };
      requireSuccess(await pod.run("berth", "ADD", { conf, prevResult: undefined }), mac);
    },
  );
});
