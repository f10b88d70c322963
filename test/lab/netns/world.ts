/**
 * The environment of namespaces, for tests and the demo: nodes with the built agent, links between them, pods, and a
 * runtime's calls. segment.ts and coordinator.ts furnish it; {@link withWorld} has one agent and no network.
 *
 *   const world = await NetnsWorld.build("cc", async (world) => {
 *     const netns = await world.addNetns("node");
 *     const node = await world.addNode(netns, { "pool.yaml": ipPool("blue", "10.6.0.0/24") });
 *     return Object.assign(world, { node });
 *   });
 *   await world.define("blue", [macvlan("eth0"), { type: "coordinator" }]);
 *   const pod = await world.addPod(world.node, "a");
 *   await pod.attach("blue");                             // eth0
 *   await world.delete();
 *
 * Effects: namespaces, agents, plugins; cnitool's results until `delete`.
 */
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { writeSysctl } from "../../../host/kernel/sysctl.ts";
import type { Family } from "../../../host/net/ip.ts";
import { type Agent, type AgentOptions, startAgent } from "../agent.ts";
import { Wire } from "../cluster/wire.ts";
import {
  type CnitoolVerb,
  cnitool,
  forgetNetwork,
  type PluginCall,
  type PluginOutcome,
  type Refusal,
  requireRefusal,
  requireSuccess,
  runPlugin,
} from "../cnitool.ts";
import { podArgs } from "../manifests.ts";
import { createNetns, type Netns } from "../netns.ts";
import { agentRecords } from "../observer/records.ts";
import { type Server, serve } from "../traffic.ts";
import { type Fabric, type FabricOptions, makeFabric } from "./fabric.ts";

export interface LabNode {
  readonly netns: Netns;
  readonly agent: Agent;
}

export class NetnsWorld implements AsyncDisposable {
  readonly #prefix: string;
  readonly #agents: Agent[] = [];
  #sandbox: Netns | undefined;
  #wire: Wire | undefined;
  readonly #networks = new Set<string>();
  readonly #undo = new AsyncDisposableStack();

  /** `prefix` distinguishes the namespaces of test files. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** If `build` fails, nothing is left. */
  static async build<T>(prefix: string, build: (world: NetnsWorld) => Promise<T>): Promise<T> {
    const world = new NetnsWorld(prefix);
    try {
      return await build(world);
    } catch (error) {
      await world.delete();
      throw error;
    }
  }

  /** Done by `delete`, after the agents have ended; the last first. */
  defer(undo: () => unknown): void {
    this.#undo.defer(async () => void (await undo()));
  }

  async addNetns(name: string): Promise<Netns> {
    const netns = await createNetns(`${this.#prefix}-${name}-${process.pid}`);
    this.defer(() => netns.delete());
    return netns;
  }

  async addFabric(options?: FabricOptions): Promise<Fabric> {
    const fabric = await makeFabric(this.#prefix, options);
    this.defer(() => fabric.delete());
    return fabric;
  }

  /** A server as {@link serve} starts it, until `delete`. */
  async serve(...where: Parameters<typeof serve>): Promise<Server> {
    const server = await serve(...where);
    this.defer(() => server.close());
    return server;
  }

  /** Starts an agent; see {@link addNode}. */
  async addAgent(options: AgentOptions): Promise<Agent> {
    const agent = await startAgent(options);
    this.#agents.push(agent);
    return agent;
  }

  /** Starts an agent in the namespace. */
  async addNode(netns: Netns, config: AgentOptions["config"], options: Partial<AgentOptions> = {}): Promise<LabNode> {
    return { netns, agent: await this.addAgent({ config, node: netns, ...options }) };
  }

  /** Adds the empty namespace that plays all pods of {@link call}. */
  async addSandbox(): Promise<void> {
    this.#sandbox = await this.addNetns("sandbox");
  }

  /** Throws unless {@link addSandbox} made it. */
  get sandbox(): Netns {
    return this.#sandbox ?? fail("The world has no sandbox");
  }

  /** The agent that was started first. */
  get agent(): Agent {
    return this.#agents[0] ?? fail("The world has no agent");
  }

  /** Writes the network's definition on all nodes. Name it as no other network of this machine. */
  async define(network: string, plugins: readonly object[], cniVersion = "1.0.0"): Promise<void> {
    this.#networks.add(network);
    const text = JSON.stringify({ cniVersion, name: network, plugins });
    for (const { cniConfDir } of this.#agents) await writeFile(join(cniConfDir, `${network}.conflist`), text);
  }

  /** A pod without a NIC; see {@link LabPod}. */
  async addPod(node: LabNode, name: string, options: Partial<PodOptions> = {}): Promise<LabPod> {
    const netns = await this.addNetns(name);
    // No other machine has its addresses: no second of waiting for that. Solicitations tell the node the pod's
    // link-local address, at some time.
    for (const key of ["accept_dad", "router_solicitations"]) writeSysctl(netns.path, `ipv6/conf/default/${key}`, "0");
    return new LabPod(node, netns, { name, ...options });
  }

  /**
   * From now on each container has NICs on a wire, and `delete` throws an observer's findings there. Its records are
   * the first agent's.
   */
  async observe(): Promise<void> {
    const name = `${this.#prefix}-wire-${process.pid}`;
    const records = agentRecords(() => this.agent.get("/v1/allocations"));
    this.#wire = await Wire.open(name, { name, ranges: [], records });
    await this.#wire.wrapper(WIRED_NODE);
  }

  /** `berth` of the first agent, called as a main plugin calls its IPAM plugin for a pod that the sandbox plays. */
  async call(command: Verb, containerId: string, options: CallOptions = {}): Promise<PluginOutcome> {
    const outcome = await this.#run(command, containerId, options);
    if (this.#wire === undefined || outcome.exitCode !== 0) return outcome;
    const { pod = "", ifName = "eth0" } = options;
    const uid = pod.split("/")[2] ?? containerId;
    const nic = { pod: { namespace: "shop", name: containerId, uid, node: WIRED_NODE }, containerId, ifName };
    if (command === "ADD") {
      await this.#wire.sandbox(nic);
      await this.#wire.plug(nic, addressesOf(outcome.stdout));
    }
    if (command === "DEL") await this.#wire.unplug(nic);
    return outcome;
  }

  #run(command: Verb, containerId: string, options: CallOptions): Promise<PluginOutcome> {
    const { pod, conf, ipam, ...call } = options;
    return runPlugin({
      plugin: "berth",
      command,
      ...(command === "GC" || command === "STATUS" ? {} : { containerId, netns: this.sandbox.path, ifName: "eth0" }),
      ...(pod === undefined ? {} : { args: podArgs(...pod.split("/")) }),
      stdin: { cniVersion: "1.0.0", name: "lab", type: "macvlan", ipam: { type: "berth", ...ipam }, ...conf },
      env: { ...this.agent.env, BERTH_CONNECT_WAIT: "5" },
      ...call,
    });
  }

  /** ADD that must succeed; its addresses without length. */
  async add(containerId: string, options: CallOptions = {}): Promise<string[]> {
    return addressesOf(requireSuccess(await this.call("ADD", containerId, options), `ADD of ${containerId}`));
  }

  /** DEL that must succeed, and says nothing. */
  async del(containerId: string, options: CallOptions = {}): Promise<void> {
    const outcome = await this.call("DEL", containerId, options);
    requireSuccess(outcome, `DEL of ${containerId}`);
    if (outcome.text !== "") throw new Error(`DEL of ${containerId} printed ${outcome.text}`);
  }

  /** A call that must be refused. */
  async refused(command: Verb, containerId: string, options: CallOptions = {}): Promise<Refusal> {
    return requireRefusal(await this.call(command, containerId, options), `${command} of ${containerId}`);
  }

  /** {@link usageOf} the first agent. */
  usage(): Promise<Record<string, string[]>> {
    return usageOf(this.agent);
  }

  async delete(): Promise<void> {
    try {
      await this.#wire?.close();
    } finally {
      for (const agent of this.#agents.splice(0)) await agent.delete();
      await this.#undo.disposeAsync();
    }
    for (const network of this.#networks) await forgetNetwork(network);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.delete();
  }
}

function fail(message: string): never {
  throw new Error(message);
}

export interface CallOptions extends Partial<PluginCall> {
  /** `shop/web-0` or `shop/web-0/uid`. */
  readonly pod?: string;
  readonly conf?: Record<string, unknown>;
  readonly ipam?: Record<string, unknown>;
}

export interface PodOptions {
  /** Undefined: the runtime says nothing about the pod. */
  readonly name: string | undefined;
  /** Two sandboxes of one pod have the same. */
  readonly uid?: string | undefined;
  /** CNI_PATH of its chains. */
  readonly cniPath?: readonly string[];
  /** Seconds for which a plugin waits for an agent that is not there. Default: 0.3. */
  readonly connectWait?: string;
  /** Arguments that the runtime hands to plugins by capability, such as `{ mac: "02:42:0a:00:00:07" }`. */
  readonly capabilityArgs?: object;
  /** A MAC address that the runtime passes in CNI_ARGS. */
  readonly mac?: string;
}

/** A call of one plugin for a pod: the differences from the usual. */
export interface PodCall extends Partial<PluginCall> {
  /** The plugin's own keys, and replacements of the network's. */
  readonly conf?: object | undefined;
  /** Default: the answer of the NIC's ADD. */
  readonly prevResult?: object | undefined;
}

export interface CoordinateOptions extends Partial<PluginCall> {
  readonly entry?: object;
}

type Verb = PluginCall["command"];

/** The part of a result that tests read. */
export interface CniAnswer {
  readonly ips: readonly { readonly address: string; readonly interface?: number }[];
  readonly interfaces: readonly { readonly name: string; readonly mac?: string; readonly sandbox?: string }[];
}

/** A pod, and the addresses of its NICs. */
export class LabPod {
  readonly node: LabNode;
  readonly netns: Netns;
  /** As cnitool makes it of the namespace's path. */
  readonly containerId: string;
  readonly args: string | undefined;
  readonly #env: Record<string, string>;
  readonly #capabilities: Pick<PodOptions, "capabilityArgs">;
  readonly #cniPath: Pick<PodOptions, "cniPath">;
  readonly #results = new Map<string, CniAnswer>();

  constructor(node: LabNode, netns: Netns, options: PodOptions) {
    const { name, uid, connectWait = "0.3", mac, capabilityArgs, cniPath } = options;
    this.#cniPath = cniPath === undefined ? {} : { cniPath };
    this.node = node;
    this.netns = netns;
    this.containerId = `cnitool-${createHash("sha512").update(netns.path).digest("hex").slice(0, 20)}`;
    const args = name === undefined ? undefined : podArgs("shop", name, uid);
    this.args = mac === undefined ? args : [args ?? "IgnoreUnknown=1", `MAC=${mac}`].join(";");
    this.#capabilities = capabilityArgs === undefined ? {} : { capabilityArgs };
    this.#env = { ...node.agent.env, BERTH_CONNECT_WAIT: connectWait };
  }

  /** The network's whole chain, through cnitool. */
  call(verb: CnitoolVerb, network: string, ifName = "eth0"): Promise<PluginOutcome> {
    const { agent, netns } = this.node;
    const args = this.args === undefined ? {} : { args: this.args };
    return cnitool(verb, network, this.netns.path, {
      confDir: agent.cniConfDir,
      env: this.#env,
      node: netns,
      ifName,
      ...args,
      ...this.#cniPath,
      ...this.#capabilities,
    });
  }

  /** ADD of the whole chain, which must succeed. */
  async attach(network: string, ifName = "eth0"): Promise<CniAnswer> {
    const answer: CniAnswer = await this.#require("add", network, ifName);
    this.#results.set(ifName, answer);
    return answer;
  }

  async check(network: string, ifName = "eth0"): Promise<void> {
    await this.#require("check", network, ifName);
  }

  async detach(network: string, ifName = "eth0"): Promise<void> {
    await this.#require("del", network, ifName);
    this.#results.delete(ifName);
  }

  /** A NIC that another plugin has made, with its result. */
  adopt(ifName: string, result: CniAnswer): void {
    this.#results.set(ifName, result);
  }

  resultOf(ifName = "eth0"): CniAnswer | undefined {
    return this.#results.get(ifName);
  }

  /** One plugin by itself. */
  run(plugin: string, command: Verb, { conf, ...call }: PodCall = {}): Promise<PluginOutcome> {
    const isOfNode = command === "GC" || command === "STATUS" || command === "VERSION";
    const { ifName = "eth0" } = call;
    const prevResult = "prevResult" in call ? call.prevResult : this.#results.get(ifName);
    const { containerId, netns, args } = this;
    const attachment = { containerId, netns: netns.path, ifName, ...(args === undefined ? {} : { args }) };
    const network = { cniVersion: "1.1.0", name: "lab", type: plugin };
    const stdin = { ...network, ...(isOfNode ? {} : { prevResult }), ...conf };
    const defaults = { plugin, command, stdin, env: this.#env, node: this.node.netns };
    return runPlugin({ ...defaults, ...(isOfNode ? {} : attachment), ...call });
  }

  /** The coordinator of that network alone; `entry` is its part of the definition. */
  coordinate(command: Verb, network: string, { entry, ...call }: CoordinateOptions = {}): Promise<PluginOutcome> {
    return this.run("coordinator", command, { conf: { cniVersion: "1.0.0", name: network, ...entry }, ...call });
  }

  /** The coordinator alone, which must succeed. */
  async succeed(command: Verb, call: PodCall = {}): Promise<PluginOutcome> {
    const outcome = await this.run("coordinator", command, call);
    requireSuccess(outcome, command);
    return outcome;
  }

  /** The coordinator alone, which must refuse. */
  async refused(command: Verb, call: PodCall = {}): Promise<Refusal> {
    return requireRefusal(await this.run("coordinator", command, call), command, "1.1.0");
  }

  /** Returns the address that the NIC's ADD has answered. */
  address(family: Family, ifName = "eth0"): string {
    const addresses = (this.#results.get(ifName)?.ips ?? []).map(({ address }) => address.split("/")[0] ?? "");
    const found = addresses.find((address) => address.includes(":") === (family === 6));
    if (found === undefined)
      throw new Error(`${this.netns.name} has no IPv${family} address on ${ifName}: ${addresses.join(", ")}`);
    return found;
  }

  /** Returns the MAC of the NIC, as the kernel has it. */
  async mac(ifName = "eth0"): Promise<string> {
    const [link] = await this.netns.ipJson<{ address: string }>(`link show dev ${ifName}`);
    return link?.address ?? "";
  }

  async #require(verb: CnitoolVerb, network: string, ifName: string): Promise<CniAnswer> {
    return requireSuccess(await this.call(verb, network, ifName), `${verb} of ${ifName} on ${this.netns.name}`);
  }
}

/** Addresses in use by state: `{ Bound: ["10.0.0.1"] }`. */
export async function usageOf(agent: Agent): Promise<Record<string, string[]>> {
  const usage: Record<string, string[]> = {};
  for (const { address, state } of await agent.get("/v1/allocations"))
    usage[state] = [...(usage[state] ?? []), address];
  return usage;
}

/** Addresses of a result, without length. */
export function addressesOf(result: CniAnswer): string[] {
  return result.ips.map(({ address }) => address.replace(/\/.*/, ""));
}

/** The one node of the containers on a wire. */
const WIRED_NODE = "node";

export interface WithWorldOptions extends Partial<AgentOptions> {
  /** Calls {@link NetnsWorld.observe}. Default: false. */
  readonly isObserved?: boolean;
}

let worlds = 0;

/** An agent of these manifests, which has no node of its own, and a sandbox. */
export function openAlone(
  config: AgentOptions["config"],
  { isObserved = false, ...options }: WithWorldOptions = {},
): Promise<NetnsWorld> {
  return NetnsWorld.build(`bt${++worlds}`, async (world) => {
    await world.addSandbox();
    await world.addAgent({ config, ...options });
    if (isObserved) await world.observe();
    return world;
  });
}

/** Runs `test` with the world of {@link openAlone}. */
export async function withWorld(
  config: AgentOptions["config"],
  test: (world: NetnsWorld) => Promise<void>,
  options: WithWorldOptions = {},
): Promise<void> {
  await using world = await openAlone(config, options);
  await test(world);
}

export interface DirectCall {
  /** The decoded body, whatever the status. Rejects when the connection breaks. */
  readonly answer: Promise<{ code?: number; msg?: string; ips?: { address: string }[] }>;
  hangUp(): void;
}

/** ADD of `berth` straight to the agent's socket, without a plugin's process. */
export function addDirectly(
  agent: Agent,
  { name, path }: Netns,
  conf: object,
  args = podArgs("shop", name),
): DirectCall {
  const body = JSON.stringify({ cniVersion: "1.0.0", ...conf });
  const headers = {
    "cni-command": "ADD",
    "cni-containerid": `c-${name}`,
    "cni-netns": path,
    "cni-ifname": "eth0",
    "cni-path": "/bin",
    "cni-args": args,
  };
  const { promise: answer, resolve, reject } = Promise.withResolvers<Awaited<DirectCall["answer"]>>();
  const options = { socketPath: agent.socket, path: "/v1/cni/berth", method: "POST", headers, agent: false };
  const call = request(options, (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("end", () => resolve(JSON.parse(Buffer.concat(chunks).toString())));
  });
  call.on("error", reject);
  answer.catch(() => {}); // The caller may have hung up.
  call.end(body);
  return { answer, hangUp: () => call.destroy() };
}
