/**
 * A node with the built agent, a pod, and another machine at the other end of two wires, which are members of a bridge there.
 *
 *   pod net1 (macvlan) ── b0.30 ── b0 ── e0, e1 ═══ e0, e1 ── br0 ── br0.30 other      10.66.0.0/24, tagged 30
 *
 * Effects: namespaces, an agent, and a folder in memory in the place of /var/lib, until `delete`.
 */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agent, startAgent } from "../../scripts/lab/agent.ts";
import { cnitool, type PluginCall, type PluginOutcome, runPlugin } from "../../scripts/lab/cnitool.ts";
import { addBridge, addVeth, createNetns, type Netns } from "../../scripts/lab/netns.ts";
import { ipPool, vendorConf } from "../e2e/world.ts";

export const VLAN = 30;
export const OTHER = "10.66.0.1";
export const NETWORK = "trunk";

export interface IfacerWorld {
  readonly node: Netns;
  readonly other: Netns;
  readonly pod: Netns;
  readonly agent: Agent;
  /** The shim alone; `conf` are the entry's own keys and what replaces the usual ones. */
  call(command: PluginCall["command"], conf: object, containerId?: string): Promise<PluginOutcome>;
  /** A network with these plugins, through cnitool, for net1 of the pod. */
  chain(command: "add" | "check" | "del" | "status" | "gc", plugins: readonly object[]): Promise<PluginOutcome>;
  /** Names of the node's devices besides its wires. */
  devices(): Promise<string[]>;
  removeDevices(): Promise<void>;
  delete(): Promise<void>;
}

export async function makeIfacerWorld(): Promise<IfacerWorld> {
  const make = (name: string) => createNetns(`uiw-${name}-${process.pid}`);
  const [node, other, pod] = [await make("node"), await make("other"), await make("pod")];
  for (const name of ["e0", "e1"]) await addVeth({ netns: node, name }, { netns: other, name });
  await addBridge(other, "br0", ["e0", "e1"]);
  await other.ip(`link add link br0 name br0.${VLAN} type vlan id ${VLAN}`);
  await other.ip(`addr add ${OTHER}/24 dev br0.${VLAN}`);
  await other.ip(`link set br0.${VLAN} up`);
  // cnitool remembers there; the guest's root is read-only.
  execFileSync("mount", ["-t", "tmpfs", "tmpfs", "/var/lib"]);
  const config = {
    "conf.yaml": vendorConf({ enableIPv6: false }),
    "pool.yaml": ipPool("trunk", "10.66.0.0/24", { ips: ["10.66.0.10-10.66.0.99"], gateway: OTHER, default: true }),
  };
  const agent = await startAgent({ config, node, readyMs: 60_000 });
  const confDir = await mkdtemp(join(tmpdir(), "ifacer-"));
  await mkdir("/var/lib/cni", { recursive: true });
  const devices = async (): Promise<string[]> => {
    const links = await node.ipJson<{ ifname: string }>("link show");
    return links.map(({ ifname }) => ifname).filter((name) => !["lo", "e0", "e1"].includes(name));
  };
  return {
    node,
    other,
    pod,
    agent,
    call: (command, conf, containerId = "c1") => {
      const isOfNode = command === "GC" || command === "STATUS" || command === "VERSION";
      const attachment = isOfNode ? {} : { containerId, netns: pod.path, ifName: "net1" };
      const stdin = { cniVersion: "1.1.0", name: NETWORK, type: "ifacer", ...conf };
      return runPlugin({ plugin: "ifacer", command, ...attachment, stdin, env: agent.env, node });
    },
    chain: async (command, plugins) => {
      const list = { cniVersion: "1.1.0", name: NETWORK, plugins };
      await writeFile(join(confDir, "10.conflist"), JSON.stringify(list));
      return cnitool(command, NETWORK, pod.path, { confDir, env: agent.env, node, ifName: "net1" });
    },
    devices,
    removeDevices: async () => {
      const names = await devices();
      const wires = ["e0", "e1"].map((name) => `link set ${name} up`);
      // A VLAN device has gone with its bond: -force goes on.
      const lines = [...names.sort((a, b) => a.length - b.length).map((name) => `link del ${name}`), ...wires];
      await node.exec(["ip", "-force", "-batch", "-"], { stdin: lines.join("\n") });
    },
    delete: async () => {
      await agent.delete();
      await rm(confDir, { recursive: true, force: true });
      for (const netns of [pod, other, node]) await netns.delete();
      execFileSync("umount", ["/var/lib"]);
    },
  };
}
