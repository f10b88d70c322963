/**
 * The agent of one node in this process, on a real API server and with no kernel work: its clock goes ahead when the
 * test says so, and {@link AgentNode.reconcile} does what its timers would.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startMaintenance } from "../../../host/agent/agent.ts";
import type { ClusterBackend } from "../../../host/agent/cluster/backend.ts";
import { KERNEL_NICS } from "../../../host/agent/gc/orphan-nics.ts";
import { addAddresses } from "../../../host/agent/ipam/add.ts";
import { type PrefetchStats, UNATTACHED_MS } from "../../../host/agent/ipam/prefetch/prefetcher.ts";
import { explainPod } from "../../../host/agent/operate/explain-pod.ts";
import { toCniError } from "../../../host/agent/server/answer.ts";
import { CniError } from "../../../host/cni/error.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { Allocation, Claim, ClaimOutcome } from "../../../host/registry/registry.ts";
import type { Snapshot } from "../../../host/resources/snapshot.ts";
import type { recordLog } from "../../world/recorded-log.ts";
import { ip } from "../../world/values.ts";
import type { ControlPlane } from "../control-plane.ts";
import { type AddCall, addRequest, connectAgentClient, openBackend } from "./in-process.ts";
import type { LabPod } from "./objects.ts";
import { WatchedApi } from "./watched-api.ts";
import type { Witness, WitnessedAdd } from "./witness.ts";

/** A main plugin with Berth's IPAM. */
export const BERTH_PLUGIN = { type: "macvlan", master: "eth0", ipam: { type: "berth" } };

const SYNCED_MS = 60_000;
/** Longer than any ADD may take. */
const ADD_LIMIT_MS = 60_000;

export interface AgentNodeOptions {
  /** The plugin of the node's own network "lan"; absent: the node has no definition, and nothing is claimed ahead. */
  readonly plugin?: object | undefined;
  /** Whether the agent's periodic maintenance runs; default: only when the test asks for it. */
  readonly isMaintained?: boolean;
  /**
   * Log of an agent that searches no namespace of this machine for lost addresses. Default: errors to stderr, and the
   * kernel's namespaces.
   */
  readonly recorded?: ReturnType<typeof recordLog>;
}

type PodName = Pick<LabPod, "namespace" | "name" | "uid">;

export interface Add extends AddCall {
  /** In place of the agent's own: a NIC, and a segment that it can ask. */
  readonly detection?: Partial<ClusterBackend["ipam"]["detection"]>;
}

export interface Added {
  readonly ips: readonly string[];
  /** `10.6.0.7 fd06::7` */
  readonly addresses: string;
  readonly tookMs: number;
}

export class AgentNode implements AsyncDisposable {
  readonly name: string;
  readonly api: WatchedApi;
  /** Is told of ADDs and DELs. */
  witness: Witness | undefined;
  /** Of the next start. */
  options: AgentNodeOptions;
  readonly #directory = mkdtempSync(join(tmpdir(), "berth-agent-node-"));
  #stateDirectory = join(this.#directory, "state");
  #cluster: ClusterBackend | undefined;
  #maintenance: Disposable | undefined;
  #aheadMs = 0;

  /** Resolves when the agent knows the cluster's resources. */
  static async open(plane: ControlPlane, name: string, options: AgentNodeOptions = {}): Promise<AgentNode> {
    const node = new AgentNode(name, new WatchedApi(await connectAgentClient(plane, name)), options);
    try {
      await node.start();
      return node;
    } catch (error) {
      await node.close();
      throw error;
    }
  }

  private constructor(name: string, api: WatchedApi, options: AgentNodeOptions) {
    this.name = name;
    this.api = api;
    this.options = options;
    for (const path of [this.#stateDirectory, join(this.#directory, "net.d")]) mkdirSync(path);
    if (options.plugin === undefined) return;
    const lan = { cniVersion: "1.0.0", name: "lan", plugins: [options.plugin] };
    writeFileSync(join(this.#directory, "net.d", "10-lan.conflist"), JSON.stringify(lan));
  }

  get cluster(): ClusterBackend {
    if (this.#cluster === undefined) throw new Error(`The agent of ${this.name} is not running`);
    return this.#cluster;
  }
  get registry(): ClusterBackend["registry"] {
    return this.cluster.registry;
  }
  get isRunning(): boolean {
    return this.#cluster !== undefined;
  }
  /** The agent's knowledge of the cluster. */
  get snapshot(): Snapshot {
    return this.cluster.resources.state.snapshot;
  }
  get stats(): PrefetchStats {
    return this.cluster.prefetcher.stats();
  }

  readonly nowMs = (): number => Number(process.hrtime.bigint() / 1_000_000n) + this.#aheadMs;

  async start(): Promise<void> {
    const { api, name: node, nowMs } = this;
    const [stateDirectory, cniConfDirectory] = [this.#stateDirectory, join(this.#directory, "net.d")];
    const { recorded } = this.options;
    this.#cluster = await openBackend({
      ...{ api, node, stateDirectory, cniConfDirectory, nowMs },
      // Other tests on this machine have the same addresses in namespaces of theirs.
      ...(recorded === undefined
        ? {}
        : { log: recorded.log, nics: { ...KERNEL_NICS, findNetns: () => ({ kind: "unknown", candidates: [] }) } }),
    });
    await this.#cluster.synced(AbortSignal.timeout(SYNCED_MS));
    if (this.options.isMaintained === true) this.#maintenance = this.#maintain(this.#cluster);
  }

  /** No DEL is spooled here: each finds its agent. */
  #maintain({ registry, ipam }: ClusterBackend): Disposable {
    const spool = { drain: async () => {} };
    const { probeQuarantined } = ipam.detection;
    const maintenance = startMaintenance({ registry, spool, probeQuarantined, nowMs: this.nowMs, log: ipam.log });
    return { [Symbol.dispose]: () => maintenance.close() };
  }

  /** The node dies with all that runs on it, or its agent ends. */
  async stop(): Promise<void> {
    const cluster = this.#cluster;
    this.#cluster = undefined;
    this.#maintenance?.[Symbol.dispose]();
    this.#maintenance = undefined;
    await cluster?.close();
  }

  /**
   * Another agent on the files that are there now, as after a `kill -9`: what the one before writes when it ends is
   * lost.
   */
  async crash(): Promise<void> {
    const copy = `${this.#stateDirectory}+`;
    cpSync(this.#stateDirectory, copy, { recursive: true });
    this.#stateDirectory = copy;
    await this.stop();
    this.api.calls.splice(0);
    await this.start();
  }

  /** The disk of a node that has stopped is lost. */
  wipe(): void {
    rmSync(this.#stateDirectory, { recursive: true });
    mkdirSync(this.#stateDirectory);
  }

  async close(): Promise<void> {
    await this.stop();
    await this.api.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Lines of the recorded log: `error …`. */
  get lines(): readonly string[] {
    return this.options.recorded?.lines ?? [];
  }

  advance(milliseconds: number): void {
    this.#aheadMs += milliseconds;
  }

  /** The clock goes on by so much, and what is due is done. */
  async later(milliseconds: number): Promise<void> {
    this.advance(milliseconds);
    await this.registry.releaseUnattached(this.nowMs() - UNATTACHED_MS);
    await this.registry.expire();
  }

  /**
   * The ADD of one NIC of the pod, always of the same container unless the call names one. Rejects as the plugin
   * would be refused.
   */
  async add(pod: PodName, { detection, ...call }: Add = {}): Promise<Added> {
    const { ipam } = this.cluster;
    const deps = detection === undefined ? ipam : { ...ipam, detection: { ...ipam.detection, ...detection } };
    const request = addRequest(pod, { containerId: containerOf(pod), ...call });
    const witnessed = this.witness?.adding(pod, request.ifName);
    const startMs = performance.now();
    const adding = addAddresses(deps, request, AbortSignal.timeout(ADD_LIMIT_MS));
    const { result } = await adding.catch((error: unknown) => refuse(error, witnessed));
    const tookMs = performance.now() - startMs;
    const ips = result.ips.map(({ address }) => formatIp(address.ip));
    witnessed?.answered(ips);
    return { ips, addresses: ips.join(" "), tookMs };
  }

  /** The DEL of all NICs of the pod. */
  async del({ uid }: Pick<LabPod, "uid">): Promise<void> {
    this.witness?.leaving(uid);
    for (const { containerId, ifName } of await this.registry.findOwner(uid))
      await this.registry.release({ containerId, ifName });
  }

  /** All rounds that timers would start: the objects, the pods, what has cooled. */
  async reconcile(): Promise<void> {
    const { allocations, collector, registry } = this.cluster;
    await allocations.reconcile();
    await collector.sweep();
    await registry.idle();
    await registry.expire();
    await registry.idle();
  }

  /** The claim of an ADD that has chosen the address of pool blue, by the registry's own port. */
  claim(address: string, { uid, namespace, name }: PodName, changes: Partial<Claim> = {}): Promise<ClaimOutcome> {
    const { ifName = "eth0" } = changes;
    const proposals = [{ space: "", ip: ip(address), prefixLength: 16, pool: "blue", ifName }];
    const owner = { owner: uid, namespace, pod: name, containerId: `c-${uid}` };
    return this.registry.claim({ ...owner, ifName, network: "lab", proposals, ...changes });
  }

  /** {@link claim}, which must succeed. */
  async attach(address: string, pod: PodName, changes: Partial<Claim> = {}): Promise<Allocation> {
    const outcome = await this.claim(address, pod, changes);
    const [first] = outcome.kind === "bound" ? outcome.held : [];
    if (first === undefined) throw new Error(`Claiming ${address} ended with ${outcome.kind}`);
    return first;
  }

  /** The DEL of the container that {@link claim} names. */
  detach({ uid }: PodName): Promise<readonly Allocation[]> {
    return this.registry.release({ containerId: `c-${uid}`, ifName: "eth0" });
  }

  /** `10.6.0.1 Bound u1 c-u1`, of the journal. */
  async rows(): Promise<string[]> {
    const rows = await this.registry.list(undefined, 1_000);
    return rows.map(({ ip, state, owner, containerId }) => `${formatIp(ip)} ${state} ${owner} ${containerId}`);
  }

  /** Addresses that were claimed ahead for the pod's NIC. */
  aheadOf({ uid }: LabPod): string[] {
    return this.cluster.prefetcher.claimedFor(uid, "eth0").map(({ ip }) => formatIp(ip));
  }

  /** Lines of `berthctl explain` for eth0. */
  async explain({ namespace, name }: LabPod): Promise<string[]> {
    const question = { namespace, pod: name, ifName: "eth0", network: "lan" };
    const { ipam } = this.cluster;
    return [...(await explainPod({ ipam, backend: this.cluster, toCniError }, question)).lines];
  }
}

function refuse(error: unknown, witnessed: WitnessedAdd | undefined): never {
  const refusal = error instanceof CniError ? error : undefined;
  witnessed?.refused(refusal?.code, refusal?.message ?? "");
  throw error;
}

/** The container that {@link AgentNode.add} names. */
export const containerOf = ({ uid, name }: Pick<LabPod, "uid" | "name">): string => `c-${uid || name}`;
