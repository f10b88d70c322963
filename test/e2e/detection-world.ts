/** A node with an uplink, a segment behind it with a rival that has addresses, and pods with macvlan NICs: the built agent and plugins. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { type Agent, startAgent } from "../../scripts/lab/agent.ts";
import { cnitool, forgetNetwork, type PluginOutcome, runPlugin } from "../../scripts/lab/cnitool.ts";
import { addVeth, createNetns, type Netns } from "../../scripts/lab/netns.ts";
import { ipPool, vendorConf } from "./world.ts";

export const RIVAL_MAC = "02:11:22:33:44:55";

export interface PodOptions {
  /** Default: the name of the namespace. */
  readonly name?: string;
  readonly containerId?: string;
  readonly asked?: string;
}

export interface SegmentOptions {
  readonly pools?: Readonly<Record<string, string>>;
  readonly onConflict?: "fail" | "next";
  /** Of the resource Coordinator. */
  readonly detectOptions?: object;
  readonly vendor?: Record<string, unknown>;
  /** Added to the network's definition: what follows the main plugin. */
  readonly more?: readonly object[];
}

export class Segment {
  readonly agent: Agent;
  readonly node: Netns;
  readonly rival: Netns;
  readonly network: string;
  readonly #pods: Netns[] = [];

  constructor(agent: Agent, node: Netns, rival: Netns, network: string) {
    this.agent = agent;
    this.node = node;
    this.rival = rival;
    this.network = network;
  }

  async pod(): Promise<Netns> {
    const pod = await createNetns(`${this.network}-p${this.#pods.length}`);
    this.#pods.push(pod);
    return pod;
  }

  async deletePods(): Promise<void> {
    for (const pod of this.#pods) await pod.delete();
  }

  /** As the runtime calls the network's one plugin. */
  call(command: "ADD" | "DEL" | "CHECK", pod: Netns, options: PodOptions = {}): Promise<PluginOutcome> {
    const { name = pod.name, containerId = `c-${pod.name}`, asked } = options;
    const args = [...podArgs(name), ...(asked === undefined ? [] : [`IP=${asked}`])];
    return runPlugin({
      ...{ plugin: "macvlan", command, containerId, netns: pod.path, ifName: "eth0", args: args.join(";") },
      ...{ stdin: { cniVersion: "1.0.0", name: this.network, ...this.plugin }, env: this.agent.env, node: this.node },
    });
  }

  /** ADD that must succeed; its addresses without length. */
  async add(pod: Netns, options: PodOptions = {}): Promise<string[]> {
    const outcome = await this.call("ADD", pod, options);
    expect(outcome.exitCode, `${outcome.text}${outcome.stderr}`).toBe(0);
    return outcome.stdout.ips.map(({ address }: { address: string }) => address.split("/")[0]);
  }

  /** ADD that must be refused. */
  async refused(pod: Netns, options: PodOptions = {}): Promise<{ code: number; msg: string }> {
    const outcome = await this.call("ADD", pod, options);
    expect(outcome.exitCode, outcome.text).toBe(1);
    return outcome.stdout;
  }

  cnitool(command: "add" | "check" | "del", pod: Netns): Promise<PluginOutcome> {
    const { agent, network, node } = this;
    const options = { confDir: agent.cniConfDir, env: agent.env, node, args: podArgs(pod.name).join(";") };
    return cnitool(command, network, pod.path, options);
  }

  get plugin(): object {
    return { type: "macvlan", master: "uplink", mode: "bridge", ipam: { type: "berth" } };
  }

  async usage(): Promise<Record<string, string[]>> {
    const usage: Record<string, string[]> = {};
    for (const { address, state } of await this.agent.get("/v1/allocations")) {
      usage[state] = [...(usage[state] ?? []), address];
    }
    return usage;
  }

  /** What the pod's NIC has; "" when there is no NIC. */
  async addressesOf(pod: Netns): Promise<string> {
    return (await pod.exec(["ip", "-o", "addr", "show", "dev", "eth0"])).stdout;
  }
}

function podArgs(name: string): string[] {
  return ["IgnoreUnknown=1", "K8S_POD_NAMESPACE=shop", `K8S_POD_NAME=${name}`, `K8S_POD_UID=uid-${name}`];
}

/** The Coordinator wants detection; .1 to .6, the lowest first. */
function configOf({
  pools,
  onConflict = "fail",
  detectOptions,
  vendor = { enableIPv6: false },
}: SegmentOptions): Record<string, string> {
  const spec = { detectIPConflict: true, detectOptions: { onConflict, ...detectOptions } };
  const coordinator = { apiVersion: "ipam.vendor.io/v1", kind: "Coordinator", metadata: { name: "default" }, spec };
  return {
    "conf.yaml": vendorConf({ allocationCooldown: "1s", ...vendor }),
    "coordinator.yaml": JSON.stringify(coordinator),
    ...(pools ?? { "blue.yaml": ipPool("blue", "10.66.0.0/29", { default: true, selection: "ascending" }) }),
  };
}

let segments = 0;

export async function withSegment(options: SegmentOptions, test: (segment: Segment) => Promise<void>): Promise<void> {
  const network = `bd${process.pid}-${++segments}`;
  const node = await createNetns(`${network}-n`);
  const rival = await createNetns(`${network}-r`);
  try {
    await addVeth({ netns: node, name: "uplink" }, { netns: rival, name: "wire" });
    await rival.ip(`link set wire address ${RIVAL_MAC}`);
    const agent = await startAgent({ config: configOf(options), node });
    const segment = new Segment(agent, node, rival, network);
    const list = { cniVersion: "1.0.0", name: network, plugins: [segment.plugin, ...(options.more ?? [])] };
    await writeFile(join(agent.cniConfDir, "10.conflist"), JSON.stringify(list));
    try {
      await test(segment);
    } finally {
      await segment.deletePods();
      await agent.delete();
      await forgetNetwork(network);
    }
  } finally {
    await rival.delete();
    await node.delete();
  }
}
