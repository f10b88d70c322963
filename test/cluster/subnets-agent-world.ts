/**
 * Agents' nodes on a real API server (prefetch-world.ts), and pools that the test makes as the controller would: with its account, empty first. The
 * workloads are plain objects; nothing follows them.
 */
import { expect, vi } from "vitest";
import { ClusterResources } from "../../host/agent/cluster/resources.ts";
import { explainPod } from "../../host/agent/ipam/explain.ts";
import * as lab from "../../scripts/lab/cluster/pods.ts";
import { openAsController } from "../../scripts/lab/cluster/rights.ts";
import type { KubeClient } from "../../scripts/lab/kube-client.ts";
import { openWorld, type TestNode, type TestWorld } from "./prefetch-world.ts";

const APPS = "/apis/apps/v1/namespaces/shop";
const SETTINGS = `${lab.NAMESPACES}/kube-system/configmaps/vendor-conf`;

export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** The application, and what its pods name as their controller. */
export interface Workload {
  readonly application: Owner & { readonly namespace: string };
  readonly controller: Owner;
}

export interface PoolWish {
  /** Default: blue, of 10.6.0.0/24. */
  readonly subnet?: string;
  readonly network?: string;
  readonly ips?: readonly string[];
  readonly wanted?: number;
  readonly reason?: string;
  readonly nic?: string;
}

/** An ADD under way that waits. */
export interface Waiting {
  readonly answer: Promise<{ readonly addresses: string; readonly tookMs: number }>;
  /** Calls of the API server since it waits. */
  calls(): readonly string[];
}

export class SubnetsWorld {
  readonly base: TestWorld;
  readonly #controller: KubeClient;

  private constructor(base: TestWorld, controller: KubeClient) {
    this.base = base;
    this.#controller = controller;
  }

  static async start(): Promise<SubnetsWorld> {
    const base = await openWorld([]);
    const world = new SubnetsWorld(base, await openAsController(base.plane));
    const subnets: [name: string, subnet: string][] = [
      ["blue", "10.6.0.0/24"],
      ["green", "10.7.0.0/24"],
      ["six", "fd06::/64"],
    ];
    for (const [name, subnet] of subnets) {
      const object = { apiVersion: "ipam.vendor.io/v1", kind: "Subnet", metadata: { name }, spec: { subnet } };
      await base.plane.client.create("/apis/ipam.vendor.io/v1/subnets", object);
    }
    return world;
  }

  async stop(): Promise<void> {
    this.#controller.close();
    await this.base.stop();
  }

  async settings(settings: object): Promise<void> {
    await this.base.plane.client.apply(SETTINGS, lab.settingsObject({ allocationCooldown: "30s", ...settings }));
  }

  /** A Deployment and its ReplicaSet. */
  async deployment(name: string): Promise<Workload> {
    const made = await this.#made("deployments", "Deployment", name, []);
    const set = await this.#made("replicasets", "ReplicaSet", `${name}-5d`, [{ ...made, controller: true }]);
    return { application: { ...made, namespace: "shop" }, controller: set };
  }

  async statefulSet(name: string): Promise<Workload> {
    const made = await this.#made("statefulsets", "StatefulSet", name, [], { serviceName: name });
    return { application: { ...made, namespace: "shop" }, controller: made };
  }

  async #made(plural: string, kind: string, name: string, owners: object[], more: object = {}): Promise<Owner> {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "local/pause:1" }] } };
    const { metadata } = await this.base.plane.client.create(`${APPS}/${plural}`, {
      ...{ apiVersion: "apps/v1", kind, metadata: { name, ownerReferences: owners } },
      spec: { replicas: 1, selector: { matchLabels: labels }, template, ...more },
    });
    return { apiVersion: "apps/v1", kind, name, uid: metadata.uid };
  }

  /** Empty, as the controller makes it. */
  async pool(name: string, { application }: Workload, wish: PoolWish = {}): Promise<void> {
    const {
      subnet = "blue",
      network = "10.6.0.0/24",
      nic = "eth0",
      wanted = 2,
      reason = "1 replica and 1 more",
    } = wish;
    const generated = { subnet, application, interface: nic, reclaim: true, wanted, reason };
    await this.#controller.create(lab.POOLS, {
      ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name } },
      spec: { subnet: network, ips: [], generated },
    });
    if (wish.ips !== undefined) await this.fill(name, wish.ips);
  }

  async fill(name: string, ips: readonly string[]): Promise<void> {
    await this.#controller.patch(`${lab.POOLS}/${name}`, { spec: { ips } });
  }

  /** As the controller's conditions say it. */
  async lacks(name: string, message: string): Promise<void> {
    const condition = { type: "Supplied", status: "False", reason: "SubnetFull", message, observedGeneration: 1 };
    const conditions = [{ ...condition, lastTransitionTime: "2026-11-20T20:00:00Z" }];
    await this.#controller.patch(`${lab.POOLS}/${name}/status`, { status: { conditions } });
  }

  async remove(name: string): Promise<void> {
    await this.#controller.patch(`${lab.POOLS}/${name}`, { metadata: { finalizers: [] } });
    await this.#controller.delete(`${lab.POOLS}/${name}`);
  }

  /** Bound to the node, of the workload's first Subnets. Resolves when the node knows it. */
  async pod(node: TestNode, name: string, spec: Partial<lab.PodSpec> & { of?: Workload } = {}): Promise<lab.LabPod> {
    const { of, ...rest } = spec;
    const owner = of === undefined ? {} : { owner: of.controller };
    const annotations = { subnet: { ipv4: ["blue"] } };
    const pod = await this.base.bind({ name, node: node.name, annotations, ...owner, ...rest });
    await until(() => expect(snapshotOf(node).pods.get(`shop/${name}`)?.uid).toBe(pod.uid));
    return pod;
  }
}

const until = (holds: () => void): Promise<void> => vi.waitFor(holds, { timeout: 10_000, interval: 20 });

const snapshotOf = ({ cluster }: TestNode) => cluster.resources.state.snapshot;

/** Resolves when the node knows the pool as the test does. */
export async function known(node: TestNode, pool: string, ranges: number): Promise<void> {
  await until(() => expect(snapshotOf(node).pools.get(pool)?.spec.ranges.length).toBe(ranges));
}

/** Begins an ADD, and resolves when it waits for pools. */
export async function beginWaiting(node: TestNode, pod: lab.LabPod, ifName = "eth0"): Promise<Waiting> {
  const { resources } = node.cluster;
  if (!(resources instanceof ClusterResources)) throw new Error("This node has no cluster");
  const begun = Promise.withResolvers<void>();
  const changed = resources.changed.bind(resources);
  const spy = vi.spyOn(resources, "changed").mockImplementation((signal, wait) => {
    begun.resolve();
    return changed(signal, wait);
  });
  const answer = node.add(pod, { ifName });
  answer.catch(() => {});
  try {
    await Promise.race([begun.promise, answer.then(() => expect.fail("It did not wait"))]);
  } finally {
    spy.mockRestore();
  }
  const before = node.calls.length;
  return { answer, calls: () => node.calls.slice(before) };
}

export async function explain({ cluster }: TestNode, { namespace, name }: lab.LabPod): Promise<string[]> {
  const question = { namespace, pod: name, ifName: "eth0", network: "lan" };
  return (await explainPod(cluster.ipam, question)).split("\n");
}
