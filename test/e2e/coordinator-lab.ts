/**
 * Two nodes of the test network with an agent each, and pods that get their NICs as a runtime gives them: cnitool runs the main plugin with
 * ipam `berth`, then the coordinator. Called by the coordinator's tests.
 *
 *   const lab = await makeLab("cu", { families: [4, 6] });
 *   await lab.define("blue", [macvlan(0), { type: "coordinator" }]);
 *   const pod = await lab.addPod(lab.node1, "a");
 *   await pod.attach("blue");                             // eth0
 *   await ask(lab.fabric.outside, pod.address(4), 80);
 *
 * Effects: namespaces, agents, plugins; a folder of cnitool's results until `delete`.
 */
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { writeSysctl } from "../../host/kernel/sysctl.ts";
import { FAMILIES, type Family } from "../../host/net/ip.ts";
import { segmentAddress, segmentSubnet } from "../../scripts/lab/addressing.ts";
import { type Agent, startAgent } from "../../scripts/lab/agent.ts";
import { cnitool, forgetNetwork, type PluginOutcome, runPlugin } from "../../scripts/lab/cnitool.ts";
import { requireCommand } from "../../scripts/lab/command.ts";
import { type Fabric, makeFabric } from "../../scripts/lab/fabric.ts";
import type { Netns } from "../../scripts/lab/netns.ts";
import { ipPool, vendorConf } from "./world.ts";

/** Addresses of pods, within each segment. */
const RANGES = [
  [50, 99],
  [100, 149],
] as const;

/** On both nodes, as kube-proxy has it: what a node would forward without having seen the connection's other half is dropped. */
export const DROP_INVALID =
  "table inet forwarding { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }";

export interface LabNode {
  readonly netns: Netns;
  readonly agent: Agent;
}

export interface Lab {
  readonly families: readonly Family[];
  readonly fabric: Fabric;
  readonly node1: LabNode;
  readonly node2: LabNode;
  /** Writes the network's definition on both nodes. Name it as no other network of this machine. */
  define(network: string, plugins: readonly object[], cniVersion?: string): Promise<void>;
  addPod(node: LabNode, name: string): Promise<LabPod>;
  delete(): Promise<void>;
}

type Verb = "add" | "check" | "del";

/** Seconds for which a plugin waits for an agent that is not there. */
const PATIENCE = { BERTH_CONNECT_WAIT: "0.3" };

export interface CoordinateOptions {
  readonly ifName?: string;
  /** Its keys of the definition. */
  readonly entry?: object;
  /** Another path than the pod's. */
  readonly netns?: string;
}

/** A pod, and what its NICs have been given. */
export class LabPod {
  readonly node: LabNode;
  readonly netns: Netns;
  readonly name: string;
  /** Results of ADD by interface. */
  readonly #results = new Map<string, CniAnswer>();

  /** CNI_ARGS. */
  readonly args: string;

  /** `uid` is the pod's; two sandboxes of one pod have the same. */
  constructor(node: LabNode, netns: Netns, name: string, uid?: string) {
    this.node = node;
    this.netns = netns;
    this.name = name;
    const words = ["IgnoreUnknown=1", "K8S_POD_NAMESPACE=shop", `K8S_POD_NAME=${name}`];
    this.args = [...words, ...(uid === undefined ? [] : [`K8S_POD_UID=${uid}`])].join(";");
  }

  /** As cnitool makes it of the namespace's path. */
  get containerId(): string {
    return `cnitool-${createHash("sha512").update(this.netns.path).digest("hex").slice(0, 20)}`;
  }

  call(verb: Verb, network: string, ifName = "eth0"): Promise<PluginOutcome> {
    const { agent, netns } = this.node;
    const { args } = this;
    const options = { confDir: agent.cniConfDir, env: { ...agent.env, ...PATIENCE }, node: netns, args, ifName };
    return cnitool(verb, network, this.netns.path, options);
  }

  /** ADD of the whole chain, which must succeed. */
  async attach(network: string, ifName = "eth0"): Promise<CniAnswer> {
    const answer: CniAnswer = (await this.#succeed("add", network, ifName)).stdout;
    this.#results.set(ifName, answer);
    return answer;
  }

  async check(network: string, ifName = "eth0"): Promise<void> {
    await this.#succeed("check", network, ifName);
  }

  async detach(network: string, ifName = "eth0"): Promise<void> {
    await this.#succeed("del", network, ifName);
    this.#results.delete(ifName);
  }

  /** One verb of the coordinator alone, with the result of the NIC's ADD; `entry` is its part of the definition. */
  coordinate(
    command: "ADD" | "CHECK" | "DEL",
    network: string,
    { ifName = "eth0", entry = {}, netns = this.netns.path }: CoordinateOptions = {},
  ): Promise<PluginOutcome> {
    const { agent } = this.node;
    const { args, containerId } = this;
    const prevResult = this.#results.get(ifName);
    const stdin = { cniVersion: "1.0.0", name: network, type: "coordinator", ...entry, prevResult };
    const env = { ...agent.env, ...PATIENCE };
    const call = { containerId, netns, ifName, args, stdin, env, node: this.node.netns };
    return runPlugin({ plugin: "coordinator", command, ...call });
  }

  /** What the NIC's ADD has answered. */
  address(family: Family, ifName = "eth0"): string {
    const ips = this.#results.get(ifName)?.ips ?? [];
    const addresses = ips.map(({ address }) => address.split("/")[0] ?? "");
    const found = addresses.find((address) => address.includes(":") === (family === 6));
    if (found === undefined)
      throw new Error(`${this.name} has no IPv${family} address on ${ifName}: ${addresses.join(", ")}`);
    return found;
  }

  /** Of the NIC, as the kernel has it. */
  async mac(ifName = "eth0"): Promise<string> {
    const [link] = await this.netns.ipJson<{ address: string }>(`link show dev ${ifName}`);
    return link?.address ?? "";
  }

  async #succeed(verb: Verb, network: string, ifName: string): Promise<PluginOutcome> {
    const outcome = await this.call(verb, network, ifName);
    const said = `${verb} of ${ifName} on ${this.name}: ${outcome.text}${outcome.stderr}`;
    expect(outcome.exitCode, said).toBe(0);
    return outcome;
  }
}

/** What the tests read of a result. */
export interface CniAnswer {
  readonly ips: readonly { readonly address: string; readonly interface?: number }[];
  readonly interfaces: readonly { readonly name: string; readonly mac: string; readonly sandbox?: string }[];
}

/** The main plugin's entry for a NIC on that segment. */
export function macvlan(segment: number, families: readonly Family[] = FAMILIES): object {
  return { type: "macvlan", master: `eth${segment}`, mode: "bridge", ipam: ipamOn(segment, families) };
}

/** Berth's IPAM with the segment's pools. */
export function ipamOn(segment: number, families: readonly Family[] = FAMILIES): object {
  return {
    type: "berth",
    ...Object.fromEntries(families.map((family) => [`default_ipv${family}_ippool`, [`seg${segment}-v${family}`]])),
  };
}

function manifests(families: readonly Family[], [first, last]: readonly [number, number]): Record<string, string> {
  const pools = families.flatMap((family) =>
    [0, 1, 2].map((segment) => {
      const name = `seg${segment}-v${family}`;
      const spec = {
        gateway: segmentAddress(segment, 1, family),
        ips: [`${segmentAddress(segment, first, family)}-${segmentAddress(segment, last, family)}`],
      };
      return [`${name}.yaml`, ipPool(name, segmentSubnet(segment, family), spec)] as const;
    }),
  );
  const conf = vendorConf({
    enableIPv4: families.includes(4),
    enableIPv6: families.includes(6),
    allowSingleFamily: true,
    allocationCooldown: "1s",
  });
  return { "conf.yaml": conf, ...Object.fromEntries(pools) };
}

export interface LabOptions {
  /** Default: both. */
  readonly families?: readonly Family[];
  /** Further manifests for both agents, by file name. */
  readonly config?: Readonly<Record<string, string>>;
}

/** Builds it; when something fails, nothing is left. */
export async function makeLab(prefix: string, { families = FAMILIES, config = {} }: LabOptions = {}): Promise<Lab> {
  const fabric = await makeFabric(prefix, { families });
  const agents: Agent[] = [];
  const networks = new Set<string>();
  const remove = async (): Promise<void> => {
    for (const agent of agents.splice(0)) await agent.delete();
    await fabric.delete();
    for (const network of networks) await forgetNetwork(network);
  };
  const start = async (netns: Netns, range: readonly [number, number]): Promise<LabNode> => {
    await requireCommand(netns.enter(["nft", DROP_INVALID]));
    const agent = await startAgent({ node: netns, config: { ...manifests(families, range), ...config } });
    agents.push(agent);
    return { netns, agent };
  };
  try {
    const node1 = await start(fabric.node1, RANGES[0]);
    const node2 = await start(fabric.node2, RANGES[1]);
    return {
      families,
      fabric,
      node1,
      node2,
      define: async (network, plugins, cniVersion = "1.0.0") => {
        networks.add(network);
        const text = JSON.stringify({ cniVersion, name: network, plugins });
        for (const { agent } of [node1, node2]) await writeFile(join(agent.cniConfDir, `${network}.conflist`), text);
      },
      addPod: async (node, name) => {
        const netns = await fabric.addNetns(name);
        // Nobody else has its addresses: no second of waiting for that.
        writeSysctl(netns.path, "ipv6/conf/default/accept_dad", "0");
        return new LabPod(node, netns, name);
      },
      delete: remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
