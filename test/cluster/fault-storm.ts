/**
 * Pods that come and go on all nodes while something is wrong, and what must be true afterwards: no address twice,
 * none lost, every pod that should run has its address in time. The tests in the gate and the long ones share it.
 */
import { expect } from "vitest";
import type { LabPod } from "../lab/cluster/objects.ts";
import type { LabNode, World } from "../lab/cluster/world.ts";
import { inParallel } from "../lab/parallel.ts";
import { attach, endPod, expectOwned, pause, RECOVERY_MS, report, startPod } from "./fault-questions.ts";

/** Calls of plugins at once on one node, while pods are started before a storm. */
const AT_ONCE = 4;

export interface StormOptions {
  /** For the names of its pods and what it prints. */
  readonly name: string;
  /** Number of each node's pods that come, and of earlier ones that go. */
  readonly pods: number;
  /** The ADDs and DELs are spread over this time. */
  readonly durationMs: number;
  /** Causes a disturbance meanwhile, which is over when this resolves. Default: none. */
  readonly disturb?: () => Promise<void>;
  /**
   * Pods are made one by one just before their ADD, not before the storm: for faults between the agents and an API
   * server that runs.
   */
  readonly isFresh?: boolean;
}

export interface StormOutcome {
  /** The pods that should run. */
  readonly running: readonly LabPod[];
  /** From the end of the disturbance to the last ADD's answer; negative when that came before. */
  readonly attachedMs: number;
  /** The longest time from a pod's first ADD to its address. */
  readonly slowestMs: number;
  /** From the end of the storm to a clean audit. */
  readonly cleanMs: number;
}

/** Runs it and checks what must be true afterwards. */
export async function storm(world: World, options: StormOptions): Promise<StormOutcome> {
  const { name, pods, disturb = async () => {}, isFresh = false } = options;
  const leaving = await startPods(world, `${name}-old`, pods);
  // Bound, and no agent has received their events: nothing was claimed ahead. The events pass when the disturbance
  // begins.
  if (!isFresh) for (const { proxy } of world.nodes()) proxy.holdWatches();
  const coming = isFresh ? [] : await createPods(world, `${name}-new`, pods);
  let endedMs = Number.POSITIVE_INFINITY;
  const disturbance = disturb().then(() => {
    endedMs = performance.now();
  });
  for (const { proxy } of world.nodes()) proxy.releaseWatches();
  const gusts = world.nodes().map((node) => blow(world, node, { ...options, coming, leaving }));
  const running = (await Promise.all([disturbance, ...gusts])).flatMap((came) => came ?? []);
  const attachedMs = Math.max(...running.map(({ atMs }) => atMs)) - endedMs;
  const slowestMs = Math.max(...running.map(({ tookMs }) => tookMs));
  const cleanMs = await world.untilClean(RECOVERY_MS);
  report(name, { attachedMs, slowestMs, cleanMs });
  expect(attachedMs).toBeLessThan(RECOVERY_MS);
  for (const { pod } of running) await expectOwned(world, pod);
  return { running: running.map(({ pod }) => pod), attachedMs, slowestMs, cleanMs };
}

interface Gust extends StormOptions {
  readonly coming: readonly LabPod[];
  readonly leaving: readonly LabPod[];
}

/** One node's pods: one comes and one goes, again and again. */
async function blow(world: World, node: LabNode, { name, pods, durationMs, coming, leaving }: Gust) {
  const isHere = (pod: LabPod): boolean => pod.node === node.name;
  const [come, go] = [coming.filter(isHere), leaving.filter(isHere)];
  const arrivals: Promise<{ pod: LabPod; atMs: number; tookMs: number }>[] = [];
  const departures: Promise<void>[] = [];
  for (let index = 0; index < pods; index++) {
    const known = come[index];
    const arrive = async () => {
      const pod = known ?? (await world.createPod({ name: `${name}-new-${node.name}-${index}`, node: node.name }));
      const { tookMs, atMs } = await attach(world, node, pod);
      return { pod, tookMs, atMs };
    };
    arrivals.push(arrive());
    const gone = go[index];
    if (gone !== undefined) departures.push(endPod(world, gone));
    await pause(durationMs / pods);
  }
  await Promise.all(departures);
  return Promise.all(arrivals);
}

/** Pods of all nodes that run. */
export async function startPods(world: World, prefix: string, count: number): Promise<LabPod[]> {
  const started: LabPod[] = [];
  const start = (node: LabNode) =>
    inParallel([...Array(count).keys()], AT_ONCE, async (index) => {
      started.push(await startPod(world, node.name, `${prefix}-${node.name}-${index}`));
    });
  await Promise.all(world.nodes().map(start));
  return started;
}

/** Pods of all nodes that are bound, and no more. */
export async function createPods(world: World, prefix: string, count: number): Promise<LabPod[]> {
  const made: LabPod[] = [];
  for (const { name } of world.nodes())
    for (let index = 0; index < count; index++)
      made.push(await world.createPod({ name: `${prefix}-${name}-${index}`, node: name }));
  return made;
}

/** The API server is away for that long in a storm that lasts as long. */
export async function stopServerInStorm(
  world: World,
  options: { pods: number; stoppedMs: number },
): Promise<StormOutcome> {
  const disturb = async (): Promise<void> => {
    await world.plane.server.stop();
    await pause(options.stoppedMs);
    await world.plane.server.start();
  };
  const outcome = await storm(world, { name: "stopped", pods: options.pods, durationMs: options.stoppedMs, disturb });
  // Otherwise the outage was not felt.
  expect(outcome.slowestMs).toBeGreaterThan(options.stoppedMs / 2);
  return outcome;
}
