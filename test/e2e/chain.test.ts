import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cnitool, forgetNetwork } from "../lab/cnitool.ts";
import { ipPool, podManifest, vendorConf } from "../lab/manifests.ts";
import { NetnsWorld } from "../lab/netns/world.ts";
import { addVeth, createNetns, type Netns } from "../lab/netns.ts";
import { eventually } from "../lab/waiting.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const NETWORK = `bt${process.pid}`;
const CONFIG = {
  "conf.yaml": vendorConf({ allocationCooldown: "1s", allowSingleFamily: true }),
  "four.yaml": ipPool("four", "10.66.0.0/24", { gateway: "10.66.0.1", default: true }),
  "six.yaml": ipPool("six", "fd00:66::/64", { gateway: "fd00:66::1", default: true }),
  "store.yaml": ipPool("store", "10.67.0.0/24", { gateway: "10.67.0.1" }),
  "pod.yaml": podManifest("shop", "two-nics", {
    ippools: [
      { interface: "eth0", ipv4: ["four"] },
      { interface: "net1", ipv4: ["store"], cleangateway: true },
    ],
    "k8s.v1.cni.cncf.io/networks": "lab",
    routes: [{ dst: "192.168.7.0/24", gw: "10.67.0.9" }],
  }),
};

/** Main plugins as a node would use them; the host side lives in a namespace of its own. */
const PLUGINS: Record<string, object> = {
  bridge: { type: "bridge", bridge: "cni0", isGateway: true, forceAddress: true },
  macvlan: { type: "macvlan", master: "uplink", mode: "bridge" },
  ptp: { type: "ptp" },
};

const world = new NetnsWorld("bt-chain");
let node: Netns;
const confDir = temporaryDirectory("berth-chain-");

beforeAll(async () => {
  await world.addAgent({ config: CONFIG });
  node = await createNetns(`bt-node-${process.pid}`);
  await addVeth({ netns: node, name: "uplink" }, { netns: node, name: "wire" });
});

afterAll(async () => {
  await world.delete();
  await node?.delete();
  await forgetNetwork(NETWORK);
});

async function writeNetwork(plugin: string, cniVersion: string, extra: object = {}): Promise<void> {
  const list = { cniVersion, name: NETWORK, plugins: [{ ...PLUGINS[plugin], ipam: { type: "berth" }, ...extra }] };
  await writeFile(join(confDir, "10.conflist"), JSON.stringify(list));
}

function call(command: Parameters<typeof cnitool>[0], pod: Netns, args = "", ifName = "eth0") {
  const pods = args === "" ? {} : { args: `IgnoreUnknown=1;${args}` };
  return cnitool(command, NETWORK, pod.path, { confDir, env: world.agent.env, node, ifName, ...pods });
}

async function succeed(command: Parameters<typeof cnitool>[0], pod: Netns, args = "", ifName = "eth0") {
  const outcome = await call(command, pod, args, ifName);
  expect(outcome.exitCode, `${command}: ${outcome.text}${outcome.stderr}`).toBe(0);
  return outcome.stdout;
}

async function withPods(count: number, test: (pods: Netns[]) => Promise<void>): Promise<void> {
  const pods: Netns[] = [];
  try {
    for (let index = 0; index < count; index++) pods.push(await createNetns(`bt-pod${index}-${process.pid}`));
    await test(pods);
  } finally {
    for (const pod of pods) await pod.delete();
  }
}

/** The reference plugins v1.9.1 speak 0.3.0 too; cnitool itself wants 0.4.0 for CHECK. */
const CALLS: [plugin: string, version: string][] = [
  ["macvlan", "0.3.0"],
  ["ptp", "0.4.0"],
  ["bridge", "1.0.0"],
  ["macvlan", "1.1.0"],
];

it.each(CALLS)("ipam berth through cnitool: %s attaches, checks and detaches in CNI %s", (plugin, version) =>
  withPods(1, async ([pod]) => {
    if (pod === undefined) throw new Error("no pod");
    await writeNetwork(plugin, version);
    const result = await succeed("add", pod);
    const addresses = result.ips.map(({ address }: { address: string }) => address);
    expect(addresses[0]).toMatch(/^10\.66\.0\.\d+\/24$/);
    expect(addresses[1]).toMatch(/^fd00:66::[0-9a-f:]*\/64$/);
    expect(await pod.ip("-4 addr show dev eth0")).toContain(addresses[0]);
    if (version >= "0.4.0") await succeed("check", pod);
    await succeed("del", pod);
    await succeed("del", pod);
    expect(Object.keys(await world.usage())).toEqual(["Cooling"]);
    const freed = await eventually(
      () => world.usage(),
      (usage) => Object.keys(usage).length === 0,
    );
    expect(freed).toEqual({});
  }),
);

describe("pods on one node", () => {
  it.each(["bridge", "macvlan"])("reach each other over %s, IPv4 and IPv6", (plugin) =>
    withPods(2, async ([a, b]) => {
      if (a === undefined || b === undefined) throw new Error("no pods");
      await writeNetwork(plugin, "1.0.0");
      await succeed("add", a);
      const { ips } = await succeed("add", b);
      for (const { address } of ips) {
        const target = address.split("/")[0];
        const outcome = await a.exec(["ping", "-c1", "-W5", target]);
        expect(outcome.exitCode, `${target}: ${outcome.stdout}${outcome.stderr}`).toBe(0);
      }
      for (const pod of [a, b]) await succeed("del", pod);
    }),
  );

  it("two NICs: addresses claimed at once, the route on the NIC that can carry it, no second gateway", () =>
    withPods(1, async ([pod]) => {
      if (pod === undefined) throw new Error("no pod");
      await writeNetwork("macvlan", "1.0.0");
      const identity = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=two-nics;K8S_POD_UID=uid-2";
      expect((await succeed("add", pod, identity)).routes).toEqual([{ dst: "0.0.0.0/0", gw: "10.66.0.1" }]);
      expect((await world.usage()).Bound).toHaveLength(2);
      const second = await succeed("add", pod, identity, "net1");
      expect(second.routes).toEqual([{ dst: "192.168.7.0/24", gw: "10.67.0.9" }]);
      expect(await pod.ip("route show default")).toMatch(/^default via 10\.66\.0\.1 dev eth0\s*$/);
      expect(await pod.ip("route show 192.168.7.0/24")).toContain("via 10.67.0.9 dev net1");
      await succeed("del", pod, identity, "net1");
      await succeed("del", pod, identity);
      expect((await world.usage()).Bound).toBeUndefined();
    }));

  it("status and gc of cnitool are served", () =>
    withPods(1, async ([pod]) => {
      if (pod === undefined) throw new Error("no pod");
      await writeNetwork("macvlan", "1.1.0");
      await succeed("add", pod);
      await succeed("status", pod);
      await succeed("gc", pod);
      await world.agent.stop();
      const { exitCode, text, stderr } = await call("status", pod);
      expect([exitCode, `${text}${stderr}`]).toEqual([1, expect.stringContaining("agent.sock")]);
      await world.agent.start();
      await succeed("del", pod);
    }));
});
