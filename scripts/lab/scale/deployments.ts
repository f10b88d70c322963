/**
 * Deployments as the controller manager and the scheduler leave them: the object, its ReplicaSet, pods that are bound, and the status of both,
 * each written at its moment. Nothing of it waits for Berth.
 *
 *   const web = await createDeployment(world, { name: "web", replicas: 10, annotations });
 *   await bindPods(world, web, { first: 0, last: 10, onBound: (pod) => … });
 *   await reportPods(world, web, 10);
 *   await scaleDeployment(world, web, 15);
 *   await deleteDeployment(world, web, pods);
 *
 * Effects: objects in the API server.
 */
import type { KubeClient, KubeObject } from "../kube-client.ts";
import { createPod, deletePod, NAMESPACE, type PodWish, type SimPod } from "./pods.ts";
import type { World } from "./world.ts";

const APPS = `/apis/apps/v1/namespaces/${NAMESPACE}`;

export interface DeploymentWish {
  readonly name: string;
  readonly replicas: number;
  /** Of the pods' template. */
  readonly annotations: Readonly<Record<string, string>>;
}

export interface SimDeployment extends DeploymentWish {
  readonly uid: string;
  /** The ReplicaSet, which owns the pods. */
  readonly owner: NonNullable<PodWish["owner"]>;
}

/** A pod, and when it was bound as far as this process knows: when its creation was answered. By the clock of `performance.now`. */
export type BoundPod = SimPod & { readonly boundMs: number };

/** What of a world it takes. */
type Place = Pick<World, "plane" | "nodes">;

/** The Deployment and its ReplicaSet, before any pod. */
export async function createDeployment({ plane }: Place, wish: DeploymentWish): Promise<SimDeployment> {
  const { client } = plane;
  const { name, replicas, annotations } = wish;
  const labels = { app: name };
  const template = {
    metadata: { labels, annotations },
    spec: { containers: [{ name: "main", image: "example/main:1" }] },
  };
  const spec = { replicas, selector: { matchLabels: labels }, template };
  const own = { apiVersion: "apps/v1", kind: "Deployment" };
  const deployment = await client.create(`${APPS}/deployments`, { ...own, metadata: { name }, spec });
  const { uid } = deployment.metadata;
  const ownerReferences = [{ ...own, name, uid, controller: true, blockOwnerDeletion: true }];
  const set = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${name}-5d9c7f` };
  const metadata = { name: set.name, labels, ownerReferences };
  const created = await client.create(`${APPS}/replicasets`, { ...set, metadata, spec });
  await reportDeployment(client, deployment, 0);
  return { ...wish, uid, owner: { ...set, uid: created.metadata.uid } };
}

/** Pods number `first` to `last - 1` of it, bound over all nodes. Each is told before the next one is made. */
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

/** What its controllers say when it has so many pods. */
export async function reportPods({ plane }: Place, { name }: SimDeployment, pods: number): Promise<void> {
  await reportDeployment(plane.client, await plane.client.get(`${APPS}/deployments/${name}`), pods);
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

async function reportDeployment(client: KubeClient, { metadata }: KubeObject, pods: number): Promise<void> {
  const status = { observedGeneration: metadata.generation, replicas: pods, updatedReplicas: pods };
  await client.patch(`${APPS}/deployments/${metadata.name}/status`, { status });
}

/** So that the first pods of all are not on one node. */
function hashOf(text: string): number {
  return [...text].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 9973, 7);
}
