/** NICs of Podman's containers that this machine's kernel may lack: an ipvlan, and one on a VLAN. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ipPool, vendorConf } from "../../../../test/lab/manifests.ts";
import { type LabNode, NetnsWorld } from "../../../../test/lab/netns/world.ts";
import { addVeth } from "../../../../test/lab/netns.ts";
import { ping } from "../../../../test/lab/traffic.ts";
import { callDriver, containerCall } from "../netavark.ts";

const ROUTER = "10.9.0.1";
/** The kernel lacks nf_tables. */
const WITHOUT_COORDINATOR = { master: "uplink", coordinator: "false" };

let world: NetnsWorld;
let node: LabNode;

beforeAll(async () => {
  world = await NetnsWorld.build("unv", async (built) => built);
  const [netns, lan] = [await world.addNetns("node"), await world.addNetns("lan")];
  await addVeth({ netns, name: "uplink" }, { netns: lan, name: "lan" });
  await lan.ip(`addr add ${ROUTER}/24 dev lan`);
  await lan.ip("link add link lan name lan.120 type vlan id 120");
  await lan.ip("addr add 10.9.1.1/24 dev lan.120");
  await lan.ip("link set lan.120 up");
  const pools = [
    ipPool("four", "10.9.0.0/24", { ips: ["10.9.0.100"], gateway: ROUTER }),
    ipPool("tagged", "10.9.1.0/24", { ips: ["10.9.1.100"], gateway: "10.9.1.1" }),
  ];
  node = await world.addNode(netns, {
    "conf.yaml": vendorConf({ enableIPv6: false }),
    "pools.yaml": pools.join("---\n"),
  });
});

afterAll(() => world?.delete());

it.each([
  ["ipvlan", { type: "ipvlan", "ipv4-pool": "four" }, ROUTER, "ipvlan  mode l2"],
  ["macvlan on a VLAN", { vlan: "120", "ipv4-pool": "tagged" }, "10.9.1.1", "macvlan mode bridge"],
])("a container has a NIC on %s, which teardown removes", async (name, options, router, shown) => {
  const netns = await world.addNetns(name.replaceAll(" ", ""));
  const container = { id: name.replaceAll(" ", ""), network: { options: { ...WITHOUT_COORDINATOR, ...options } } };
  const call = (command: string) => callDriver([command, netns.path], containerCall(container), node.agent.env);
  expect(await call("setup")).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(".100/24") });
  expect(await netns.ip("-details link show dev eth0")).toContain(shown);
  expect(await ping(netns, router)).toBe(true);
  expect(await call("teardown")).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await netns.ip("link show")).not.toContain(" eth0@");
});
