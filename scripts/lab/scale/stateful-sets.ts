/**
 * StatefulSets that are rolled: every pod of each is replaced by one of the same name, on another node, the last ordinal first.
 * Effects: objects in the API server; those of the pods.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeObject } from "../kube-client.ts";
import { type AttachedPod, attachPod, createPod, deletePod, detachPod, NAMESPACE, type PodWish } from "./pods.ts";
import type { World } from "./world.ts";

const SETS = `/apis/apps/v1/namespaces/${NAMESPACE}/statefulsets`;

export interface SimSet {
  readonly owner: NonNullable<PodWish["owner"]>;
  /** By ordinal. */
  readonly pods: AttachedPod[];
}

/** How long the last release may take to be known everywhere. */
const KEPT_MS = 30_000;

/** Picks a node for each pod. */
export type Scheduler = () => World["nodes"][number];

/** The set and its pods with their addresses. */
export async function startSet(world: World, name: string, replicas: number, schedule: Scheduler): Promise<SimSet> {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: "example/main:1" }] } };
  const set: KubeObject = await world.plane.client.create(SETS, {
    ...{ apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name } },
    spec: { serviceName: name, replicas, selector: { matchLabels: labels }, template },
  });
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name, uid: set.metadata.uid as string };
  const pods: AttachedPod[] = [];
  for (let ordinal = 0; ordinal < replicas; ordinal++) {
    const pod = await createPod(world.plane.client, { name: `${name}-${ordinal}`, node: schedule(), owner });
    pods.push(await attachPod(pod, world.history));
  }
  return { owner, pods };
}

/** Replaces every pod. Gives how many of them have other addresses than before. */
export async function rollSet(world: World, set: SimSet, schedule: Scheduler): Promise<number> {
  let moved = 0;
  for (let ordinal = set.pods.length - 1; ordinal >= 0; ordinal--) {
    const old = set.pods[ordinal];
    if (old === undefined) continue;
    await detachPod(old, world.history);
    await deletePod(world.plane.client, old);
    const wish = { name: old.name, node: schedule(), owner: set.owner };
    const pod = await attachPod(await createPod(world.plane.client, wish), world.history);
    if (addressesOf(pod) !== addressesOf(old)) moved++;
    set.pods[ordinal] = pod;
  }
  return moved;
}

/** Its pods go, the set stays, and so does what is kept for them: resolves when every object says so. */
export async function endSets(world: World, sets: readonly SimSet[]): Promise<void> {
  for (const pod of sets.flatMap(({ pods }) => pods)) {
    await detachPod(pod, world.history);
    await deletePod(world.plane.client, pod);
  }
  const wanted = sets.reduce((sum, { pods }) => sum + pods.length, 0);
  const deadline = performance.now() + KEPT_MS;
  for (;;) {
    await world.history.settled();
    const states = [...world.history.judge.objects.values()].map(({ spec }) => spec.state);
    if (states.length === wanted && states.every((state) => state === "Kept")) return;
    if (performance.now() > deadline) throw new Error(`${states.length} addresses, of which ${wanted} should be kept`);
    await sleep(100);
  }
}

function addressesOf({ attachments }: AttachedPod): string {
  return attachments.map(({ name }) => name).join();
}
