/** A node with one agent and an uplink to another machine: where symptoms of a single node are produced. */

import type { Agent } from "../../lab/agent.ts";
import { runBerthctl } from "../../lab/berthctl.ts";
import { macvlan, vendorConf } from "../../lab/manifests.ts";
import { type LabNode, type LabPod, NetnsWorld } from "../../lab/netns/world.ts";
import { addVeth, type Netns } from "../../lab/netns.ts";

const CONF = vendorConf({ enableIPv6: false, allocationCooldown: "1h" });

let nodes = 0;

export class SymptomNode {
  readonly agent: Agent;
  readonly netns: Netns;
  readonly rival: Netns;
  readonly #world: NetnsWorld;
  readonly #node: LabNode;
  readonly #network = `symptoms${process.pid}-${++nodes}`;

  constructor(world: NetnsWorld, node: LabNode, rival: Netns) {
    this.#world = world;
    this.#node = node;
    this.rival = rival;
    this.netns = node.netns;
    this.agent = node.agent;
  }

  /**
   * Returns the runtime's report of a pod that must be refused; `plugins` replaces the network's: a macvlan NIC on
   * the uplink.
   */
  refusal = async (name: string, plugins?: readonly object[]): Promise<string> => {
    const { exitCode, text, stderr } = await (await this.#pod(name, plugins)).call("add", this.#network);
    if (exitCode === 0) throw new Error(`Pod ${name} was attached: ${text}`);
    return text + stderr;
  };

  attach = async (name: string, plugins?: readonly object[]): Promise<LabPod> => {
    const pod = await this.#pod(name, plugins);
    await pod.attach(this.#network);
    return pod;
  };

  detach = (pod: LabPod): Promise<void> => pod.detach(this.#network);

  berthctl = (...args: readonly string[]): Promise<string> => berthctl(this.agent.socket, ...args);

  delete = (): Promise<void> => this.#world.delete();

  async #pod(name: string, plugins: readonly object[] = [macvlan("eth1")]): Promise<LabPod> {
    await this.#world.define(this.#network, plugins);
    return this.#world.addPod(this.#node, name);
  }
}

export function openNode(config: Readonly<Record<string, string>>): Promise<SymptomNode> {
  return NetnsWorld.build(`sy${nodes}`, async (world) => {
    const [netns, rival] = [await world.addNetns("node"), await world.addNetns("rival")];
    await addVeth({ netns, name: "eth1" }, { netns: rival, name: "eth1" });
    return new SymptomNode(world, await world.addNode(netns, { "conf.yaml": CONF, ...config }), rival);
  });
}

export async function withNode<T>(config: Readonly<Record<string, string>>, test: (node: SymptomNode) => Promise<T>) {
  const node = await openNode(config);
  try {
    return await test(node);
  } finally {
    await node.delete();
  }
}

export async function berthctl(socket: string, ...args: readonly string[]): Promise<string> {
  const { out, error } = await runBerthctl(...args, "--socket", socket);
  return out + error;
}
