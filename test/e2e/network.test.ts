/** The lists that berthctl prints, executed by the reference library with the built agent. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runBerthctl } from "../lab/berthctl.ts";
import { cnitool, forgetNetwork } from "../lab/cnitool.ts";
import { CONF, ipPool } from "../lab/manifests.ts";
import { withWorld } from "../lab/netns/world.ts";
import { addVeth, createNetns, type Netns } from "../lab/netns.ts";
import { PATIENCE } from "../lab/waiting.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";
import { readDocumentsOf } from "./pages/script.ts";

const NETWORK = `bn-${process.pid}`;
const CONFIG = { "conf.yaml": CONF, "four.yaml": ipPool("four", "10.66.0.0/24", { gateway: "10.66.0.1" }) };
const POOL = ["--ipv4-pool", "four", "--cni-version", "1.1.0"];

let node: Netns;
const confDir = temporaryDirectory("berth-network-");

beforeAll(async () => {
  node = await createNetns(`bn-node-${process.pid}`);
  await addVeth({ netns: node, name: "uplink" }, { netns: node, name: "wire" });
  await node.ip("addr add 10.66.0.2/24 dev uplink");
});

afterAll(async () => {
  await node.delete();
  await forgetNetwork(NETWORK);
});

const berthctl = (...args: readonly string[]) => runBerthctl("network", NETWORK, ...args);

it.each<[name: string, args: string[], nic: RegExp]>([
  ["macvlan", ["--type", "macvlan", "--master", "uplink", "--serviceCIDR", "10.96.0.0/16"], / macvlan /],
  ["bridge", ["--type", "bridge", "--bridge", "cni0", "--no-coordinator"], / veth /],
  ["ptp", ["--type", "ptp", "--no-coordinator"], / veth /],
])("a pod gets its NIC and an address: %s", async (_, args, nic) => {
  const { out, code, error } = await berthctl("--conflist", ...args, ...POOL);
  expect([code, error]).toEqual([0, ""]);
  await writeFile(join(confDir, "10.conflist"), out);
  const work = (agentEnv: Readonly<Record<string, string>>, pod: Netns) => (command: Parameters<typeof cnitool>[0]) =>
    cnitool(command, NETWORK, pod.path, { confDir, env: agentEnv, node });
  await withWorld(
    CONFIG,
    async (world) => {
      const call = work(world.agent.env, world.sandbox);
      for (const command of ["status", "add", "check"] as const) {
        const outcome = await call(command);
        expect(outcome.exitCode, `${command}: ${outcome.text}${outcome.stderr}`).toBe(0);
        if (command === "add") expect(outcome.stdout.ips[0].address).toMatch(/^10[.]66[.]0[.]\d+\/24$/);
      }
      expect(await world.sandbox.ip("-d link show eth0")).toMatch(nic);
      const outcome = await call("del");
      expect(outcome.exitCode, `del: ${outcome.text}${outcome.stderr}`).toBe(0);
      await expect.poll(async () => (await world.usage()).Bound ?? [], PATIENCE).toEqual([]);
    },
    { node },
  );
});

it("the MTU of docs/recipes is that of the pod's NIC and of its pair", async () => {
  const [pool, definition] = readDocumentsOf("docs/recipes/mtu-9000.md");
  const own = definition.spec.config
    .replaceAll('"eth0"', '"uplink"')
    .replace('"name": "jumbo"', `"name": "${NETWORK}"`);
  await writeFile(join(confDir, "10.conflist"), own);
  for (const name of ["uplink", "wire"]) await node.ip(`link set ${name} mtu 9000`);
  const work = async ({ agent, sandbox }: Parameters<Parameters<typeof withWorld>[1]>[0]) => {
    const call = (command: "add" | "del") => cnitool(command, NETWORK, sandbox.path, { confDir, env: agent.env, node });
    const added = await call("add");
    expect(added.exitCode, added.text).toBe(0);
    for (const link of ["eth0", "veth0"]) expect(await sandbox.ip(`link show ${link}`)).toContain(" mtu 9000 ");
    await call("del");
  };
  await withWorld({ "conf.yaml": CONF, "pool.yaml": JSON.stringify(pool) }, work, { node });
});
