/**
 * Many Deployments at once, from their creation to their end, with the times of their pods. Their runtimes do not wait for anything: a pod's ADD
 * begins when it is bound, and one that fails is tried again as a kubelet does it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { inParallel } from "../parallel.ts";
import {
  type BoundPod,
  bindPods,
  createDeployment,
  type DeploymentSpec,
  deleteDeployment,
  reportPods,
  type SimDeployment,
  scaleDeployment,
} from "./deployments.ts";
import { type AttachedPod, attachPod, deletePod, detachPod } from "./pods.ts";
import type { World } from "./world.ts";

/** Deployments that are made, scaled or ended side by side. */
const AT_ONCE = 16;
const RETRY_MS = 1_000;
const MAX_RETRIES = 40;

export interface RolledOut {
  readonly deployment: SimDeployment;
  /** In the order of their numbers. */
  readonly pods: readonly AttachedPod[];
}

export interface RollOut {
  readonly all: readonly RolledOut[];
  /** Of the ADDs that were answered with addresses. */
  readonly addMs: readonly number[];
  /** From the pod's binding to that answer, with all ADDs before. */
  readonly waitMs: readonly number[];
  /** ADDs that were refused and tried again. */
  readonly refused: readonly Error[];
}

/** What is known of pods while they come. */
class Tally {
  readonly addMs: number[] = [];
  readonly waitMs: number[] = [];
  readonly refused: Error[] = [];

  async attach(world: World, pod: BoundPod): Promise<AttachedPod> {
    for (let retries = 0; ; retries++) {
      try {
        const attached = await attachPod(pod, world.history);
        this.addMs.push(attached.tookMs);
        this.waitMs.push(performance.now() - pod.boundMs);
        return attached;
      } catch (error) {
        if (!(error instanceof Error) || retries === MAX_RETRIES) throw error;
        this.refused.push(error);
        await sleep(RETRY_MS);
      }
    }
  }
}

/** Makes them and attaches all their pods. */
export async function rollOut(world: World, deployments: readonly DeploymentSpec[]): Promise<RollOut> {
  const tally = new Tally();
  const attaching = await inParallel(deployments, AT_ONCE, async (spec) => {
    const deployment = await createDeployment(world, spec);
    return { deployment, attaching: await addPods(world, deployment, { first: 0, last: spec.replicas, tally }) };
  });
  return finish(tally, attaching);
}

/** Scales all at once, up. */
export async function scaleUp(world: World, grown: readonly RolledOut[], replicas: number): Promise<RollOut> {
  const tally = new Tally();
  const attaching = await inParallel(grown, grown.length, async ({ deployment, pods }) => {
    await scaleDeployment(world, deployment, replicas);
    const more = await addPods(world, deployment, { first: pods.length, last: replicas, tally });
    return { deployment, attaching: [...pods.map((pod) => Promise.resolve(pod)), ...more] };
  });
  return finish(tally, attaching);
}

/** Scales all at once, down: resolves when the pods' objects are gone. */
export async function scaleDown(
  world: World,
  shrunk: readonly RolledOut[],
  replicas: number,
): Promise<readonly RolledOut[]> {
  return inParallel(shrunk, shrunk.length, async ({ deployment, pods }) => {
    await scaleDeployment(world, deployment, replicas);
    for (const pod of pods.slice(replicas)) {
      await detachPod(pod, world.history);
      await deletePod(world.plane.client, pod);
    }
    await reportPods(world, deployment, replicas);
    return { deployment, pods: pods.slice(0, replicas) };
  });
}

/** The end of all of them, each Deployment before its pods. */
export async function endAll(world: World, ended: readonly RolledOut[]): Promise<void> {
  await inParallel(ended, AT_ONCE, async ({ deployment, pods }) => {
    for (const pod of pods) await detachPod(pod, world.history);
    await deleteDeployment(world, deployment, pods);
  });
}

/** Binds them one after the other, each ADD under way before the next one is bound. Resolves when all are bound. */
async function addPods(
  world: World,
  deployment: SimDeployment,
  { first, last, tally }: { readonly first: number; readonly last: number; readonly tally: Tally },
): Promise<Promise<AttachedPod>[]> {
  const attaching: Promise<AttachedPod>[] = [];
  const onBound = (pod: BoundPod): void => {
    const attached = tally.attach(world, pod);
    attached.catch(() => {}); // Awaited by finish.
    attaching.push(attached);
  };
  await bindPods(world, deployment, { first, last, onBound });
  await reportPods(world, deployment, last);
  return attaching;
}

async function finish(
  { addMs, waitMs, refused }: Tally,
  attaching: readonly { readonly deployment: SimDeployment; readonly attaching: readonly Promise<AttachedPod>[] }[],
): Promise<RollOut> {
  const all = await Promise.all(
    attaching.map(async ({ deployment, attaching }) => ({ deployment, pods: await Promise.all(attaching) })),
  );
  return { all, addMs, waitMs, refused };
}
