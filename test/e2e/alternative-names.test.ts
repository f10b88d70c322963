/** Definitions and settings that name a link by an alternative name. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { requireRefusal, requireSuccess } from "../lab/cnitool.ts";
import { ipPool, macvlan, podManifest, vendorConf } from "../lab/manifests.ts";
import { type LabNode, type LabPod, NetnsWorld } from "../lab/netns/world.ts";
import { addVeth } from "../lab/netns.ts";

/** Longer than a name can be. */
const LONG = "the-link-of-this-node-to-the-rack";
const network = `names${process.pid}`;

let world: NetnsWorld;
let node: LabNode;
let pod: LabPod;

const settings = (interfaces: readonly string[]) =>
  vendorConf({ enableIPv6: false, allocationCooldown: "0s", ifacer: { interfaces } });

beforeAll(async () => {
  world = await NetnsWorld.build("names", async (built) => built);
  const [netns, lan] = [await world.addNetns("node"), await world.addNetns("lan")];
  for (const link of ["uplink", "other"]) await addVeth({ netns, name: link }, { netns: lan, name: link });
  for (const name of ["lan", LONG]) await netns.ip(`link property add dev uplink altname ${name}`);
  node = await world.addNode(netns, {
    "conf.yaml": settings([]),
    "blue.yaml": ipPool("blue", "10.6.0.0/24", { gateway: "10.6.0.1", default: true }),
    "green.yaml": ipPool("green", "10.7.0.0/24", { gateway: "10.7.0.1" }),
    "two.yaml": podManifest("shop", "two", {
      ippools: [
        { interface: "eth0", ipv4: ["blue"] },
        { interface: "net1", ipv4: ["green"] },
      ],
      "default-route-nic": "storage",
    }),
  });
  pod = await world.addPod(node, "one");
});

afterAll(() => world?.delete());

const call = (interfaces: readonly string[], more: object = {}) =>
  pod.run("ifacer", "ADD", { conf: { cniVersion: "1.0.0", name: "lab", type: "ifacer", interfaces, ...more } });

it.each(["uplink", "lan", LONG])("ifacer finds a link by %s, and its result has the link's name", async (name) => {
  const { interfaces } = requireSuccess(await call([name]), name);
  expect(interfaces).toMatchObject([{ name: "uplink" }]);
  await world.define(network, [{ type: "ifacer", interfaces: [name] }, macvlan("uplink")]);
  for (const verb of ["add", "check", "del"] as const) requireSuccess(await pod.call(verb, network), `${verb} ${name}`);
});

it.each([
  ["uplink", "lan"],
  ["lan", "uplink"],
  ["lan", LONG],
  [LONG, LONG],
])("with %s in vendor-conf a definition may use %s, and no other link", async (permitted, name) => {
  await node.agent.write("conf.yaml", settings([permitted]));
  requireSuccess(await call([name]), name);
  for (const forbidden of ["other", "absent"])
    expect(requireRefusal(await call([forbidden]), forbidden, "any")).toMatchObject({
      code: 106,
      msg: expect.stringContaining(`may not use interface "${forbidden}"`),
    });
  await node.agent.write("conf.yaml", settings([]));
});

it("two names of one link, and a name that no link has, are refused", async () => {
  const bond = { name: "b0" };
  expect(requireRefusal(await call(["lan", "uplink"], { bond }), "twice", "any")).toMatchObject({
    code: 106,
    msg: '"lan" and "uplink" of "interfaces" are names of one interface, "uplink"; name it once',
  });
  expect(requireRefusal(await call(["lam"]), "absent", "any").msg).toContain(
    'Interface "lam" of "interfaces" does not exist',
  );
});

it("a NIC of the pod carries the default route by an alternative name", async () => {
  const two = await world.addPod(node, "two");
  for (const [ifName, master] of [
    ["eth0", "uplink"],
    ["net1", "other"],
  ] as const) {
    await world.define(`${network}-${master}`, [macvlan(master)]);
    await two.attach(`${network}-${master}`, ifName);
    if (ifName === "net1") await two.netns.ip("link property add dev net1 altname storage");
    const conf = {
      cniVersion: "1.0.0",
      name: `${network}-${master}`,
      type: "coordinator",
      serviceCIDR: ["10.96.0.0/16"],
    };
    await two.succeed("ADD", { conf, ifName });
  }
  expect(await two.netns.ip("route show default")).toMatch(/^default via 10\.7\.0\.1 dev net1/);
});
