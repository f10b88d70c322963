/**
 * Several nodes' agents in this process on a real API server, with their own accounts and the policies, the controller's collection beside them, and
 * workloads as plain objects: the test is scheduler, kubelet, and the controllers of StatefulSets, machines and claims.
 */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterBackend } from "../../host/agent/cluster/backend.ts";
import { addAddresses } from "../../host/agent/ipam/add.ts";
import { type GarbageCollector, startGarbageCollector } from "../../host/controller/gc/garbage-collector.ts";
import { type OpenAddressOwners, openAddressOwners } from "../../host/controller/owners/address-owners.ts";
import { startClaimStatus } from "../../host/controller/owners/claim-status.ts";
import type { StartController } from "../../host/controller/types.ts";
import type { KubeApi } from "../../host/kubernetes/kube-api.ts";
import { openLog } from "../../host/lib/log.ts";
import { formatIp } from "../../host/net/ip.ts";
import { type LabController, startParts } from "../../scripts/lab/cluster/controller.ts";
import { addRequest, connectAgentClient, connectClient, openBackend } from "../../scripts/lab/cluster/in-process.ts";
import * as lab from "../../scripts/lab/cluster/pods.ts";
import { forceDeleteAll, requestNodeToken, SYSTEM } from "../../scripts/lab/cluster/rights.ts";
import { applyWorkloadKinds } from "../../scripts/lab/cluster/workload-kinds.ts";
import type { ControlPlane } from "../../scripts/lab/control-plane.ts";
import type { KubeObject } from "../../scripts/lab/kube-client.ts";
import { borrowPlane } from "./borrow-plane.ts";

const SETTINGS = `${lab.NAMESPACES}/kube-system/configmaps/vendor-conf`;
const QUICK = { enableIPv6: false, allocationCooldown: "1s", garbageCollection: { interval: "2s", grace: "1s" } };
const PATIENCE_MS = 20_000;

export interface AddWish {
  readonly ifName?: string;
  /** `name` of the configuration. Default: lan. */
  readonly network?: string;
  /** An address that the runtime asks for. */
  readonly asked?: string;
  /** In place of the agent's own: a NIC, and a segment that it can ask. */
  readonly detection?: Partial<ClusterBackend["ipam"]["detection"]>;
}

interface LabNode {
  node: ClusterBackend;
  readonly api: KubeApi;
  readonly directory: string;
}

export class WorkloadsWorld {
  readonly plane: ControlPlane;
  readonly #nodes = new Map<string, LabNode>();
  readonly #stack = new AsyncDisposableStack();
  readonly #dead = new Set<string>();
  #collector: GarbageCollector | undefined;

  static async start(names: readonly string[]): Promise<WorkloadsWorld> {
    const world = new WorkloadsWorld(await borrowPlane());
    try {
      await world.#furnish();
      for (const name of names) await world.#openNode(name);
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  private constructor(plane: ControlPlane) {
    this.plane = plane;
    this.#stack.defer(() => plane.stop());
  }

  get client(): ControlPlane["client"] {
    return this.plane.client;
  }

  node(name: string): ClusterBackend {
    return this.#node(name).node;
  }

  async #furnish(): Promise<void> {
    const { client } = this;
    await applyWorkloadKinds(client);
    await client.apply(`${lab.NAMESPACES}/shop`, { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } });
    await client.apply(SETTINGS, lab.settingsObject(QUICK));
    for (const [name, subnet] of [
      ["blue", "10.6.0.0/24"],
      ["green", "10.7.0.0/24"],
    ] as const)
      await client.create(lab.POOLS, lab.poolObject({ name, subnet, default: name === "blue" }));
  }

  /** Resolves when all agents know them. */
  async settings(settings: Readonly<Record<string, unknown>>): Promise<void> {
    await this.client.apply(SETTINGS, lab.settingsObject({ ...QUICK, ...settings }));
    await this.until("the agents know the settings", () =>
      [...this.#nodes.values()].every(({ node }) =>
        Object.entries(settings).every(
          ([key, value]) => Reflect.get(node.resources.state.snapshot.vendorConf, key) === value,
        ),
      ),
    );
  }

  async #openNode(name: string): Promise<void> {
    const directory = await mkdtemp(join(tmpdir(), "berth-workloads-"));
    this.#stack.defer(() => rm(directory, { recursive: true, force: true }));
    await mkdir(join(directory, "net.d"));
    await this.client.create(lab.NODES, lab.nodeObject(name));
    // As its kubelet and the cluster's controllers leave it: the API server itself marks a node as not ready when it is made.
    const conditions = [{ type: "Ready", status: "True" }];
    await this.client.patch(`${lab.NODES}/${name}`, { spec: { taints: [] } });
    await this.client.patch(`${lab.NODES}/${name}/status`, { status: { conditions } });
    const api = await connectAgentClient(this.plane, name);
    this.#stack.defer(() => api.close());
    const opened: LabNode = { api, directory, node: await this.#open(name, api, directory) };
    this.#nodes.set(name, opened);
    this.#stack.defer(() => opened.node.close());
  }

  async #open(name: string, api: KubeApi, directory: string): Promise<ClusterBackend> {
    const stateDirectory = join(directory, "state");
    const cniConfDirectory = join(directory, "net.d");
    const node = await openBackend({ api, node: name, stateDirectory, cniConfDirectory });
    await node.synced(AbortSignal.timeout(PATIENCE_MS));
    return node;
  }

  /** The agent starts anew on its journal. */
  async restart(name: string): Promise<void> {
    await this.#node(name).node.close();
    await this.revive(name);
  }

  /** The node dies with all that runs on it; nobody says so. */
  async kill(name: string): Promise<void> {
    await this.#node(name).node.close();
    this.#dead.add(name);
  }

  async revive(name: string): Promise<void> {
    const found = this.#node(name);
    found.node = await this.#open(name, found.api, found.directory);
    this.#dead.delete(name);
  }

  get #living(): ClusterBackend[] {
    return [...this.#nodes].flatMap(([name, { node }]) => (this.#dead.has(name) ? [] : [node]));
  }

  /** The controller's parts that see to workloads, with the controller's own account. */
  async startController(): Promise<LabController> {
    const token = await requestNodeToken(this.client, "n1", { account: "berth-controller" });
    const kubeconfig = await this.plane.writeKubeconfig("controller", { token });
    const api = await connectClient(kubeconfig, "berth-controller");
    const log = openLog("lab-controller", "silent");
    const workloads: OpenAddressOwners = openAddressOwners({ api, log, random: Math.random });
    await workloads.synced(AbortSignal.timeout(PATIENCE_MS));
    const garbage: StartController = (tools) => {
      this.#collector = startGarbageCollector(tools);
      return this.#collector;
    };
    const controller = await startParts(
      kubeconfig,
      { claims: startClaimStatus, garbage },
      { addressOwners: workloads },
    );
    this.#stack.defer(async () => {
      await controller.close();
      await workloads.close();
      await api.close();
    });
    return controller;
  }

  /** The node's network names Berth from now on, so that its agent claims ahead of ADDs. Resolves with what ends that. */
  async claimAhead(name: string): Promise<() => Promise<void>> {
    const file = join(this.#node(name).directory, "net.d", "10-lan.conflist");
    const plugins = [{ type: "macvlan", ipam: { type: "berth" } }];
    await writeFile(file, JSON.stringify({ cniVersion: "1.0.0", name: "lan", plugins }));
    return () => rm(file);
  }

  pod(spec: lab.PodSpec): Promise<lab.LabPod> {
    return lab.createPod(this.client, spec);
  }

  /** The ADD of one NIC; gives its addresses. Rejects as the plugin would be refused. */
  async add(pod: lab.LabPod, wish: AddWish = {}): Promise<string[]> {
    const { ipam } = this.node(pod.node);
    const deps = { ...ipam, detection: { ...ipam.detection, ...wish.detection } };
    const { ifName, network, asked } = wish;
    const conf = asked === undefined ? {} : { runtimeConfig: { ips: [asked] } };
    const request = addRequest(pod, { ifName, network, conf });
    const { result } = await addAddresses(deps, request, AbortSignal.timeout(PATIENCE_MS));
    return result.ips.map(({ address }) => formatIp(address.ip));
  }

  /** The DEL of all its NICs. */
  async del(pod: lab.LabPod): Promise<void> {
    const { registry } = this.node(pod.node);
    for (const { containerId, ifName } of await registry.findOwner(pod.uid))
      await registry.release({ containerId, ifName });
  }

  /** As a kubelet ends a pod: DEL, then its object goes. */
  async end(pod: lab.LabPod): Promise<void> {
    await this.del(pod);
    await lab.deletePod(this.client, pod);
  }

  async allocations(): Promise<readonly KubeObject[]> {
    return (await this.client.get(lab.ALLOCATIONS)).items;
  }

  /** `10.6.0.7 Bound n1 a@n1 b@n2`, all of them, sorted. */
  async lines(): Promise<string[]> {
    const lines = (await this.allocations()).map(({ spec }) => {
      const holders = (spec.holders ?? []).map(({ pod, node }: KubeObject) => `${pod}@${node}`).sort();
      return [spec.address, spec.state, spec.node, ...holders].join(" ");
    });
    return lines.sort();
  }

  /** Waits for {@link lines} to be these. */
  async see(...wanted: readonly string[]): Promise<void> {
    let last: readonly string[] = [];
    await this.until(
      () => `${wanted.join(", ") || "nothing"}; there is ${last.join(", ") || "nothing"}`,
      async () => {
        // As the agents' janitors do, and the controller's timer.
        for (const { registry } of this.#living) await registry.expire();
        await this.#collector?.sweep();
        last = await this.lines();
        return last.join() === [...wanted].sort().join();
      },
    );
  }

  async until(what: string | (() => string), isTrue: () => Promise<boolean> | boolean): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!(await isTrue())) {
      if (performance.now() > deadline)
        throw new Error(`Not within ${PATIENCE_MS} ms: ${typeof what === "string" ? what : what()}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Everything of the last test goes, the hard way; agents forget it when they look. */
  async clear(): Promise<void> {
    for (const pod of (await this.client.get("/api/v1/pods")).items) {
      const { namespace, name, uid } = pod.metadata;
      const gone = { namespace, name, uid, node: pod.spec.nodeName };
      if (namespace !== SYSTEM && this.#nodes.has(gone.node)) await this.end(gone);
    }
    for (const { node } of this.#nodes.values()) await node.registry.idle();
    await forceDeleteAll(this.client);
  }

  async stop(): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #node(name: string): LabNode {
    const found = this.#nodes.get(name);
    if (found === undefined) throw new Error(`There is no node "${name}"`);
    return found;
  }
}
