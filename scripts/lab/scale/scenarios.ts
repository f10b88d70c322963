/**
 * What happens to many agents at once, and the figures of it. Whether the figures are good enough is for the tests to say.
 * Called by the tests of scale, small in the gate and large in the long ones.
 * Effects: those of the pods.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { inParallel } from "../parallel.ts";
import { createBare, deleteBare } from "./bare.ts";
import { type ApiUse, sumUse, useSince } from "./counted-api.ts";
import { type AttachedPod, attachPod, createPod, deletePod, detachPod, type SimPod } from "./pods.ts";
import type { World } from "./world.ts";

export interface ClaimRate {
  readonly claimsPerSecond: number;
  readonly barePerSecond: number;
  readonly addMs: readonly number[];
  readonly bareMs: readonly number[];
  readonly use: ApiUse;
}

/** How many calls for objects of pods are under way while nothing is measured. */
const PODS_AT_ONCE = 32;
/** How long the last release may take to be known everywhere. */
const EMPTY_MS = 60_000;
/** How long a runtime takes from the pod's binding to its ADD. */
const SANDBOX_MS = 300;

/** `count` pods that are there, spread over all nodes. */
export function createPods(world: World, count: number, pool?: string, prefix = "pod"): Promise<SimPod[]> {
  const { nodes, plane } = world;
  const annotations = pool === undefined ? {} : { "ipam.vendor.io/ippool": JSON.stringify({ ipv4: [pool] }) };
  return inParallel(Array.from({ length: count }), PODS_AT_ONCE, (_, index) => {
    const node = nodes[index % nodes.length];
    if (node === undefined) throw new RangeError("A world without nodes");
    return createPod(plane.client, { name: `${prefix}-${index}`, node, annotations });
  });
}

/** DEL and the end of all pods' objects. */
export async function endPods(world: World, pods: readonly AttachedPod[]): Promise<number[]> {
  return inParallel(pods, PODS_AT_ONCE, async (pod) => {
    const tookMs = await detachPod(pod, world.history);
    await deletePod(world.plane.client, pod);
    return tookMs;
  });
}

/** Claims and bare creates in turns of `batch`, each with `atOnce` under way: what disturbs one disturbs the other. */
export async function measureClaims(
  world: World,
  pods: readonly SimPod[],
  { batch, atOnce }: { batch: number; atOnce: number },
): Promise<ClaimRate & { readonly attached: readonly AttachedPod[] }> {
  const attached: AttachedPod[] = [];
  const bareMs: number[] = [];
  const uses: ApiUse[] = [];
  let [claimingMs, creatingMs] = [0, 0];
  for (let first = 0; first < pods.length; first += batch) {
    const some = pods.slice(first, first + batch);
    creatingMs += await timed(async () =>
      bareMs.push(...(await createBare(world.nodes, { first, count: some.length, atOnce }))),
    );
    const before = sumUse([world.use()]);
    claimingMs += await timed(async () =>
      attached.push(...(await inParallel(some, atOnce, (pod) => attachPod(pod, world.history)))),
    );
    uses.push(useSince(world.use(), before));
    await world.history.settled();
  }
  await deleteBare(world.nodes, pods.length, atOnce);
  return {
    claimsPerSecond: (pods.length * 1000) / claimingMs,
    barePerSecond: (pods.length * 1000) / creatingMs,
    addMs: attached.map(({ tookMs }) => tookMs),
    bareMs,
    use: sumUse(uses),
    attached,
  };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

export interface Lives {
  readonly addMs: readonly number[];
  readonly delMs: readonly number[];
  readonly seconds: number;
  readonly use: ApiUse;
}

/**
 * `count` pods from the binding to the end, `atOnce` of them at any time: the object, the time of the sandbox, the ADD, the DEL, the
 * object's end; then the last addresses' rest. With a network definition on the nodes the agents claim while the sandbox is made.
 */
export async function livePods(
  world: World,
  { count, atOnce, prefix }: { count: number; atOnce: number; prefix: string },
): Promise<Lives> {
  const { nodes, plane, history } = world;
  const before = sumUse([world.use()]);
  const [addMs, delMs]: [number[], number[]] = [[], []];
  const tookMs = await timed(() =>
    inParallel(Array.from({ length: count }), atOnce, async (_, index) => {
      const node = nodes[index % nodes.length];
      if (node === undefined) throw new RangeError("A world without nodes");
      const pod = await createPod(plane.client, { name: `${prefix}-${index}`, node });
      await sleep(SANDBOX_MS);
      const attached = await attachPod(pod, history);
      addMs.push(attached.tookMs);
      delMs.push(await detachPod(attached, history));
      await deletePod(plane.client, pod);
    }),
  );
  await world.empty(EMPTY_MS);
  return { addMs, delMs, seconds: tookMs / 1000, use: useSince(world.use(), before) };
}

/** All at once; those that are refused are told with the reason. */
export async function attachAll(
  world: World,
  pods: readonly SimPod[],
): Promise<{ attached: AttachedPod[]; refused: Error[]; seconds: number; use: ApiUse }> {
  const before = sumUse([world.use()]);
  const startMs = performance.now();
  const outcomes = await Promise.allSettled(pods.map((pod) => attachPod(pod, world.history)));
  const seconds = (performance.now() - startMs) / 1000;
  return {
    attached: outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : [])),
    refused: outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : [])),
    seconds,
    use: useSince(world.use(), before),
  };
}
