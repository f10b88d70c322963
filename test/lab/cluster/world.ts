/**
 * A cluster on one machine: a control plane with Berth's kinds, accounts and policies, and as much of Berth as a test
 * opens: built agents behind proxies, agents and registries in this process, parts of the controller, clients of any
 * account. There is no scheduler, no kubelet and no controller manager: the test is all three.
 *
 *   const world = await startWorld({ nodes: ["n1", "n2"], pools: [{ name: "blue", subnet: "10.6.0.0/24" }] });
 *   const pod = await world.createPod({ name: "web-0", node: "n1" });
 *   await world.node("n1").runtime.attach(pod);      // the built plugin and agent
 *   const agent = await world.openAgent("n3");       // an agent in this process
 *   const controller = await world.lead({ usage: startUsage });
 *   await world.untilClean();                        // throws the sentences of the audit if it does not become clean
 *   await world.stop();                              // and all that was opened
 */
import type { StartController } from "../../../host/controller/types.ts";
import { decodeIpAllocation, type IpAllocation, type IpAllocationSpec } from "../../../host/resources/ip-allocation.ts";
import { EPOCH_ANNOTATION } from "../../../host/resources/registry-epoch.ts";
import { type Agent, type AgentOptions, startAgent } from "../agent.ts";
import type { ControlPlane } from "../control-plane.ts";
import { STORED_AS_JSON } from "../history/stored.ts";
import type { KubeClient, KubeObject } from "../kube-client.ts";
import { createNetns, type Netns } from "../netns.ts";
import { etcdRecords } from "../observer/records.ts";
import { until } from "../waiting.ts";
import { AgentNode, type AgentNodeOptions } from "./agent-node.ts";
import { type ApiProxy, type ProxyOptions, startApiProxy } from "./api-proxy.ts";
import { audit } from "./audit.ts";
import { type LabController, type LabControllerOptions, startParts } from "./controller.ts";
import { type ControllerProcess, QUICK_LEASE, startControllerProcess } from "./controller-process.ts";
import { writeControllerKubeconfig } from "./in-process.ts";
import { Ledger } from "./ledger.ts";
import * as objects from "./objects.ts";
import { startPlane } from "./plane.ts";
import { RegistryNode, type RegistryNodeOptions } from "./registry-node.ts";
import { forceDelete, forceDeleteAll, requestNodeToken, type TokenOptions } from "./rights.ts";
import { CONFLIST, NodeRuntime } from "./runtime.ts";
import { Wire } from "./wire.ts";
import type { Witness } from "./witness.ts";

const CLEAN_MS = 10_000;

export interface WorldOptions {
  /** Nodes with a running built agent. */
  readonly nodes?: readonly string[];
  readonly pools?: readonly objects.PoolSpec[];
  /** Settings of vendor-conf; added to IPv4 only, a cooldown of 1 s, and quick sweeps. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Default: `shop`. */
  readonly namespaces?: readonly string[];
  /** Starts the control plane, with kinds, accounts and policies. Default: one of its own. */
  readonly startPlane?: () => Promise<ControlPlane>;
  /** Default: 1. */
  readonly etcdMembers?: number;
  /** Seed of the proxies' dice. Default: 1. */
  readonly seed?: number;
  readonly agent?: Partial<AgentOptions>;
  /** Applies to all nodes; see {@link NodeOptions}. */
  readonly isDirect?: boolean;
  /** Whether the kind NetworkAttachmentDefinition is installed from the start. Default: true. */
  readonly hasDefinitions?: boolean;
  /**
   * Pods of built agents have NICs on a wire, and an observer compares those with the records; `stop` throws its
   * findings. Default: false.
   */
  readonly isObserved?: boolean;
  /** Time for which a NIC may have an address that is not recorded for it: see observer.ts. */
  readonly graceMs?: number;
}

type WireTimes = Pick<WorldOptions, "graceMs">;

/** Options that a world keeps. */
type WorldSettings = Pick<WorldOptions, "seed" | "agent" | "isDirect">;

/** A node with a built agent. */
export interface LabNode {
  readonly name: string;
  readonly proxy: ApiProxy;
  readonly agent: Agent;
  readonly runtime: NodeRuntime;
  /** The empty namespace that plays all pods: the agent sees no other one. */
  readonly netnsPath: string;
}

export interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly proxy?: ProxyOptions;
  readonly agent?: Partial<AgentOptions>;
  /**
   * The agent calls the API server itself, so that nothing in this process is on its way: for measurements. Its proxy
   * is idle.
   */
  readonly isDirect?: boolean;
}

const DEFAULT_SETTINGS = {
  enableIPv6: false,
  allocationCooldown: "1s",
  garbageCollection: { interval: "2s", grace: "2s" },
};

let worlds = 0;

/** A control plane with a cluster's objects before its nodes join, and the nodes of the options. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const world = await openWorld(options.startPlane ?? (() => startReadPlane(options.etcdMembers)), options);
  try {
    const { settings, namespaces = ["shop"], hasDefinitions = true, pools = [] } = options;
    if (hasDefinitions) await world.installDefinitions();
    for (const name of [objects.SYSTEM, ...namespaces]) await world.namespace(name);
    await world.settings({ ...DEFAULT_SETTINGS, ...settings });
    if (options.isObserved) await world.openWire(pools, options);
    for (const pool of pools) await world.client.create(objects.POOLS, objects.poolObject(pool));
    await Promise.all((options.nodes ?? []).map((name) => world.addNode(name)));
    return world;
  } catch (error) {
    await world.stop();
    throw error;
  }
}

/** Its history can be followed. */
const startReadPlane = (members = 1): Promise<ControlPlane> => startPlane({ serverArgs: [STORED_AS_JSON], members });

/** A control plane with kinds, accounts and policies, and nothing else. */
export async function openWorld(start: () => Promise<ControlPlane> = startReadPlane, options: WorldSettings = {}) {
  return new World(await start(), options);
}

export class World {
  readonly plane: ControlPlane;
  readonly ledger = new Ledger();
  readonly #options: WorldSettings;
  readonly #stack = new AsyncDisposableStack();
  readonly #nodes = new Map<string, LabNode>();
  readonly #agents = new Map<string, AgentNode>();
  #registries: RegistryNode[] = [];
  #registryCount = 0;
  readonly #controllers: LabController[] = [];
  readonly #processes: ControllerProcess[] = [];
  #netns: Promise<Netns> | undefined;
  #wire: Wire | undefined;
  #controllerKubeconfig: Promise<string> | undefined;

  constructor(plane: ControlPlane, options: WorldSettings) {
    this.plane = plane;
    this.#options = options;
    this.defer(() => plane.stop());
    this.defer(() => this.depose());
    this.defer(() => this.killControllers());
  }

  /** Is told of all ADDs and DELs. */
  get witness(): Witness | undefined {
    return this.ledger.witness;
  }
  set witness(witness: Witness) {
    this.ledger.witness = witness;
    for (const agent of this.#agents.values()) agent.witness = witness;
  }

  get client(): KubeClient {
    return this.plane.client;
  }

  /** Called by {@link stop}, the last one first. */
  defer(close: () => unknown): void {
    this.#stack.defer(async () => void (await close()));
  }

  stop(): Promise<void> {
    return this.#stack.disposeAsync();
  }

  /** Before the first node. */
  async openWire(pools: readonly objects.PoolSpec[], { graceMs }: WireTimes): Promise<void> {
    const name = `bw-${process.pid}-wire${++worlds}`;
    const ranges = pools.flatMap(({ subnet, ips = [subnet] }) => ips);
    const records = etcdRecords(this.plane.etcdUrl);
    const times = graceMs === undefined ? {} : { graceMs };
    const wire = await Wire.open(name, { name, ranges, records, ...times });
    this.#wire = wire;
    this.defer(() => wire.close());
  }

  /** Throws unless the world is observed. */
  get wire(): Wire {
    return this.#wire ?? fail("The world is not observed");
  }

  /** The Node object, a proxy, a running built agent. */
  async addNode(name: string, options: NodeOptions = {}): Promise<LabNode> {
    const { client, ledger } = this;
    await client.create(objects.NODES, objects.nodeObject(name, options.labels));
    const seed = (this.#options.seed ?? 1) + this.#nodes.size;
    const token = await requestNodeToken(client, name);
    const proxy = await startApiProxy(this.plane, { token, seed, node: name, ...options.proxy });
    this.defer(() => proxy.stop());
    const netnsPath = await this.#podsNetns();
    const agentOptions = { ...this.#options.agent, ...options.agent };
    const args = ["--node", name, ...(agentOptions.args ?? [])];
    const cniConf = { "10-underlay.conflist": CONFLIST };
    const view = (await this.#wire?.wrapper(name)) ?? onlyNetns(netnsPath);
    const wrapper = [...view, ...(agentOptions.wrapper ?? [])];
    const { isDirect = this.#options.isDirect ?? false } = options;
    const direct = () => this.plane.writeKubeconfig(`${name}.kubeconfig`, { token });
    const kubeconfig = isDirect ? await direct() : proxy.kubeconfig;
    const agent = await startAgent({ cniConf, ...agentOptions, kubeconfig, args, wrapper });
    this.defer(() => agent.delete());
    const runtime = new NodeRuntime({ agent, ledger, netnsPath, wire: this.#wire });
    const node = { name, proxy, agent, runtime, netnsPath };
    this.#nodes.set(name, node);
    return node;
  }

  async #podsNetns(): Promise<string> {
    this.#netns ??= createNetns(`bw-${process.pid}-${++worlds}`).then((netns) => {
      this.defer(() => netns.delete());
      return netns;
    });
    return (await this.#netns).path;
  }

  /** Throws unless {@link addNode} made it. */
  node(name: string): LabNode {
    return this.#nodes.get(name) ?? fail(`There is no node "${name}"`);
  }
  nodes(): readonly LabNode[] {
    return [...this.#nodes.values()];
  }

  /** The Node object, and its agent in this process, which marks the Node within the limit. */
  async openAgent(name: string, options: AgentNodeOptions = {}, limitMs?: number): Promise<AgentNode> {
    await this.client.apply(`${objects.NODES}/${name}`, objects.nodeObject(name));
    const agent = await AgentNode.open(this.plane, name, options);
    agent.witness = this.ledger.witness;
    this.defer(() => agent.close());
    this.#agents.set(name, agent);
    const isMarked = async (): Promise<boolean> => {
      const { metadata } = await this.client.get(`${objects.NODES}/${name}`);
      return EPOCH_ANNOTATION in (metadata.annotations ?? {});
    };
    await until(`the agent of ${name} has marked its Node`, isMarked, limitMs);
    return agent;
  }

  /** Throws unless {@link openAgent} opened it. */
  agent(name: string): AgentNode {
    return this.#agents.get(name) ?? fail(`There is no agent of node "${name}"`);
  }

  agents(): readonly AgentNode[] {
    return [...this.#agents.values()];
  }

  /** Opens the registry of a node n1, n2, …; closed by {@link clear}. */
  async openRegistry(options: RegistryNodeOptions = {}): Promise<RegistryNode> {
    const node = await RegistryNode.open(this.plane, `n${++this.#registryCount}`, options);
    this.#registries.push(node);
    return node;
  }

  controllerKubeconfig(): Promise<string> {
    this.#controllerKubeconfig ??= writeControllerKubeconfig(this.plane);
    return this.#controllerKubeconfig;
  }

  /** Parts of the controller with the controller's account, as the one that leads. */
  async lead(parts: Readonly<Record<string, StartController>>, options?: LabControllerOptions): Promise<LabController> {
    const controller = await startParts(await this.controllerKubeconfig(), parts, options);
    this.#controllers.unshift(controller);
    return controller;
  }

  /** Ends all that lead. */
  async depose(): Promise<void> {
    for (const controller of this.#controllers.splice(0)) await controller.close();
  }

  /** The built controller with a quick lease, as a process that {@link stop} kills at the latest. */
  async startController(name: string, ...args: readonly string[]): Promise<ControllerProcess> {
    const kubeconfig = await this.controllerKubeconfig();
    const controller = await startControllerProcess({ kubeconfig, name, args: [...QUICK_LEASE, ...args] });
    this.#processes.push(controller);
    return controller;
  }

  /** Kills the process that leads, and starts another one. */
  async replaceLeader(name: string): Promise<void> {
    const isLeading = await Promise.all(this.#processes.map(async (each) => (await each.status()).isLeading));
    const [leader] = this.#processes.splice(Math.max(0, isLeading.indexOf(true)), 1);
    await leader?.kill();
    await this.startController(name);
  }

  async killControllers(): Promise<void> {
    await Promise.all(this.#processes.splice(0).map((each) => each.kill()));
  }

  /** A client with the token of an account on a node. */
  async openClient(node: string, options: TokenOptions = {}): Promise<KubeClient> {
    const client = await this.plane.openClient({ token: await requestNodeToken(this.client, node, options) });
    this.defer(() => client.close());
    return client;
  }

  /** An object of Berth's kinds; returns its UID. */
  async create(kind: string, name: string, spec: object, metadata: object = {}): Promise<string> {
    const object = objects.berthObject(kind, name, spec, metadata);
    return (await this.client.create(`${objects.BERTH}/${kind.toLowerCase()}s`, object)).metadata.uid;
  }

  pool(name: string, spec: object, metadata: object = {}): Promise<string> {
    return this.create("IPPool", name, spec, metadata);
  }

  subnet(name: string, spec: object): Promise<string> {
    return this.create("Subnet", name, spec);
  }

  /** Undefined when there is none. */
  read(plural: string, name: string): Promise<KubeObject> {
    return this.client.get(`${objects.BERTH}/${plural}/${name}`).catch(() => undefined);
  }

  async namespace(name: string, metadata: object = {}): Promise<void> {
    await this.client.apply(`${objects.NAMESPACES}/${name}`, objects.namespaceObject(name, metadata));
  }

  /** All of vendor-conf. */
  async settings(settings: Readonly<Record<string, unknown>>): Promise<void> {
    await this.client.apply(objects.SETTINGS, objects.settingsObject(settings));
  }

  /** The kind NetworkAttachmentDefinition. */
  async installDefinitions(): Promise<void> {
    await this.client.apply(`${objects.CRDS}/${objects.DEFINITIONS_CRD}`, objects.definitionsCrd());
  }

  /** As its kubelet, or the cluster's controllers, report it. */
  async setNode(name: string, ready: "True" | "False" | "Unknown", taints: readonly object[] = []): Promise<void> {
    const path = `${objects.NODES}/${name}`;
    await this.client.apply(path, objects.nodeObject(name));
    await this.client.patch(path, { spec: { taints } });
    await this.client.patch(`${path}/status`, { status: { conditions: [{ type: "Ready", status: ready }] } });
  }

  createPod(spec: objects.PodSpec): Promise<objects.LabPod> {
    return objects.createPod(this.client, spec);
  }

  /** Made without a node, and bound by a Binding. */
  bindPod(spec: objects.PodSpec): Promise<objects.LabPod> {
    return objects.bindPod(this.client, spec);
  }

  async finishPod(pod: objects.LabPod): Promise<void> {
    await objects.finishPod(this.client, pod);
  }

  /** Only the object; the NICs stay until the runtime detaches them. */
  async deletePod(pod: objects.LabPod): Promise<void> {
    await objects.deletePod(this.client, pod);
  }

  /** As a kubelet ends a pod of an agent in this process: DEL, then its object goes. */
  async endPod(pod: objects.LabPod): Promise<void> {
    await this.agent(pod.node).del(pod);
    await this.deletePod(pod);
  }

  /** As the kubelet reports it, with the addresses that the runtime knows. */
  async setRunning(pod: objects.LabPod): Promise<void> {
    const ips = this.ledger.live().flatMap((each) => (each.pod.uid === pod.uid ? each.addresses : []));
    await objects.setRunning(this.client, pod, ips);
  }

  /** An object as an agent has made it. Default: Bound to a pod of n1, of pool blue. */
  async allocate(address: string, changes: Partial<IpAllocationSpec> = {}): Promise<void> {
    const object = objects.allocationObject(objects.allocationSpec(address, changes));
    await this.client.create(objects.ALLOCATIONS, object);
  }

  release(address: string): Promise<void> {
    return forceDelete(this.client, address);
  }

  /** All objects IPAllocation. */
  async allocations(): Promise<readonly KubeObject[]> {
    return (await this.client.get(objects.ALLOCATIONS)).items;
  }

  /** One of them; undefined when there is none. */
  async allocation(name: string): Promise<IpAllocation | undefined> {
    const found = (await this.allocations()).find(({ metadata }) => metadata.name === name);
    if (found === undefined) return undefined;
    const kind = { apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" };
    return decodeIpAllocation({ ...kind, ...found }, "the API server");
  }

  /** The specification of an address's object, in the words of the API. */
  async spec(address: string): Promise<KubeObject> {
    return (await this.allocations()).find(({ metadata }) => metadata.name === address)?.spec;
  }

  /** `Quarantined n1`; `free` */
  async stateOf(address: string): Promise<string> {
    const spec = await this.spec(address);
    return spec === undefined ? "free" : `${spec.state} ${spec.node}`;
  }

  /** `10.6.0.7 Bound n1 a@n1 b@n2`, all of them, sorted. */
  async states(): Promise<string[]> {
    const lines = (await this.allocations()).map(({ spec }) => {
      const holders = (spec.holders ?? []).map(({ pod, node }: KubeObject) => `${pod}@${node}`).sort();
      return [spec.address, spec.state, spec.node, ...holders].join(" ");
    });
    return lines.sort();
  }

  /** Sentences of audit.ts. */
  async audit(): Promise<string[]> {
    const { ledger } = this;
    const allocations = await this.allocations();
    const pods = (await this.client.get("/api/v1/pods")).items;
    const cooling = new Set((await Promise.all(this.nodes().map(findCooling))).flat());
    return audit({ allocations, pods, live: ledger.live(), breaches: ledger.breaches, cooling });
  }

  /** Waits until no address is in use, after the end of all pods; returns the milliseconds. Throws the rest. */
  untilEmpty(limitMs: number): Promise<number> {
    return untilNone(limitMs, async () => {
      const left = (await this.allocations()).map(({ spec }) => `${spec.address} is ${spec.state}`);
      return left.length === 0 ? this.audit() : left;
    });
  }

  /** Waits until the audit is clean; returns the milliseconds. Throws its sentences. */
  untilClean(limitMs = CLEAN_MS): Promise<number> {
    return untilNone(limitMs, () => this.audit());
  }

  /**
   * Waits for {@link states} to be these. Before each check agents in this process do their due work, and so does
   * `sweep`, the controller's.
   */
  async untilStates(
    wanted: readonly string[],
    sweep: () => Promise<void> = async () => {},
    limitMs?: number,
  ): Promise<void> {
    let last: readonly string[] = [];
    const isSo = async (): Promise<boolean> => {
      for (const agent of this.#agents.values()) if (agent.isRunning) await agent.registry.expire();
      await sweep();
      last = await this.states();
      return last.join() === wanted.toSorted().join();
    };
    await until(() => `${wanted.join(", ") || "nothing"}; found ${last.join(", ") || "nothing"}`, isSo, limitMs);
  }

  /** No pod, no allocation and no registry is left; agents in this process stay. */
  async clear(): Promise<void> {
    for (const node of this.#registries.splice(0)) await node.close();
    for (const { metadata, spec } of (await this.client.get("/api/v1/pods")).items) {
      const { namespace, name, uid } = metadata;
      if (namespace === objects.SYSTEM) continue;
      const agent = this.#agents.get(spec.nodeName);
      if (agent?.isRunning) await agent.del({ uid });
      await this.deletePod({ namespace, name, uid, node: spec.nodeName });
    }
    for (const agent of this.#agents.values()) if (agent.isRunning) await agent.registry.objects.idle();
    await forceDeleteAll(this.client);
  }
}

/** By the journal of a node whose agent answers. */
async function findCooling({ agent }: LabNode): Promise<string[]> {
  const rows: KubeObject[] = await agent.get("/v1/allocations").catch(() => []);
  return rows.filter(({ state }) => state === "Cooling").map(({ address }) => address);
}

async function untilNone(limitMs: number, ask: () => Promise<readonly string[]>): Promise<number> {
  let sentences: readonly string[] = [];
  const isNone = async (): Promise<boolean> => {
    sentences = await ask();
    return sentences.length === 0;
  };
  return until(() => `nothing is wrong any more\n${sentences.join("\n")}`, isNone, limitMs);
}

/**
 * Enters a mount namespace in which no other network namespace has a path, so that the agent does not find addresses of
 * this machine's other programs.
 */
const HIDE_OTHERS = `
  set -e
  netns=$1
  shift
  exec 9<"$netns"
  mount -t tmpfs none "$(dirname "$netns")"
  touch "$netns"
  mount --no-canonicalize --bind /proc/self/fd/9 "$netns"
  exec 9<&-
  exec "$@"`;

function onlyNetns(path: string): readonly string[] {
  return ["unshare", "--mount", "sh", "-c", HIDE_OTHERS, "sh", path];
}

function fail(message: string): never {
  throw new Error(message);
}
