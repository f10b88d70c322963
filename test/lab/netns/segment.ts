/**
 * A node with an uplink, a segment behind it with a rival that has addresses, and pods with macvlan NICs: the built
 * agent and plugins.
 */
import type { Agent } from "../agent.ts";
import { type PluginCall, type PluginOutcome, type Refusal, requireRefusal, requireSuccess } from "../cnitool.ts";
import { ipPool, macvlan, manifest, vendorConf } from "../manifests.ts";
import { addVeth, type Netns } from "../netns.ts";
import { addDirectly, addressesOf, type DirectCall, type LabNode, LabPod, NetnsWorld, usageOf } from "./world.ts";

export const RIVAL_MAC = "02:11:22:33:44:55";

export interface SegmentCall extends Partial<PluginCall> {
  /** The pod's; default: the name of the namespace. */
  readonly name?: string;
  /** The plugin's own keys, and replacements of the network's. */
  readonly conf?: object;
}

export interface SegmentOptions {
  readonly pools?: Readonly<Record<string, string>>;
  /** Options of the resource Coordinator. */
  readonly detectOptions?: object;
  readonly vendor?: Record<string, unknown>;
  /** Plugins after the main plugin in the network's definition. */
  readonly more?: readonly object[];
}

/** The lowest address first. */
export const ASCENDING = { "blue.yaml": ipPool("blue", "10.66.0.0/29", { default: true, selection: "ascending" }) };
export const ASCENDING_SIX = {
  "six.yaml": ipPool("six", "fd00:66::/64", {
    ...{ default: true, selection: "ascending", ips: ["fd00:66::1-fd00:66::9"] },
  }),
};

export class Segment {
  readonly agent: Agent;
  readonly node: Netns;
  readonly rival: Netns;
  readonly network: string;
  readonly plugin = macvlan("uplink");
  readonly #world: NetnsWorld;
  #pods = 0;

  constructor(world: NetnsWorld, { netns, agent }: LabNode, rival: Netns, network: string) {
    this.#world = world;
    this.agent = agent;
    this.node = netns;
    this.rival = rival;
    this.network = network;
  }

  pod(): Promise<Netns> {
    return this.#world.addNetns(`p${this.#pods++}`);
  }

  /** A pod with a NIC that is down, as the main plugin leaves it before it asks for addresses. */
  async podWithNic(): Promise<Netns> {
    const pod = await this.pod();
    await this.node.ip(`link add link uplink name eth0 netns ${pod.name} type macvlan mode bridge`);
    return pod;
  }

  /** One plugin of the network's chain by itself. */
  run(plugin: string, command: PluginCall["command"], pod: Netns, options: SegmentCall = {}): Promise<PluginOutcome> {
    const { name, conf, ...call } = options;
    const entry = plugin === "coordinator" ? {} : this.plugin;
    const network = { cniVersion: "1.0.0", name: this.network, ...entry, ...conf };
    return this.#play(pod, name).run(plugin, command, { containerId: `c-${pod.name}`, conf: network, ...call });
  }

  /** As the runtime calls the network's main plugin. */
  call(command: "ADD" | "DEL" | "CHECK", pod: Netns, options: SegmentCall = {}): Promise<PluginOutcome> {
    return this.run("macvlan", command, pod, options);
  }

  /** ADD that must succeed; its addresses without length. */
  async add(pod: Netns, options: SegmentCall = {}): Promise<string[]> {
    return addressesOf(requireSuccess(await this.call("ADD", pod, options), `ADD of ${pod.name}`));
  }

  async refused(pod: Netns, options: SegmentCall = {}): Promise<Refusal> {
    return requireRefusal(await this.call("ADD", pod, options), `ADD of ${pod.name}`, "any");
  }

  /** ADD of `berth` straight to the agent's socket, as the main plugin sends it for a NIC that is down. */
  addDirectly(pod: Netns, args?: string): DirectCall {
    return addDirectly(this.agent, pod, { name: this.network, ...this.plugin }, args);
  }

  cnitool(command: "add" | "check" | "del", pod: Netns): Promise<PluginOutcome> {
    return this.#play(pod).call(command, this.network);
  }

  /** The pod's calls wait for an agent as long as a runtime's do. */
  #play(pod: Netns, name = pod.name): LabPod {
    const options = { name, uid: `uid-${name}`, connectWait: "20" };
    return new LabPod({ agent: this.agent, netns: this.node }, pod, options);
  }

  async setDetection(spec: { readonly detectIPConflict: boolean; readonly detectOptions?: object }): Promise<void> {
    await this.agent.write("coordinator.yaml", manifest("Coordinator", "default", spec));
  }

  usage(): Promise<Record<string, string[]>> {
    return usageOf(this.agent);
  }

  /** Returns the addresses of the pod's NIC; "" when there is no NIC. */
  async addressesOf(pod: Netns): Promise<string> {
    return (await pod.exec(["ip", "-o", "addr", "show", "dev", "eth0"])).stdout;
  }
}

let segments = 0;

/** The Coordinator wants detection; by default .1 to .6, the lowest first. */
export async function withSegment(options: SegmentOptions, test: (segment: Segment) => Promise<void>): Promise<void> {
  const { pools = ASCENDING, detectOptions = {}, vendor = { enableIPv6: false }, more = [] } = options;
  const number = ++segments;
  await using world = new NetnsWorld(`bd${number}`);
  const [node, rival] = [await world.addNetns("node"), await world.addNetns("rival")];
  await addVeth({ netns: node, name: "uplink" }, { netns: rival, name: "wire" });
  await rival.ip(`link set wire address ${RIVAL_MAC}`);
  const spec = { detectIPConflict: true, detectOptions };
  const config = {
    "conf.yaml": vendorConf({ allocationCooldown: "1s", ...vendor }),
    "coordinator.yaml": manifest("Coordinator", "default", spec),
    ...pools,
  };
  const network = `bd${process.pid}-${number}`;
  const segment = new Segment(world, await world.addNode(node, config), rival, network);
  await world.define(network, [segment.plugin, ...more]);
  await test(segment);
}
