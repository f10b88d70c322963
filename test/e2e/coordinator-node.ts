/**
 * One node with an agent, on a wire where nobody talks: what is on the node is what was put there, to the byte.
 * Effects: namespaces, an agent, plugins; cnitool's results until `delete`.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { startAgent } from "../../scripts/lab/agent.ts";
import { forgetNetwork } from "../../scripts/lab/cnitool.ts";
import { requireCommand } from "../../scripts/lab/command.ts";
import { addVeth, createNetns, type Netns } from "../../scripts/lab/netns.ts";
import { type LabNode, LabPod } from "./coordinator-lab.ts";
import { eventually, ipPool, vendorConf } from "./world.ts";

export const ENTRY = { type: "coordinator", serviceCIDR: ["10.96.0.0/16", "fd00:96::/112"] };
export const MACVLAN = { type: "macvlan", master: "uplink", mode: "bridge", ipam: { type: "berth" } };

const SETTINGS = { enableIPv6: true, allocationCooldown: "1s" };
const CONFIG = {
  "conf.yaml": vendorConf(SETTINGS),
  "four.yaml": ipPool("four", "10.6.0.0/16", { gateway: "10.6.0.1", default: true, ips: ["10.6.1.0-10.6.1.255"] }),
  "six.yaml": ipPool("six", "fd00:6::/64", { gateway: "fd00:6::1", default: true, ips: ["fd00:6::100-fd00:6::1ff"] }),
  "same4.yaml": ipPool("same4", "10.7.0.0/24", { ips: ["10.7.0.7"], addressSpace: "other" }),
  "same6.yaml": ipPool("same6", "fd00:7::/64", { ips: ["fd00:7::7"], addressSpace: "other" }),
  "one4.yaml": ipPool("one4", "10.7.0.0/24", { ips: ["10.7.0.7"] }),
  "one6.yaml": ipPool("one6", "fd00:7::/64", { ips: ["fd00:7::7"] }),
};
/** Of pools with one address each. */
export const SINGLE = {
  ...MACVLAN,
  ipam: { type: "berth", default_ipv4_ippool: ["one4"], default_ipv6_ippool: ["one6"] },
};

/** Of pools with the same addresses, in another address space. */
export const SAME = {
  ...MACVLAN,
  ipam: { type: "berth", default_ipv4_ippool: ["same4"], default_ipv6_ippool: ["same6"] },
};

/** What each command printed, to the byte, parted so that a difference is easily seen. */
export type Dump = Readonly<Record<string, readonly string[]>>;

export interface ChainNode extends LabNode {
  define(network: string, plugins: readonly object[], cniVersion?: string): Promise<void>;
  /** `uid`: of the pod "web-0", of which this is one of several sandboxes. */
  addPod(name: string, uid?: string): Promise<LabPod>;
  /** Further settings of vendor-conf, in place of those that were set so before. */
  configure(settings: Record<string, unknown>): Promise<void>;
  /** Runs `test` with a pod that is removed afterwards. */
  withPod<T>(name: string, test: (pod: LabPod) => Promise<T>): Promise<T>;
  /** All network state of the node. */
  dump(): Promise<Dump>;
  /** Waits until the node's state is this one: the kernel takes its time to empty a namespace that was deleted. */
  expectState(wanted: Dump): Promise<void>;
  /** Starts the agent anew after SIGKILL, with that fault plan. */
  restart(fault?: string): Promise<void>;
  delete(): Promise<void>;
}

const COMMANDS = [
  "ip -d -j link",
  "ip -d -j addr",
  "ip -d -j -4 route show table all",
  "ip -d -j -6 route show table all",
  "ip -d -j -4 rule",
  "ip -d -j -6 rule",
  "ip -d -j neigh",
  "nft -j list ruleset",
];

export async function dumpNetns(netns: Netns): Promise<Dump> {
  const dump: Record<string, string[]> = {};
  for (const command of COMMANDS) {
    const text = await requireCommand(netns.enter(command.split(" ")));
    dump[command] = text.split(/(?<=\},)/);
  }
  return dump;
}

async function buildNode(netns: Netns, wire: Netns): Promise<void> {
  for (const key of ["ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"]) writeSysctl(wire.path, key, "1");
  for (const key of ["ipv6/conf/all/accept_dad", "ipv6/conf/default/accept_dad"]) writeSysctl(netns.path, key, "0");
  await addVeth({ netns, name: "uplink" }, { netns: wire, name: "end" });
  for (const key of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]) writeSysctl(netns.path, key, "1");
  await netns.ip("addr add 10.6.0.2/16 dev uplink");
  await netns.ip("addr add fd00:6::2/64 dev uplink");
  await netns.ip("route add default via 10.6.0.1");
  await netns.ip("route add default via fd00:6::1");
}

/** Builds it; when something fails, nothing is left. */
export async function makeNode(prefix: string): Promise<ChainNode> {
  const made: Netns[] = [];
  const networks = new Set<string>();
  const add = async (name: string): Promise<Netns> => {
    const netns = await createNetns(`${prefix}-${name}-${process.pid}`);
    made.push(netns);
    return netns;
  };
  const removeAll = async (): Promise<void> => {
    for (const one of made.splice(0).reverse()) await one.delete();
    for (const network of networks) await forgetNetwork(network);
  };
  try {
    const [netns, wire] = [await add("node"), await add("wire")];
    await buildNode(netns, wire);
    const agent = await startAgent({ node: netns, config: CONFIG });
    const node = { netns, agent };
    const addPod = async (name: string, uid?: string): Promise<LabPod> => {
      const pod = await add(name);
      writeSysctl(pod.path, "ipv6/conf/default/accept_dad", "0");
      // Else the node learns the pod's link-local address from a router solicitation, at some time.
      writeSysctl(pod.path, "ipv6/conf/default/router_solicitations", "0");
      return uid === undefined ? new LabPod(node, pod, name) : new LabPod(node, pod, "web-0", uid);
    };
    return {
      ...node,
      addPod,
      configure: (settings) => agent.write("conf.yaml", vendorConf({ ...SETTINGS, ...settings })),
      define: async (network, plugins, cniVersion = "1.0.0") => {
        networks.add(network);
        const text = JSON.stringify({ cniVersion, name: network, plugins });
        await writeFile(join(agent.cniConfDir, `${network}.conflist`), text);
      },
      withPod: async (name, test) => {
        const pod = await addPod(name);
        try {
          return await test(pod);
        } finally {
          await pod.netns.delete();
        }
      },
      dump: () => dumpNetns(netns),
      expectState: async (wanted) => {
        const isWanted = (dump: Dump): boolean => JSON.stringify(dump) === JSON.stringify(wanted);
        expect(await eventually(() => dumpNetns(netns), isWanted, 3_000)).toEqual(wanted);
      },
      restart: async (fault) => {
        await agent.kill("SIGKILL");
        if (fault !== undefined) process.env.BERTH_FAULT = fault;
        try {
          await agent.start();
        } finally {
          delete process.env.BERTH_FAULT;
        }
      },
      delete: async () => {
        await agent.delete();
        await removeAll();
      },
    };
  } catch (error) {
    await removeAll();
    throw error;
  }
}

/** Names of the host's ends of pairs. */
export async function pairsOf(node: Netns): Promise<string[]> {
  const links = await node.ipJson<{ ifname: string }>("link show type veth");
  return links.map(({ ifname }) => ifname).filter((name) => /^veth[0-9a-f]{11}$/.test(name));
}

/** A verb of the coordinator that must succeed. */
export async function coordinate(pod: LabPod, ...call: Parameters<LabPod["coordinate"]>): Promise<void> {
  const outcome = await pod.coordinate(...call);
  expect(outcome.exitCode, outcome.text).toBe(0);
}
