/** Registries of several nodes on one API server, for the tests of the cluster's registry. Each has the rights of its node's agent and no more. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeApi, KubeCall, KubeObject, KubeWatch } from "../../host/kubernetes/kube-api.ts";
import { createFaultCounter } from "../../host/lib/fault.ts";
import { openLog } from "../../host/lib/log.ts";
import { formatIp } from "../../host/net/ip.ts";
import type {
  KubernetesRegistry,
  KubernetesRegistryOptions,
} from "../../host/registry/kubernetes/kubernetes-registry.ts";
import { openKubernetesRegistry } from "../../host/registry/kubernetes/kubernetes-registry.ts";
import type { Allocation } from "../../host/registry/registry.ts";
import { decodeIpAllocation, type IpAllocation } from "../../host/resources/ip-allocation.ts";
import { connectAgentClient } from "../../scripts/lab/cluster/in-process.ts";
import { forceDeleteAll } from "../../scripts/lab/cluster/rights.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { COOLDOWN_MS } from "../unit/registry/registry-suite.ts";
import { borrowPlane } from "./borrow-plane.ts";

export const ALLOCATIONS = "/apis/ipam.vendor.io/v1/ipallocations";

/** Longest wait for what happens behind an answer, on a machine that has much else to do. */
const PATIENCE_MS = 30_000;

/** Rejects when it has not become true in time. */
export async function until(what: string, isTrue: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`Not within ${PATIENCE_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Everything behind the answers, and what is due after so long: a cooldown. */
export async function pass(node: TestNode, milliseconds = COOLDOWN_MS): Promise<void> {
  await node.registry.idle();
  node.clockMs += milliseconds;
  await node.registry.expire();
  await node.registry.idle();
}

/** The API server as one node sees it: what it was asked, and a place to stand between. */
export class WatchedApi implements KubeApi {
  readonly calls: string[] = [];
  /** Called before a call; what it throws is the answer. */
  before: (call: KubeCall) => Promise<void> = async () => {};
  /** Called after a call that was carried out; what it throws is the answer. */
  after: (call: KubeCall) => Promise<void> = async () => {};
  readonly #api: KubeApi;

  constructor(api: KubeApi) {
    this.#api = api;
  }

  async call(call: KubeCall): Promise<KubeObject> {
    await this.before(call);
    this.calls.push(`${call.method} ${call.path.replace(/^.*\/v1\//, "")}`);
    const answer = await this.#api.call(call);
    await this.after(call);
    return answer;
  }

  watch(watch: KubeWatch): Promise<void> {
    return this.#api.watch(watch);
  }

  close(): Promise<void> {
    return this.#api.close();
  }

  /** What was written since the last question: `POST`, `PUT`, `DELETE`, `PATCH`. */
  takeWrites(): string[] {
    const methods = this.calls.splice(0).map((call) => call.split(" ")[0] ?? "");
    return methods.filter((method) => method !== "GET");
  }
}

export interface NodeOptions extends Partial<Pick<KubernetesRegistryOptions, "isLivePod" | "isPodGone" | "usedShare">> {
  /** Addresses of each pool; default: 1,000. */
  readonly poolSize?: number;
}

/** A node: its state directory, its API client and its registry, which may be opened again. */
export class TestNode {
  readonly name: string;
  readonly api: WatchedApi;
  readonly freed: string[] = [];
  readonly lost: { row: Allocation; by: Allocation }[] = [];
  clockMs = 1_000_000;
  options: NodeOptions;
  directory = mkdtempSync(join(tmpdir(), "berth-node-"));
  #registry: KubernetesRegistry | undefined;

  constructor(name: string, api: WatchedApi, options: NodeOptions) {
    this.name = name;
    this.api = api;
    this.options = options;
  }

  get registry(): KubernetesRegistry {
    if (this.#registry === undefined) throw new Error("No registry is open");
    return this.#registry;
  }

  async open(bootId = "boot-1"): Promise<void> {
    const { isLivePod = async () => false, isPodGone = async () => true, poolSize = 1_000, usedShare } = this.options;
    this.#registry = await openKubernetesRegistry({
      ...{ directory: this.directory, bootId, lockWaitMs: 5_000, faultCounter: createFaultCounter() },
      ...{ api: this.api, node: this.name, isLivePod, isPodGone, poolSize: () => poolSize, random: () => 0.5 },
      ...(usedShare === undefined ? {} : { usedShare }),
      nowMs: () => this.clockMs,
      cooldowns: { defaultMs: COOLDOWN_MS, byPool: new Map() },
      onFreed: (_space, ip) => this.freed.push(formatIp(ip)),
      onDeath: (error) => {
        throw error;
      },
      onLost: (row, by) => this.lost.push({ row, by }),
      log: openLog("berth", "silent"),
    });
  }

  async closeRegistry(): Promise<void> {
    await this.#registry?.close();
    this.#registry = undefined;
  }

  /** The node's disk is lost. */
  wipe(): void {
    rmSync(this.directory, { recursive: true, force: true });
    this.directory = mkdtempSync(join(tmpdir(), "berth-node-"));
  }

  async close(): Promise<void> {
    await this.closeRegistry();
    await this.api.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** The calls of one method stop at a gate, once. */
export function hold(node: TestNode, method: KubeCall["method"], when: "before" | "after") {
  const [gate, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  node.api[when] = async (call) => {
    if (call.method !== method) return;
    node.api[when] = async () => {};
    reached.resolve();
    await gate.promise;
  };
  gate.promise.catch(() => {});
  return { reached: reached.promise, open: () => gate.resolve(), fail: (error: Error) => gate.reject(error) };
}

/** One API server for a file of tests, and the nodes of the current one. */
export class RegistryWorld {
  readonly plane: ControlPlane;
  readonly #nodes: TestNode[] = [];
  #lastNode = 0;

  static async start(startPlane = borrowPlane): Promise<RegistryWorld> {
    return new RegistryWorld(await startPlane());
  }

  constructor(plane: ControlPlane) {
    this.plane = plane;
  }

  async openNode(options: NodeOptions = {}): Promise<TestNode> {
    const name = `n${++this.#lastNode}`;
    const api = await connectAgentClient(this.plane, name);
    const node = new TestNode(name, new WatchedApi(api), options);
    await node.open();
    this.#nodes.push(node);
    return node;
  }

  /** All allocations, by name. */
  async objects(): Promise<IpAllocation[]> {
    const { items } = await this.plane.client.get(ALLOCATIONS);
    return items.map((item: object) =>
      decodeIpAllocation({ apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation", ...item }, "the API server"),
    );
  }

  async object(name: string): Promise<IpAllocation | undefined> {
    return (await this.objects()).find((each) => each.name === name);
  }

  /** The states and holders of all objects: `10.0.0.1 Bound a`. */
  async lines(): Promise<string[]> {
    const objects = await this.objects();
    return objects.map(({ name, spec }) => `${name} ${spec.state} ${spec.holders[0]?.podUid ?? "-"}`).sort();
  }

  /** No node and no object is left. */
  async clear(): Promise<void> {
    for (const node of this.#nodes.splice(0)) await node.close();
    await forceDeleteAll(this.plane.client);
  }

  async stop(): Promise<void> {
    await this.clear();
    await this.plane.stop();
  }
}
