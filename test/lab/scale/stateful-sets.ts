/**
 * StatefulSets that are rolled: every pod of each is replaced by one of the same name, on another node, the last ordinal first.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createWorkload } from "../cluster/objects.ts";
import { type AttachedPod, attachPod, createPod, deletePod, detachPod, NAMESPACE, type SimPodSpec } from "./pods.ts";
import type { World } from "./world.ts";

export interface SimSet {
  readonly owner: NonNullable<SimPodSpec["owner"]>;
  /** By ordinal. */
  readonly pods: AttachedPod[];
}

/** How long the last release may take to be known everywhere. */
const KEPT_MS = 30_000;

/** Picks a node for each pod. */
export type Scheduler = () => World["nodes"][number];

/** The set and its pods with their addresses. */
export async function startSet(world: World, name: string, replicas: number, schedule: Scheduler): Promise<SimSet> {
  const options = { replicas, namespace: NAMESPACE };
  const { namespace: _, ...owner } = await createWorkload(world.plane.client, "StatefulSet", name, options);
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
    const spec = { name: old.name, node: schedule(), owner: set.owner };
    const pod = await attachPod(await createPod(world.plane.client, spec), world.history);
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
    await world.history.caughtUp();
    const states = [...world.history.checker.objects.values()].map(({ spec }) => spec.state);
    if (states.length === wanted && states.every((state) => state === "Kept")) return;
    if (performance.now() > deadline) throw new Error(`${states.length} addresses, of which ${wanted} should be kept`);
    await sleep(100);
  }
}

function addressesOf({ attachments }: AttachedPod): string {
  return attachments.map(({ name }) => name).join();
}
