/**
 * Registries of nodes in this process, on a real API server and with the rights of their agents: alone ({@link
 * RegistryNode}), and with all that keeps one in agreement with objects and pods ({@link ReconciledNode}). Their
 * clocks are the test's to advance.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPod } from "../../../host/agent/cluster/identity.ts";
import { Collector } from "../../../host/agent/gc/collector.ts";
import { LostAddresses } from "../../../host/agent/gc/lost-addresses.ts";
import { OwnAllocations } from "../../../host/agent/gc/own-allocations.ts";
import { type Events, openEvents } from "../../../host/kubernetes/events.ts";
import { Reflector } from "../../../host/kubernetes/reflector.ts";
import { createFaultCounter } from "../../../host/lib/fault.ts";
import { type Log, openLog } from "../../../host/lib/log.ts";
import { formatIp, parseIp } from "../../../host/net/ip.ts";
import type {
  KubernetesRegistry,
  KubernetesRegistryOptions,
} from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import { openKubernetesRegistry } from "../../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Allocation, Claim, ClaimOutcome } from "../../../host/registry/registry.ts";
import { decodeNode, type Node } from "../../../host/resources/node.ts";
import { decodePod, type Pod } from "../../../host/resources/pod.ts";
import { NO_AUDIT } from "../../world/no-audit.ts";
import type { ControlPlane } from "../control-plane.ts";
import { connectAgentClient } from "./in-process.ts";
import type { LabPod } from "./objects.ts";
import { WatchedApi } from "./watched-api.ts";

/** How long a released address rests in these registries. */
export const COOLDOWN_MS = 30_000;
/** How long a {@link ReconciledNode} observes before it collects. */
export const GRACE_MS = 60_000;
const COOLDOWNS = { defaultMs: COOLDOWN_MS, byPool: new Map<string, number>() };
const HOUR_MS = 3_600_000;
const SYNCED_MS = 30_000;

/** A node's journal, its way to the API server, and the registry on both, which may be opened again. */
abstract class JournalNode {
  readonly name: string;
  readonly api: WatchedApi;
  #directory = mkdtempSync(join(tmpdir(), "berth-node-"));

  constructor(name: string, api: WatchedApi) {
    this.name = name;
    this.api = api;
  }

  abstract readonly nowMs: () => number;
  abstract readonly registry: KubernetesRegistry;
  abstract stop(): Promise<void>;

  protected openRegistry(
    options: Omit<Partial<KubernetesRegistryOptions>, "poolSize"> &
      Pick<KubernetesRegistryOptions, "onLost" | "isLivePod" | "isPodGone" | "log"> & { readonly poolSize: number },
  ): Promise<KubernetesRegistry> {
    const { api, name: node, nowMs } = this;
    return openKubernetesRegistry({
      ...{ api, node, nowMs, directory: this.#directory, bootId: "boot-1", lockWaitMs: 5_000 },
      ...{ random: () => 0.5, faultCounter: createFaultCounter(), cooldowns: COOLDOWNS, onFreed: () => {} },
      onDeath: (error) => {
        throw error;
      },
      ...options,
      poolSize: () => options.poolSize,
    });
  }

  /** The node's disk is lost. */
  wipe(): void {
    rmSync(this.#directory, { recursive: true, force: true });
    this.#directory = mkdtempSync(join(tmpdir(), "berth-node-"));
  }

  async close(): Promise<void> {
    await this.stop();
    await this.api.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export interface RegistryNodeOptions
  extends Partial<Pick<KubernetesRegistryOptions, "isLivePod" | "isPodGone" | "usedShare">> {
  /** Addresses of each pool; default: 1,000. */
  readonly poolSize?: number;
}

export class RegistryNode extends JournalNode {
  readonly freed: string[] = [];
  readonly lost: { row: Allocation; by: Allocation }[] = [];
  clockMs = 1_000_000;
  readonly #options: RegistryNodeOptions;
  #registry: KubernetesRegistry | undefined;

  static async open(plane: ControlPlane, name: string, options: RegistryNodeOptions = {}): Promise<RegistryNode> {
    const node = new RegistryNode(name, new WatchedApi(await connectAgentClient(plane, name)), options);
    await node.start();
    return node;
  }

  private constructor(name: string, api: WatchedApi, options: RegistryNodeOptions) {
    super(name, api);
    this.#options = options;
  }

  readonly nowMs = (): number => this.clockMs;

  get registry(): KubernetesRegistry {
    if (this.#registry === undefined) throw new Error("No registry is open");
    return this.#registry;
  }

  async start(bootId = "boot-1"): Promise<void> {
    this.#registry = await this.openRegistry({
      ...{ isLivePod: async () => false, isPodGone: async () => true, poolSize: 1_000, ...this.#options, bootId },
      onFreed: (_space, ip) => this.freed.push(formatIp(ip)),
      onLost: (row, by) => this.lost.push({ row, by }),
      log: openLog("berth", "silent"),
    });
  }

  async stop(): Promise<void> {
    await this.#registry?.close();
    this.#registry = undefined;
  }

  /** Everything behind the answers, and what is due after so long. */
  async pass(milliseconds = COOLDOWN_MS): Promise<void> {
    await this.registry.idle();
    this.clockMs += milliseconds;
    await this.registry.expire();
    await this.registry.idle();
  }
}

interface Parts {
  readonly registry: KubernetesRegistry;
  readonly own: OwnAllocations;
  readonly collector: Collector;
  readonly pods: Reflector<Pod>;
  readonly self: Reflector<Node>;
  readonly lost: LostAddresses;
  readonly events: Events;
}

/** A log, and its lines. */
export interface RecordedLog {
  readonly log: Log;
  readonly lines: readonly string[];
}

/**
 * A registry with the watches of its pods and its Node, the reconciler and the collector; their rounds are the test's.
 */
export class ReconciledNode extends JournalNode {
  readonly #log: Log;
  /** Of its log: `error …`. */
  readonly lines: readonly string[];
  #aheadMs = 0;
  #parts: Parts | undefined;

  static async open(plane: ControlPlane, name: string, recorded: RecordedLog): Promise<ReconciledNode> {
    const node = new ReconciledNode(name, new WatchedApi(await connectAgentClient(plane, name)), recorded);
    await node.start();
    return node;
  }

  private constructor(name: string, api: WatchedApi, { log, lines }: RecordedLog) {
    super(name, api);
    this.#log = log;
    this.lines = lines;
  }

  get parts(): Parts {
    if (this.#parts === undefined) throw new Error(`Node ${this.name} is not running`);
    return this.#parts;
  }
  get registry(): KubernetesRegistry {
    return this.parts.registry;
  }

  readonly nowMs = (): number => Math.floor(performance.now()) + this.#aheadMs;
  advance(milliseconds: number): void {
    this.#aheadMs += milliseconds;
  }

  /** Resolves when the first comparison is through. */
  async start(): Promise<void> {
    const { name: node, api, nowMs } = this;
    const [log, random] = [this.#log, () => 0.5];
    const events = openEvents({ api, component: "berth-agent", node, log });
    const lost = new LostAddresses({ events, log });
    const registry = await this.openRegistry({
      poolSize: 1_000,
      log,
      isLivePod: async (namespace, name, uid) => (await readPod(api, { namespace, name }))?.uid === uid,
      isPodGone: (row) => collector.isPodGone(row),
      onLost: (row, by) => lost.report(row, by),
    });
    const pods = new Reflector<Pod>({
      ...{ api, log, random, name: "pods of this node", path: "/api/v1/pods" },
      fieldSelector: `spec.nodeName=${node}`,
      decode: (object) => decodePod(object, "API server"),
      keyOf: ({ metadata }) => `${Object(metadata).namespace}/${Object(metadata).name}`,
      onChange: (change) =>
        change.kind === "set" ? collector.podChanged(change.value) : collector.podDeleted(change.before),
    });
    const known = { isSynced: () => pods.isSynced, find: (key: string) => pods.items.get(key) };
    const settings = () => ({ intervalMs: HOUR_MS, graceMs: GRACE_MS, cooldowns: COOLDOWNS });
    const collector: Collector = new Collector(
      { api, node, log, audit: NO_AUDIT, registry, pods: known },
      { settings, nowMs, random },
    );
    pods.start();
    const relists = (): number => Math.max(0, pods.stats.lists - 1) + Math.max(0, self.stats.lists - 1);
    const deps = { api, node, log, registry, lost, collector, relists, isTold: async () => true };
    const own = new OwnAllocations(deps, { graceMs: () => GRACE_MS, nowMs, random });
    const self = new Reflector<Node>({
      ...{ api, log, random, name: "this Node", path: "/api/v1/nodes", fieldSelector: `metadata.name=${node}` },
      decode: (object) => decodeNode(object, "API server"),
      keyOf: ({ metadata }) => String(Object(metadata).name),
      onChange: (change) => own.nodeChanged(change),
    });
    self.start();
    this.#parts = { registry, own, collector, pods, self, lost, events };
    await self.synced(AbortSignal.timeout(SYNCED_MS));
    await pods.synced(AbortSignal.timeout(SYNCED_MS));
    await own.reconciled(AbortSignal.timeout(SYNCED_MS));
  }

  async stop(): Promise<void> {
    if (this.#parts === undefined) return;
    const { registry, own, collector, pods, self, events } = this.#parts;
    this.#parts = undefined;
    for (const part of [pods, self, own, collector, events, registry]) await part.close();
  }

  claim(
    address: string,
    { uid, namespace, name }: Pick<LabPod, "namespace" | "name" | "uid">,
    changes: Partial<Claim> = {},
  ): Promise<ClaimOutcome> {
    const ip = parseIp(address);
    if (ip === undefined) throw new TypeError(`"${address}" is not an address`);
    const { ifName = "eth0" } = changes;
    const proposals = [{ space: "", ip, prefixLength: 16, pool: "blue", ifName }];
    const owner = { owner: uid, namespace, pod: name, containerId: `c-${uid}` };
    return this.registry.claim({ ...owner, ifName, network: "lab", proposals, ...changes });
  }

  /** The ADD of a pod. */
  async attach(address: string, pod: LabPod, changes: Partial<Claim> = {}): Promise<Allocation> {
    const outcome = await this.claim(address, pod, changes);
    const [first] = outcome.kind === "bound" ? outcome.held : [];
    if (first === undefined) throw new Error(`Claiming ${address} ended with ${outcome.kind}`);
    return first;
  }

  /** The DEL of a pod, of the container that {@link attach} named. */
  detach({ uid }: LabPod): Promise<readonly Allocation[]> {
    return this.registry.release({ containerId: `c-${uid}`, ifName: "eth0" });
  }

  /** All rounds that timers would start: the objects, the pods, what has cooled. */
  async reconcile(): Promise<void> {
    const { own, collector, registry } = this.parts;
    await own.reconcile();
    await collector.sweep();
    await registry.idle();
    await registry.expire();
    await registry.idle();
  }

  /** `10.6.0.1 Bound u1 c-u1`, of the journal. */
  async rows(): Promise<string[]> {
    const rows = await this.registry.list(undefined, 1_000);
    return rows.map(({ ip, state, owner, containerId }) => `${formatIp(ip)} ${state} ${owner} ${containerId}`);
  }
}
