/** Questions that the fault tests ask of a world repeatedly, and the figures that they print. */
import { expect } from "vitest";
import { type LabPod, SYSTEM } from "../lab/cluster/objects.ts";
import type { LabNode, World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { inParallel } from "../lab/parallel.ts";
import { until } from "../lab/waiting.ts";

/** After a fault is over, every pod that should run has its address within this time. */
export const RECOVERY_MS = 10_000;

/** Pods that end at once. */
const ENDS_AT_ONCE = 8;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Repeats work that needs the API server until it has answered; a 404 is an answer. */
export async function insist(work: () => Promise<void>, limitMs = 60_000): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Error && "status" in error && error.status === 404) return;
      if (performance.now() > deadline) throw error;
      await pause(100);
    }
  }
}

/** A figure of a test, on its output. */
export function report(name: string, figures: Record<string, number>): void {
  const texts = Object.entries(figures).map(([key, value]) => `${key} ${Math.round(value)}`);
  console.log(`${name}: ${texts.join(", ")}`);
}

/** The objects that name the pod. */
export async function objectsOf(world: World, { uid }: LabPod): Promise<KubeObject[]> {
  const objects = await world.allocations();
  return objects.filter(({ spec }) => spec.holders?.some(({ podUID }: KubeObject) => podUID === uid));
}

/** The pod has one object with the address that its NIC has. */
export async function expectOwned(world: World, pod: LabPod): Promise<void> {
  const live = world.ledger.find(pod, "eth0")?.addresses ?? [];
  expect(live, `${pod.name} has no address`).toHaveLength(1);
  expect((await objectsOf(world, pod)).map(({ spec }) => spec.address)).toEqual(live);
}

export interface Arrival {
  readonly address: string;
  /** From the first ADD to the answer that has the address. */
  readonly tookMs: number;
  /** When that answer came: performance.now(). */
  readonly atMs: number;
}

/** Until it has its address, and the API server knows that it runs; throws when it gets none. */
export async function attach(world: World, node: LabNode, pod: LabPod): Promise<Arrival> {
  const { addresses, attempts, refusal, tookMs } = await node.runtime.attach(pod);
  const atMs = performance.now();
  const [address] = addresses;
  if (address === undefined) throw new Error(`${pod.name} got no address in ${attempts} attempts: ${refusal}`);
  await insist(() => world.setRunning(pod));
  return { address, tookMs, atMs };
}

export async function startPod(world: World, node: string, name: string): Promise<LabPod> {
  const pod = await world.createPod({ name, node });
  await attach(world, world.node(node), pod);
  return pod;
}

/** DEL, and the object goes. */
export async function endPod(world: World, pod: LabPod): Promise<void> {
  await world.node(pod.node).runtime.detach(pod);
  await insist(() => world.deletePod(pod));
}

/** An agent that had spooled DELs before it knew the settings lets their addresses cool for the default time. */
const DRAIN_MS = 45_000;

/** All pods of the world end; nothing is left, not even cooling addresses. */
export async function drainAll(world: World): Promise<void> {
  await endAll(world);
  report("drained", { tookMs: await world.untilEmpty(DRAIN_MS) });
}

/** All pods of the world end but the agents' own; only cooling addresses are left. */
export async function endAll(world: World): Promise<void> {
  const { items } = await world.client.get("/api/v1/pods");
  const end = ({ metadata: { namespace, name, uid }, spec }: KubeObject) =>
    endPod(world, { namespace, name, uid, node: spec.nodeName });
  const isTested = ({ metadata }: KubeObject): boolean => metadata.namespace !== SYSTEM;
  await inParallel(items.filter(isTested), ENDS_AT_ONCE, end);
  await world.untilClean();
}

/** Resolves when the API server says that it is ready. */
export async function serverReady(world: World): Promise<void> {
  const ask = async () => (await world.client.text("/readyz").catch(() => "")) === "ok";
  await until("the API server is ready", ask);
}
