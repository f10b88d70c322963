/**
 * Pools of Subnets that the test makes as the controller would: with its account, empty first. The workloads are
 * plain objects, which no controller follows.
 */
import { expect, vi } from "vitest";
import { ClusterResources } from "../../host/agent/cluster/resources.ts";
import type { AgentNode } from "../lab/cluster/agent-node.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import * as lab from "../lab/cluster/objects.ts";
import { openAsController } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";

/** The owner of generated pools, and what its pods name as their controller. */
export interface Workload {
  readonly application: lab.OwnerReference & { readonly namespace: string };
  readonly controller: lab.OwnerReference;
}

const WANTED = { wanted: 2, reason: "1 replica and 1 more" };

interface PoolOptions {
  /** Default: blue, of 10.6.0.0/24. */
  readonly subnet?: string;
  readonly network?: string;
  readonly ips?: readonly string[];
  readonly nic?: string;
}

/** An ADD under way that waits. */
interface Waiting {
  readonly answer: ReturnType<AgentNode["add"]>;
  /** Calls of the API server since it waits. */
  calls(): readonly string[];
}

export class SubnetPools {
  readonly world: World;
  readonly #controller: KubeClient;

  private constructor(world: World, controller: KubeClient) {
    this.world = world;
    this.#controller = controller;
  }

  static async open(): Promise<SubnetPools> {
    const world = await startWorld({ startPlane: borrowPlane, settings: { allocationCooldown: "30s" } });
    const controller = await openAsController(world.plane);
    world.defer(() => controller.close());
    for (const [name, subnet] of Object.entries({ blue: "10.6.0.0/24", green: "10.7.0.0/24" }))
      await world.subnet(name, { subnet });
    await followWorld(world, { endsWithPods: true });
    return new SubnetPools(world, controller);
  }

  /** A Deployment and its ReplicaSet. */
  async deployment(name: string): Promise<Workload> {
    const application = await lab.createWorkload(this.world.client, "Deployment", name, { replicas: 1 });
    const { namespace: _, ...owner } = application;
    const { namespace: __, ...controller } = await lab.createWorkload(this.world.client, "ReplicaSet", `${name}-5d`, {
      replicas: 1,
      owner,
    });
    return { application, controller };
  }

  /** Empty, as the controller makes it, and then filled. */
  async pool(name: string, { application }: Workload, options: PoolOptions = {}): Promise<void> {
    const { subnet = "blue", network = "10.6.0.0/24", nic = "eth0", ips } = options;
    const generated = { subnet, application, interface: nic, reclaim: true, ...WANTED };
    await this.#controller.create(lab.POOLS, lab.berthObject("IPPool", name, { subnet: network, ips: [], generated }));
    if (ips !== undefined) await this.fill(name, ips);
  }

  async fill(name: string, ips: readonly string[]): Promise<void> {
    await this.#controller.patch(`${lab.POOLS}/${name}`, { spec: { ips } });
  }

  /** As the controller's conditions say it. */
  async reportShortfall(name: string, message: string): Promise<void> {
    const condition = { type: "Supplied", status: "False", reason: "SubnetFull", message, observedGeneration: 1 };
    const conditions = [{ ...condition, lastTransitionTime: "2026-11-20T20:00:00Z" }];
    await this.#controller.patch(`${lab.POOLS}/${name}/status`, { status: { conditions } });
  }

  async remove(name: string): Promise<void> {
    await this.#controller.patch(`${lab.POOLS}/${name}`, { metadata: { finalizers: [] } });
    await this.#controller.delete(`${lab.POOLS}/${name}`);
  }

  /** Bound to the node, of the workload's first Subnets. Resolves when the node knows it. */
  async pod(node: AgentNode, name: string, spec: Partial<lab.PodSpec> & { of?: Workload } = {}): Promise<lab.LabPod> {
    const { of, ...rest } = spec;
    const owner = of === undefined ? {} : { owner: of.controller };
    const annotations = { subnet: { ipv4: ["blue"] } };
    const pod = await this.world.bindPod({ name, node: node.name, annotations, ...owner, ...rest });
    await until(`${node.name} knows ${name}`, () => node.snapshot.pods.get(`shop/${name}`)?.uid === pod.uid);
    return pod;
  }
}

/** Resolves when the node knows the pool as the test does. */
export async function known(node: AgentNode, pool: string, ranges: number): Promise<void> {
  await until(`${node.name} knows ${pool}`, () => node.snapshot.pools.get(pool)?.spec.ranges.length === ranges);
}

/** Begins an ADD, and resolves when it waits for pools. */
export async function beginWaiting(node: AgentNode, pod: lab.LabPod): Promise<Waiting> {
  const { resources } = node.cluster;
  if (!(resources instanceof ClusterResources)) throw new Error("This node has no cluster");
  const begun = Promise.withResolvers<void>();
  const changed = resources.changed.bind(resources);
  const spy = vi.spyOn(resources, "changed").mockImplementation((signal, wait) => {
    begun.resolve();
    return changed(signal, wait);
  });
  const answer = node.add(pod);
  answer.catch(() => {});
  try {
    await Promise.race([begun.promise, answer.then(() => expect.fail("It did not wait"))]);
  } finally {
    spy.mockRestore();
  }
  const before = node.api.calls.length;
  return { answer, calls: () => node.api.calls.slice(before) };
}
