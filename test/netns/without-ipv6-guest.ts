/**
 * Program that without-ipv6.test.ts executes in User-Mode Linux. Throws, and so ends with 1, when something is not as
 * it should be.
 */
import assert from "node:assert/strict";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { requireRefusal, requireSuccess } from "../lab/cnitool.ts";
import { requireCommand } from "../lab/command.ts";
import { ipPool, macvlan, vendorConf } from "../lab/manifests.ts";
import { LabPod, NetnsWorld } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";
import { ping } from "../lab/traffic.ts";

const OTHER = "10.66.0.1";
const pool = (name: string, subnet: string, gateway: string, ips: string) =>
  ipPool(name, subnet, { default: true, gateway, ips: [ips] });
const FOUR = pool("four", "10.66.0.0/24", OTHER, "10.66.0.10-10.66.0.99");
const COORDINATOR = {
  ...{ type: "coordinator", mode: "overlay", serviceSnat: "off", serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] },
  ...{ detectIPConflict: true, detectGateway: true, podMACPrefix: "0a:1b", hostRPFilter: 0 },
};

// cnitool remembers there; the guest's root is read-only.
await requireCommand(["sh", "-ec", "mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/cni"]);
const world = await NetnsWorld.build("w6", async (world) => {
  const [node, other] = [await world.addNetns("node"), await world.addNetns("other")];
  await addVeth({ netns: node, name: "up0" }, { netns: other, name: "eth0" });
  await node.ip("addr add 10.66.0.2/24 dev up0");
  await node.ip(`route add default via ${OTHER}`);
  await other.ip(`addr add ${OTHER}/24 dev eth0`);
  writeSysctl(node.path, "ipv4/ip_forward", "1");
  const lab = await world.addNode(node, { "conf.yaml": vendorConf({ enableIPv6: false }), "four.yaml": FOUR });
  return Object.assign(world, { node, other, lab });
});
const { lab, node, other } = world;

async function addPod(name: string): Promise<LabPod> {
  return new LabPod(lab, await world.addNetns(name), { name: undefined, connectWait: "5" });
}

async function requireWell(): Promise<void> {
  const { status, problems } = await lab.agent.get("/v1/health");
  assert.deepEqual([status, problems], ["ready", []]);
  const { findings } = await lab.agent.get("/v1/check");
  assert.deepEqual(findings, []);
}

// A second NIC through the whole chain. Its first one is of another network plugin.
const pod = await addPod("pod");
await node.ip(`link add veth-pod type veth peer name eth0 netns ${pod.netns.name}`);
await node.ip("addr add 10.244.0.1/24 dev veth-pod");
await node.ip("link set veth-pod up");
await pod.netns.ip("addr add 10.244.0.2/24 dev eth0");
await pod.netns.ip("link set eth0 up");
await pod.netns.ip("route add default via 10.244.0.1");
await world.define("over", [macvlan("up0"), COORDINATOR], "1.1.0");
requireSuccess(await pod.run("coordinator", "STATUS"), "STATUS");
const { ips } = requireSuccess(await pod.call("add", "over", "net1"), "ADD");
const [own = ""] = ips[0].address.split("/");
requireSuccess(await pod.call("check", "over", "net1"), "CHECK");
for (const [from, to] of [
  [pod.netns, OTHER],
  [other, own],
  [node, own],
] as const)
  assert.equal(await ping(from, to, { count: 1 }), true, `${from.name} > ${to}`);
await requireWell();
requireSuccess(await pod.call("del", "over", "net1"), "DEL");
assert.equal(await node.ip("route show table 500"), "");
console.log("a second NIC: served");

// A first NIC needs nftables, which this kernel lacks for every family of addresses: that is the only thing in its way.
const first = await addPod("first");
await world.define("under", [macvlan("up0"), { type: "coordinator", serviceSnat: "off" }], "1.1.0");
const underlay = await first.call("add", "under");
assert.match(underlay.text + underlay.stderr, /"pod: nft add table inet berth" failed/);
requireSuccess(await first.call("del", "under"), "DEL");
console.log("a first NIC: as far as this kernel goes");

// A pool of addresses that no plugin could put on a NIC: refused in words, before anything is claimed; DEL succeeds.
await lab.agent.write("six.yaml", pool("six", "fd00:66::/64", "fd00:66::1", "fd00:66::10-fd00:66::99"));
await lab.agent.write("conf.yaml", vendorConf({ enableIPv6: true }));
const dual = await addPod("dual");
const ask = () => dual.run("berth", "ADD", { conf: { type: "macvlan", ipam: { type: "berth" } } });
let refusal = await ask();
for (let count = 0; refusal.exitCode === 0 && count < 50; count++) {
  await dual.run("berth", "DEL", { conf: { type: "macvlan", ipam: { type: "berth" } } });
  refusal = await ask();
}
const { code, msg } = requireRefusal(refusal, "ADD");
const wanted =
  'Interface "eth0" is to get an IPv6 address, but this node\'s kernel runs without IPv6 (ipv6.disable=1); ' +
  "start the node with IPv6, or set enableIPv6 to false in vendor-conf";
assert.deepEqual([code, msg], [108, wanted]);
const held: { state: string; address: string }[] = await lab.agent.get("/v1/allocations");
assert.deepEqual(
  held.filter(({ state, address }) => state === "Bound" || address.includes(":")),
  [],
);
for (const [plugin, conf] of [
  ["coordinator", {}],
  ["berth", { type: "macvlan", ipam: { type: "berth" } }],
] as const)
  requireSuccess(await dual.run(plugin, "DEL", { conf }), `DEL of ${plugin}`);
// An attachment of before, as the registry of a node that has lost its IPv6 knows it.
const prevResult = {
  ...{ cniVersion: "1.1.0", interfaces: [{ name: "eth0", sandbox: dual.netns.path }] },
  ips: [{ address: "fd00:66::10/64", interface: 0 }],
};
requireSuccess(await dual.run("coordinator", "DEL", { prevResult }), "DEL with an IPv6 address");
await requireWell();
console.log("an IPv6 pool: refused");
await world.delete();
