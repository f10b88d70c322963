/**
 * A cluster on one machine: a control plane with Berth's kinds, simulated nodes, each with its own proxy to the API server, the built agent and
 * a runtime that calls the built plugin. There is no scheduler, no kubelet and no controller: the test is all three.
 *
 *   const world = await startWorld({ nodes: ["n1", "n2"], pools: [{ name: "blue", subnet: "10.6.0.0/24" }] });
 *   const pod = await world.createPod({ name: "web-0", node: "n1" });
 *   await world.node("n1").runtime.attach(pod);
 *   await world.settle();                            // throws the sentences of the audit if it does not become clean
 *   await world.stop();
 *
 * Agents have tokens that are bound to a pod of their node, and the rights of deploy/rbac.yaml and deploy/policies.yaml.
 */
import { type Agent, type AgentOptions, startAgent } from "../agent.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { KubeClient, KubeObject } from "../kube-client.ts";
import { createNetns } from "../netns.ts";
import { type ApiProxy, type ProxyOptions, startApiProxy } from "./api-proxy.ts";
import { type AuditFacts, audit } from "./audit.ts";
import { Ledger } from "./ledger.ts";
import { startPlane } from "./plane.ts";
import * as objects from "./pods.ts";
import { requestNodeToken, SYSTEM } from "./rights.ts";
import { CONFLIST, NodeRuntime } from "./runtime.ts";

const SETTLE_MS = 10_000;
const PAUSE_MS = 50;

export interface WorldOptions {
  /** Nodes with a running agent. */
  readonly nodes?: readonly string[];
  readonly pools?: readonly objects.PoolSpec[];
  /** Of vendor-conf; added to IPv4 only, a cooldown of 1 s, and quick sweeps. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Default: `shop`. */
  readonly namespaces?: readonly string[];
  /** Starts the control plane, with kinds, accounts and policies. Default: one of its own. */
  readonly startPlane?: () => Promise<ControlPlane>;
  /** Of the proxies' dice. Default: 1. */
  readonly seed?: number;
  readonly agent?: Partial<AgentOptions>;
  /** Whether the kind NetworkAttachmentDefinition is installed from the start. Default: true. */
  readonly hasDefinitions?: boolean;
}

export interface LabNode {
  readonly name: string;
  readonly proxy: ApiProxy;
  readonly agent: Agent;
  readonly runtime: NodeRuntime;
}

export interface World {
  readonly plane: ControlPlane;
  readonly client: KubeClient;
  readonly ledger: Ledger;
  /** Throws unless {@link World.addNode} made it. */
  node(name: string): LabNode;
  nodes(): readonly LabNode[];
  /** The Node object, a proxy, a running agent. */
  addNode(name: string, options?: NodeOptions): Promise<LabNode>;
  pool(spec: objects.PoolSpec): Promise<KubeObject>;
  createPod(spec: objects.PodSpec): Promise<objects.LabPod>;
  finishPod(pod: objects.LabPod): Promise<void>;
  /** Only the object; the NICs stay until the runtime detaches them. */
  deletePod(pod: objects.LabPod): Promise<void>;
  /** As the kubelet reports it, with the addresses that the runtime knows. */
  setRunning(pod: objects.LabPod): Promise<void>;
  /** All objects IPAllocation. */
  allocations(): Promise<readonly KubeObject[]>;
  /** See audit.ts. */
  audit(): Promise<string[]>;
  /** Waits until no address is in use, when all pods have ended. Throws what is left. */
  drain(limitMs: number): Promise<number>;
  /** Waits until the audit is clean, and gives how long that took. Throws its sentences after `limitMs` (default: 10,000). */
  settle(limitMs?: number): Promise<number>;
  stop(): Promise<void>;
}

export interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly proxy?: ProxyOptions;
  readonly agent?: Partial<AgentOptions>;
}

const SETTINGS = { enableIPv6: false, allocationCooldown: "1s", garbageCollection: { interval: "2s", grace: "2s" } };

let worlds = 0;

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const closers: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const plane = await (options.startPlane ?? startPlane)();
    closers.push(() => plane.stop());
    const pods = await createNetns(`bw-${process.pid}-${++worlds}`);
    closers.push(() => pods.delete());
    await furnish(plane.client, options);
    const world = worldOf(plane, { options, netnsPath: pods.path, closers, stop });
    for (const pool of options.pools ?? []) await world.pool(pool);
    await Promise.all((options.nodes ?? []).map((name) => world.addNode(name)));
    return world;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What a cluster has before its nodes come. */
async function furnish(client: KubeClient, options: WorldOptions): Promise<void> {
  const { settings, namespaces = ["shop"], hasDefinitions = true } = options;
  if (hasDefinitions) await installDefinitions(client);
  for (const name of [SYSTEM, ...namespaces])
    await client.apply(`${objects.NAMESPACES}/${name}`, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const map = objects.settingsObject({ ...SETTINGS, ...settings });
  await client.apply(`${objects.NAMESPACES}/${SYSTEM}/configmaps/vendor-conf`, map);
}

/** The kind NetworkAttachmentDefinition. */
export async function installDefinitions(client: KubeClient): Promise<void> {
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${objects.DEFINITIONS_CRD}`;
  await client.apply(path, objects.definitionsCrd());
}

interface Surroundings {
  readonly options: WorldOptions;
  readonly netnsPath: string;
  readonly closers: (() => Promise<void>)[];
  readonly stop: () => Promise<void>;
}

function worldOf(plane: ControlPlane, { options, netnsPath, closers, stop }: Surroundings): World {
  const { client } = plane;
  const ledger = new Ledger();
  const nodes = new Map<string, LabNode>();
  const facts = async (): Promise<AuditFacts> => {
    const allocations = (await client.get(objects.ALLOCATIONS)).items;
    const pods = (await client.get("/api/v1/pods")).items;
    const cooling = new Set((await Promise.all([...nodes.values()].map(findCooling))).flat());
    return { allocations, pods, live: ledger.live(), breaches: ledger.breaches, cooling };
  };
  const world: World = {
    plane,
    client,
    ledger,
    node: (name) => nodes.get(name) ?? fail(`There is no node "${name}"`),
    nodes: () => [...nodes.values()],
    addNode: async (name, { labels, proxy: proxyOptions, agent: agentOptions } = {}) => {
      await client.create(objects.NODES, objects.nodeObject(name, labels));
      const seed = (options.seed ?? 1) + nodes.size;
      const token = await requestNodeToken(client, name);
      const proxy = await startApiProxy(plane, { token, seed, ...proxyOptions });
      closers.push(() => proxy.stop());
      const agent = await startNodeAgent(name, proxy, { ...options.agent, ...agentOptions });
      closers.push(() => agent.delete());
      const node = { name, proxy, agent, runtime: new NodeRuntime({ agent: () => agent, ledger, netnsPath }) };
      nodes.set(name, node);
      return node;
    },
    pool: (spec) => client.create(objects.POOLS, objects.poolObject(spec)),
    createPod: (spec) => objects.createPod(client, spec),
    finishPod: async (pod) => void (await objects.finishPod(client, pod)),
    deletePod: async (pod) => void (await objects.deletePod(client, pod)),
    setRunning: async (pod) => {
      const ips = ledger.live().flatMap((each) => (each.pod.uid === pod.uid ? each.addresses : []));
      await objects.setRunning(client, pod, ips);
    },
    allocations: async () => (await client.get(objects.ALLOCATIONS)).items,
    audit: async () => audit(await facts()),
    drain: (limitMs) =>
      untilNone(limitMs, async () => {
        const objects = (await world.allocations()).map(({ spec }) => `${spec.address} is ${spec.state}`);
        return objects.length === 0 ? world.audit() : objects;
      }),
    settle: (limitMs = SETTLE_MS) => untilNone(limitMs, () => world.audit()),
    stop,
  };
  return world;
}

/** By the journal of a node whose agent answers. */
async function findCooling({ agent }: LabNode): Promise<string[]> {
  const rows: KubeObject[] = await agent.get("/v1/allocations").catch(() => []);
  return rows.filter(({ state }) => state === "Cooling").map(({ address }) => address);
}

function startNodeAgent(name: string, proxy: ApiProxy, options: Partial<AgentOptions>): Promise<Agent> {
  const args = ["--node", name, ...(options.args ?? [])];
  return startAgent({ cniConf: { "10-underlay.conflist": CONFLIST }, ...options, kubeconfig: proxy.kubeconfig, args });
}

/** Asks until there is no sentence left, and gives how long that took. */
async function untilNone(limitMs: number, ask: () => Promise<readonly string[]>): Promise<number> {
  const start = performance.now();
  for (;;) {
    const sentences = await ask();
    const tookMs = performance.now() - start;
    if (sentences.length === 0) return tookMs;
    if (tookMs > limitMs) fail(`Still wrong after ${limitMs} ms:\n${sentences.join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function fail(message: string): never {
  throw new Error(message);
}
