/** The ifacer as a runtime calls it: the built shim and agent, the whole chain, and traffic over its devices. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type CnitoolVerb, type PluginCall, type PluginOutcome, requireSuccess } from "../lab/cnitool.ts";
import { requireCommand } from "../lab/command.ts";
import { ALL_VERSIONS, ipPool, vendorConf } from "../lab/manifests.ts";
import { NetnsWorld } from "../lab/netns/world.ts";
import { addBridge, addVeth } from "../lab/netns.ts";
import { ping } from "../lab/traffic.ts";
import { eventually, PATIENCE } from "../lab/waiting.ts";
import { ofRun } from "../world/long-cases.ts";

const VLAN = 30;
const OTHER = "10.66.0.1";
const NETWORK = "trunk";
const WIRES = ["e0", "e1"];
const CONFIG = {
  "conf.yaml": vendorConf({ enableIPv6: false }),
  "pool.yaml": ipPool("trunk", "10.66.0.0/24", { ips: ["10.66.0.10-10.66.0.99"], gateway: OTHER, default: true }),
};

/**
 * A node with the built agent, a pod, and another machine at the other end of two wires, which are members of a
 * bridge there.
 *
 *   pod net1 (macvlan) ── b0.30 ── b0 ── e0, e1 ═══ e0, e1 ── br0 ── br0.30 other      10.66.0.0/24, tagged 30
 */
function makeWorld() {
  return NetnsWorld.build("uiw", async (world) => {
    // cnitool remembers there; the guest's root is read-only.
    await requireCommand(["sh", "-ec", "mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/cni"]);
    world.defer(() => requireCommand(["umount", "/var/lib"]));
    const [netns, other] = [await world.addNetns("node"), await world.addNetns("other")];
    for (const name of WIRES) await addVeth({ netns, name }, { netns: other, name });
    await addBridge(other, "br0", WIRES);
    await other.ip(`link add link br0 name br0.${VLAN} type vlan id ${VLAN}`);
    await other.ip(`addr add ${OTHER}/24 dev br0.${VLAN}`);
    await other.ip(`link set br0.${VLAN} up`);
    const node = await world.addNode(netns, CONFIG);
    return Object.assign(world, { node: netns, other, pod: await world.addPod(node, "pod", { name: undefined }) });
  });
}

let world: Awaited<ReturnType<typeof makeWorld>>;

beforeAll(async () => {
  world = await makeWorld();
});

afterAll(() => world.delete());
afterEach(async () => {
  // A VLAN device goes with its bond, the first of them: -force goes on.
  const names = (await devices()).sort((a, b) => a.length - b.length);
  const lines = [...names.map((name) => `link del ${name}`), ...WIRES.map((name) => `link set ${name} up`)];
  await world.node.exec(["ip", "-force", "-batch", "-"], { stdin: lines.join("\n") });
});

/** Names of the node's devices besides its wires. */
async function devices(): Promise<string[]> {
  const links = await world.node.ipJson<{ ifname: string }>("link show");
  return links.map(({ ifname }) => ifname).filter((name) => !["lo", ...WIRES].includes(name));
}

/** The shim alone; `conf` are the entry's own keys and those that replace the usual ones. */
function call(command: PluginCall["command"], conf: object, containerId = "c1"): Promise<PluginOutcome> {
  return world.pod.run("ifacer", command, { ifName: "net1", containerId, conf: { name: NETWORK, ...conf } });
}

/** A network with these plugins, through cnitool, for net1 of the pod. */
async function chain(verb: CnitoolVerb, plugins: readonly object[]): Promise<PluginOutcome> {
  await world.define(NETWORK, plugins, "1.1.0");
  return world.pod.call(verb, NETWORK, "net1");
}

const trunk = { interfaces: ["e0", "e1"], vlanID: VLAN, bond: { name: "b0", mode: 1, options: "miimon=50" } };

const succeed = async (call: Promise<PluginOutcome>) => requireSuccess(await call, "The call");

describe("the chain of ifacer, macvlan and coordinator", () => {
  const plugins = [
    { type: "ifacer", ...trunk },
    { type: "macvlan", master: `b0.${VLAN}`, ipam: { type: "berth" } },
    { type: "coordinator", mode: "overlay", serviceSnat: "off" },
  ];

  it("gives the pod an address on the trunk, whose traffic continues when a member fails", async () => {
    const { node, other } = world;
    const pod = world.pod.netns;
    // The pod's first NIC, as another network plugin makes it.
    await node.ip(`link add veth0 type veth peer name eth0 netns ${pod.name}`);
    await node.ip("addr add 10.244.0.1/24 dev veth0");
    await node.ip("link set veth0 up");
    await pod.ip("addr add 10.244.0.2/24 dev eth0");
    await pod.ip("link set eth0 up");
    await pod.ip("route add default via 10.244.0.1");

    const result = await succeed(chain("add", plugins));
    expect(result.ips[0].address).toMatch(/^10\.66\.0\.\d+\/24$/);
    expect(result.interfaces[0]).toMatchObject({ name: "net1", sandbox: pod.path });
    await succeed(chain("check", plugins));
    expect(await ping(pod, OTHER)).toBe(true);

    // The other machine's untagged side does not receive it.
    await other.ip("addr flush dev br0");
    const bonding = async () => (await node.exec(["cat", "/proc/net/bonding/b0"])).stdout;
    expect(await bonding()).toContain("Currently Active Slave: e0");
    const running = pod.exec(["ping", "-n", "-i0.1", "-c25", "-W1", OTHER]);
    await other.ip("link set e0 down");
    const now = await eventually(bonding, (text) => text.includes("Currently Active Slave: e1"));
    expect(now).toContain("Currently Active Slave: e1");
    const { stdout } = await running;
    expect(Number(/(\d+) received/.exec(stdout)?.[1]), stdout).toBeGreaterThan(12);
    expect(stdout).toMatch(/icmp_seq=25 /);
    await other.ip("link set e0 up");

    await succeed(chain("del", plugins));
    expect(await devices()).toEqual(expect.arrayContaining(["b0", `b0.${VLAN}`]));
    await succeed(chain("del", plugins));
  });

  const isUp = async (name: string): Promise<boolean> => {
    const [link] = await world.node.ipJson<{ flags: string[] }>(`link show ${name}`);
    return link?.flags.includes("UP") === true;
  };

  it.each([
    ["sets down", `b0.${VLAN}`, `link set b0.${VLAN} down`],
    ["takes out of its bond", "e1", "link set e1 nomaster"],
  ])("is restored when other software %s a device of a running pod: %s", async (_, name, command) => {
    const alone = plugins.slice(0, 2);
    await succeed(chain("add", alone));
    await world.node.ip(command);
    await expect.poll(() => isUp(name), PATIENCE).toBe(true);
    await succeed(chain("check", alone));
    await expect.poll(() => ping(world.pod.netns, OTHER), PATIENCE).toBe(true);
    await succeed(chain("del", alone));
  });
});

describe("the protocol", () => {
  const conf = { interfaces: ["e0"], vlanID: 7 };

  it.each(ofRun(ALL_VERSIONS, (version) => version === ALL_VERSIONS.at(-1)))("in CNI %s", async (cniVersion) => {
    const ip = { address: "10.66.0.9/24", ...(cniVersion < "1" && { version: "4" }) };
    const prevResult = { cniVersion, interfaces: [{ name: "net9" }], ips: [ip], routes: [{ dst: "10.0.0.0/8" }] };
    const first = await succeed(call("ADD", { ...conf, cniVersion }));
    const mac = (await world.node.ipJson<{ address: string }>("link show e0.7"))[0]?.address;
    expect(first).toEqual({ cniVersion, interfaces: [{ name: "e0.7", mac }] });
    expect(await succeed(call("ADD", { ...conf, cniVersion, prevResult }))).toEqual(prevResult);
    expect(await succeed(call("CHECK", { ...conf, cniVersion, prevResult: first }))).toBeUndefined();
  });

  it("CHECK names missing devices, DEL leaves the device", async () => {
    await succeed(call("ADD", conf));
    await succeed(call("DEL", conf));
    expect(await devices()).toEqual(["e0.7"]);
    await world.node.ip("link set e0.7 down");
    const { stdout } = await call("CHECK", conf);
    expect(stdout).toMatchObject({ code: 106, details: "host: ip link set e0.7 up" });
  });

  it("STATUS checks the configuration, GC does nothing, DEL never fails for a configuration", async () => {
    await succeed(call("STATUS", trunk));
    expect((await call("STATUS", { interfaces: [] })).stdout.code).toBe(7);
    await succeed(call("GC", { ...trunk, "cni.dev/valid-attachments": [] }));
    for (const conf of [trunk, { interfaces: "e0" }, { ...trunk, prevResult: { ips: 3 } }, {}]) {
      await succeed(call("DEL", conf));
    }
    expect(await devices()).toEqual([]);
  });
});

it.each(ofRun([2, 20], (count) => count === 2))("%i ADDs at once make one device, and all succeed", async (count) => {
  const calls = Array.from({ length: count }, (_, index) => succeed(call("ADD", trunk, `c${index}`)));
  expect(new Set((await Promise.all(calls)).map((result) => JSON.stringify(result))).size).toBe(1);
  expect(await devices()).toEqual(["b0", `b0.${VLAN}`]);
  const links = await world.node.ipJson<{ ifname: string; master?: string }>("link show");
  expect(links.filter(({ master }) => master === "b0").map(({ ifname }) => ifname)).toEqual(["e0", "e1"]);
});
