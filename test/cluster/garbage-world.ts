/**
 * The controller's collection on a real API server, with the controller's own rights: nodes, pods and allocations are the test's, and so are clock
 * and workloads.
 */

import { type GarbageCollector, startGarbageCollector } from "../../host/controller/gc/garbage-collector.ts";
import type { AddressOwners, Liveness } from "../../host/controller/types.ts";
import type { KubeEvent } from "../../host/kubernetes/events.ts";
import { parseIp } from "../../host/net/ip.ts";
import {
  allocationLabels,
  allocationName,
  encodeIpAllocation,
  type IpAllocationSpec,
  type Workload,
} from "../../host/resources/ip-allocation.ts";
import { type LabController, startParts } from "../../scripts/lab/cluster/controller.ts";
import { connectClient, writeControllerKubeconfig } from "../../scripts/lab/cluster/in-process.ts";
import * as lab from "../../scripts/lab/cluster/pods.ts";
import { forceDeleteAll } from "../../scripts/lab/cluster/rights.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { ALLOCATIONS, until, WatchedApi } from "./registry-world.ts";

export const OUT_OF_SERVICE = { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" };
export const MINUTE_MS = 60_000;
/** As without a ConfigMap. */
export const GRACE_MS = MINUTE_MS;
export const COOLDOWN_MS = 30_000;
export const INTERVAL_MS = 5 * MINUTE_MS;
export const NODE_LOST_MS = 10 * MINUTE_MS;

export class GarbageWorld {
  readonly plane: ControlPlane;
  readonly api: WatchedApi;
  readonly events: KubeEvent[] = [];
  /** By UID; others are unknown. */
  readonly workloads = new Map<string, Liveness>();
  #tellWorkload: (uid: string) => void = () => {};
  #collector: GarbageCollector | undefined;
  #controller: LabController | undefined;
  #aheadMs = 0;

  readonly #kubeconfig: string;

  /** One API server with kinds, rights, a pool and a namespace. */
  static async start(): Promise<GarbageWorld> {
    const plane = await borrowPlane();
    const { client } = plane;
    await client.create(lab.NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
    await client.create(lab.POOLS, lab.poolObject({ name: "blue", subnet: "10.6.0.0/16" }));
    const kubeconfig = await writeControllerKubeconfig(plane);
    const api = await connectClient(kubeconfig, "berth-controller");
    const world = new GarbageWorld(plane, new WatchedApi(api), kubeconfig);
    await world.start();
    return world;
  }

  private constructor(plane: ControlPlane, api: WatchedApi, kubeconfig: string) {
    this.#kubeconfig = kubeconfig;
    this.plane = plane;
    this.api = api;
  }

  get collector(): GarbageCollector {
    if (this.#collector === undefined) throw new Error("No controller is running");
    return this.#collector;
  }
  get controller(): LabController {
    if (this.#controller === undefined) throw new Error("No controller is running");
    return this.#controller;
  }

  /** Of a clock that only the test moves: the part's own timer then finds nothing due but what was noticed. */
  nowMs = (): number => 1_000_000 + this.#aheadMs;
  advance(milliseconds: number): void {
    this.#aheadMs += milliseconds;
  }

  /** A process that has just begun to lead. */
  async start(): Promise<void> {
    const addressOwners: AddressOwners = {
      readLiveness: async ({ uid }) => this.workloads.get(uid) ?? "unknown",
      subscribe: (listener) => {
        this.#tellWorkload = listener;
        return () => {};
      },
    };
    const events = { emit: (event: KubeEvent) => void this.events.push(event), close: async () => {} };
    this.#controller = await startParts(
      this.#kubeconfig,
      {
        garbage: (deps) => {
          this.#collector = startGarbageCollector(deps);
          return this.#collector;
        },
      },
      {
        addressOwners,
        deps: { api: this.api, clock: { nowMs: this.nowMs, now: () => new Date() }, random: () => 0.5, events },
      },
    );
  }

  async stop(): Promise<void> {
    await this.#controller?.close();
    this.#controller = undefined;
  }

  async close(): Promise<void> {
    await this.stop();
    await this.api.close();
    await this.plane.stop();
  }

  workloadGone(uid: string): void {
    this.workloads.set(uid, "gone");
    this.#tellWorkload(uid);
  }

  /** A sweep, and what is due at its end. */
  async look(): Promise<void> {
    await this.collector.checkDue();
    await this.collector.sweep();
    await this.collector.checkDue();
  }

  /** As its kubelet, or those who watch over it, report it. */
  async setNode(name: string, ready: "True" | "False" | "Unknown", taints: readonly object[] = []): Promise<void> {
    const { client } = this.plane;
    await client.apply(`${lab.NODES}/${name}`, lab.nodeObject(name));
    await client.patch(`${lab.NODES}/${name}`, { spec: { taints } });
    await client.patch(`${lab.NODES}/${name}/status`, { status: { conditions: [{ type: "Ready", status: ready }] } });
    await until(`the caches know node ${name}`, () => {
      const node = this.controller.caches.nodes.items.get(name);
      return node?.ready === ready && node.taints.length === taints.length;
    });
  }

  async deleteNode(name: string): Promise<void> {
    await this.plane.client.delete(`${lab.NODES}/${name}`);
    await until(`the caches have no node ${name}`, () => !this.controller.caches.nodes.items.has(name));
  }

  /** An object as an agent has made it. */
  async allocate(address: string, node: string, changes: Partial<IpAllocationSpec> = {}): Promise<void> {
    const ip = parseIp(address);
    if (ip === undefined) throw new Error(`${address} is no address`);
    const place = { ip, addressSpace: "", prefixLength: 16, pool: "blue", node };
    const spec: IpAllocationSpec = { ...place, state: "Cooling", holders: [], ...changes };
    const name = allocationName(ip, "");
    await this.plane.client.create(ALLOCATIONS, encodeIpAllocation(spec, { name, labels: allocationLabels(spec) }));
    await until(`the caches have ${name}`, () => this.controller.caches.allocations.items.has(name));
  }

  bind(address: string, pod: lab.LabPod, changes: Partial<IpAllocationSpec> = {}): Promise<void> {
    const holder = { namespace: pod.namespace, pod: pod.name, podUid: pod.uid, ifName: "eth0", node: pod.node };
    return this.allocate(address, pod.node, { state: "Bound", holders: [holder], ...changes });
  }

  async spec(address: string): Promise<Record<string, unknown> | undefined> {
    const { items } = await this.plane.client.get(ALLOCATIONS);
    return items.find(({ metadata }: { metadata: { name: string } }) => metadata.name === address)?.spec;
  }

  /** `Quarantined n1`; `free` */
  async stateOf(address: string): Promise<string> {
    const spec = await this.spec(address);
    return spec === undefined ? "free" : `${spec.state} ${spec.node}`;
  }

  /** Nothing is left of a test. */
  async clear(): Promise<void> {
    const { client } = this.plane;
    await forceDeleteAll(client);
    await client.delete(`${lab.NAMESPACES}/shop/pods`, { gracePeriodSeconds: 0 });
    const { items } = await client.get(lab.NODES);
    for (const { metadata } of items) await client.delete(`${lab.NODES}/${metadata.name}`);
    const { caches } = this.controller;
    await until("the caches are empty", () => caches.nodes.items.size + caches.allocations.items.size === 0);
    this.events.splice(0);
    this.workloads.clear();
  }
}

export const WEB: Workload = {
  ...{ kind: "StatefulSet", namespace: "shop", name: "web", uid: "web-uid", member: "web-0", ifName: "eth0" },
};
