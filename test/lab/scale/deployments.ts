/**
 * Deployments as the controller manager and the scheduler leave them: the object, its ReplicaSet, pods that are bound, and the status of both,
 * each written at its moment. Nothing of it waits for Berth.
 *
 *   const web = await createDeployment(world, { name: "web", replicas: 10, annotations });
 *   await bindPods(world, web, { first: 0, last: 10, onBound: (pod) => … });
 *   await reportPods(world, web, 10);
 *   await scaleDeployment(world, web, 15);
 *   await deleteDeployment(world, web, pods);
 */
import { createWorkload } from "../cluster/objects.ts";
import { createPod, deletePod, NAMESPACE, type SimPod, type SimPodSpec } from "./pods.ts";
import type { World } from "./world.ts";

const APPS = `/apis/apps/v1/namespaces/${NAMESPACE}`;

export interface DeploymentSpec {
  readonly name: string;
  readonly replicas: number;
  /** Of the pods' template. */
  readonly annotations: Readonly<Record<string, string>>;
}

export interface SimDeployment extends DeploymentSpec {
  readonly uid: string;
  /** The ReplicaSet, which owns the pods. */
  readonly owner: NonNullable<SimPodSpec["owner"]>;
}

/** A pod, and when it was bound as far as this process knows: when its creation was answered. By the clock of `performance.now`. */
export type BoundPod = SimPod & { readonly boundMs: number };

/** The parts of a world that a Deployment needs. */
type Place = Pick<World, "plane" | "nodes">;

/** The Deployment and its ReplicaSet, before any pod. */
export async function createDeployment({ plane }: Place, spec: DeploymentSpec): Promise<SimDeployment> {
  const { client } = plane;
  const { name, replicas, annotations } = spec;
  const options = { replicas, annotations, namespace: NAMESPACE };
  const { namespace: _, ...deployment } = await createWorkload(client, "Deployment", name, options);
  const { namespace: __, ...owner } = await createWorkload(client, "ReplicaSet", `${name}-5d9c7f`, {
    ...options,
    owner: deployment,
  });
  await reportPods({ plane }, { name }, 0);
  return { ...spec, uid: deployment.uid, owner };
}

/** Pods number `first` to `last - 1` of it, bound over all nodes. Each is reported before the next one is created. */
export async function bindPods(
  { plane, nodes }: Place,
  { name, annotations, owner }: SimDeployment,
  { first, last, onBound }: { first: number; last: number; onBound: (pod: BoundPod) => void },
): Promise<void> {
  for (let number = first; number < last; number++) {
    const node = nodes[(number + hashOf(name)) % nodes.length];
    if (node === undefined) throw new RangeError("A world without nodes");
    const pod = await createPod(plane.client, { name: `${name}-${number}`, node, annotations, owner });
    onBound({ ...pod, boundMs: performance.now() });
  }
}

/** What a person writes, and what becomes of it in the ReplicaSet. */
export async function scaleDeployment({ plane }: Place, { name, owner }: SimDeployment, replicas: number) {
  await plane.client.patch(`${APPS}/deployments/${name}`, { spec: { replicas } });
  await plane.client.patch(`${APPS}/replicasets/${owner.name}`, { spec: { replicas } });
}

/** What its controllers report when it has so many pods. */
export async function reportPods({ plane }: Pick<Place, "plane">, { name }: Pick<SimDeployment, "name">, pods: number) {
  const { metadata } = await plane.client.get(`${APPS}/deployments/${name}`);
  const status = { observedGeneration: metadata.generation, replicas: pods, updatedReplicas: pods };
  await plane.client.patch(`${APPS}/deployments/${name}/status`, { status });
}

/** The objects go: first the Deployment, then what belongs to it, as the garbage collector does it. */
export async function deleteDeployment(
  { plane }: Place,
  { name, owner }: SimDeployment,
  pods: readonly SimPod[],
): Promise<void> {
  await plane.client.delete(`${APPS}/deployments/${name}`);
  await plane.client.delete(`${APPS}/replicasets/${owner.name}`);
  for (const pod of pods) await deletePod(plane.client, pod);
}

/** So that the first pods of all are not on one node. */
function hashOf(text: string): number {
  return [...text].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 9973, 7);
}
