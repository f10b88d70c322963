/**
 * The agent of one node in this process, on a real API server and with no kernel work: the test advances its clock, and
 * {@link AgentNode.reconcile} does the work of its timers.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterBackend } from "../../../host/agent/cluster/backend.ts";
import { KERNEL_NICS } from "../../../host/agent/fences/orphan-nics.ts";
import { addAddresses } from "../../../host/agent/ipam/add.ts";
import { explainPod } from "../../../host/agent/operate/explain-pod.ts";
import { toCniError } from "../../../host/agent/server/answer.ts";
import { CniError } from "../../../host/cni/error.ts";
import { formatIp } from "../../../host/net/ip.ts";
import type { Snapshot } from "../../../host/resources/snapshot.ts";
import type { recordLog } from "../../world/recorded-log.ts";
import { ip } from "../../world/values.ts";
import type { ControlPlane } from "../control-plane.ts";
import { type AddCall, addRequest, connectAgentClient, openBackend } from "./in-process.ts";
import type { LabPod } from "./objects.ts";
import { WatchedApi } from "./watched-api.ts";
import type { Witness, WitnessedAdd } from "./witness.ts";

const SYNCED_MS = 60_000;
/** Longer than any ADD may take. */
const ADD_LIMIT_MS = 60_000;

export interface AgentNodeOptions {
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
  #cluster: ClusterBackend | undefined;
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
    for (const name of ["state", "net.d"]) mkdirSync(join(this.#directory, name));
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

  readonly nowMs = (): number => Number(process.hrtime.bigint() / 1_000_000n) + this.#aheadMs;

  async start(): Promise<void> {
    const { api, name: node, nowMs } = this;
    const [stateDirectory = "", cniConfDirectory = ""] = ["state", "net.d"].map((each) => join(this.#directory, each));
    const { recorded } = this.options;
    this.#cluster = await openBackend({
      ...{ api, node, stateDirectory, cniConfDirectory, nowMs },
      // Other tests on this machine have the same addresses in namespaces of theirs.
      ...(recorded === undefined
        ? {}
        : { log: recorded.log, nics: { ...KERNEL_NICS, findNetns: () => ({ kind: "unknown", candidates: [] }) } }),
    });
    await this.#cluster.synced(AbortSignal.timeout(SYNCED_MS));
  }

  /** The node dies with all that runs on it, or its agent ends. */
  async stop(): Promise<void> {
    const cluster = this.#cluster;
    this.#cluster = undefined;
    await cluster?.close();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.api.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  advance(milliseconds: number): void {
    this.#aheadMs += milliseconds;
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

  /** All rounds of its timers: the objects, the pods, the cooling addresses. */
  async reconcile(): Promise<void> {
    const { allocations, collector, registry } = this.cluster;
    await allocations.reconcile();
    await collector.sweep();
    await registry.objects.idle();
    await registry.expire();
    await registry.objects.idle();
  }

  /** The claim of an ADD that has chosen the address of pool blue, by the registry's own port. */
  async attach(address: string, { uid, namespace, name }: PodName): Promise<void> {
    const proposals = [{ space: "", ip: ip(address), prefixLength: 16, pool: "blue", ifName: "eth0" }];
    const owner = { owner: uid, namespace, pod: name, containerId: `c-${uid}` };
    const outcome = await this.registry.claim({ ...owner, ifName: "eth0", network: "lab", proposals });
    if (outcome.kind !== "bound") throw new Error(`Claiming ${address} ended with ${outcome.kind}`);
  }

  /** `10.6.0.1 Bound u1 c-u1`, of the journal. */
  async rows(): Promise<string[]> {
    const rows = await this.registry.list(undefined, 1_000);
    return rows.map(({ ip, state, owner, containerId }) => `${formatIp(ip)} ${state} ${owner} ${containerId}`);
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
