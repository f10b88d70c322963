/**
 * One fault after another, of any kind, on any node, while pods come and go, in an order that a seed decides.
 */
import { expect } from "vitest";
import { seededRandom } from "../lab/cluster/api-faults.ts";
import type { LabPod } from "../lab/cluster/objects.ts";
import type { LabNode, World } from "../lab/cluster/world.ts";
import { attach, endPod, expectOwned, insist, pause, RECOVERY_MS, report, serverReady } from "./fault-questions.ts";

export interface ChaosOptions {
  readonly seed: number;
  readonly durationMs: number;
  /** Largest number of pods of a node. */
  readonly podsPerNode: number;
}

type Disturbance = (world: World, node: LabNode, random: () => number) => Promise<void>;

const WRITES = ["get", "post", "put", "delete"] as const;

/** Each ends by undoing itself. */
const DISTURBANCES: Readonly<Record<string, Disturbance>> = {
  "kills the agent": async (_, { agent }, random) => {
    await agent.kill("SIGKILL");
    await pause(500 * random());
    await agent.start();
  },
  "cuts the node off": async (_, { proxy }, random) => {
    proxy.refuse();
    await pause(2_000 * random());
    await proxy.accept();
  },
  "holds the watches": async (_, { proxy }, random) => {
    proxy.holdWatches();
    await pause(2_000 * random());
    proxy.releaseWatches();
  },
  "cuts the watches": async (_, { proxy }) => void proxy.cutWatches(),
  "loses calls": (_, node, random) => spoil(node, { kind: "reset-before" }, random),
  "loses answers": (_, node, random) => spoil(node, { kind: "reset-after" }, random),
  "slows calls": (_, node, random) => spoil(node, { kind: "delay", minMs: 0, maxMs: 1_000 }, random),
  "refuses calls": (_, node, random) =>
    spoil(node, { kind: "answer", status: 429, reason: "TooManyRequests", retryAfterS: 1 }, random),
  "restarts the API server": async ({ plane }, _, random) => {
    await plane.server.stop();
    await pause(10_000 * random() ** 2);
    await plane.server.start();
  },
  "restarts etcd": async (world, _, random) => {
    await world.plane.etcd.stop();
    await pause(2_000 * random());
    await world.plane.etcd.start();
    await serverReady(world);
  },
  "compacts history": ({ plane }) => plane.compact(),
};

async function spoil(
  { proxy }: LabNode,
  fault: Parameters<LabNode["proxy"]["rules"]["add"]>[0]["fault"],
  random: () => number,
) {
  const order = proxy.rules.add({ verbs: WRITES, probability: 0.3, fault });
  await pause(1_500 * random());
  order.remove();
}

/** Runs it, ends it, and checks the invariants afterwards. */
export async function chaos(world: World, { seed, durationMs, podsPerNode }: ChaosOptions): Promise<void> {
  const random = seededRandom(seed);
  const endMs = performance.now() + durationMs;
  const isOver = (): boolean => performance.now() >= endMs;
  const done: string[] = [];
  const lives = world
    .nodes()
    .map((node, index) => live(world, node, { isOver, podsPerNode, random: seededRandom(seed + index + 1) }));
  const names = Object.keys(DISTURBANCES);
  while (!isOver()) {
    const nodes = world.nodes();
    const node = nodes[Math.floor(random() * nodes.length)];
    const name = names[Math.floor(random() * names.length)];
    if (node === undefined || name === undefined) throw new Error("There is no node");
    done.push(`${name} (${node.name})`);
    await DISTURBANCES[name]?.(world, node, random);
    await pause(300 * random());
  }
  const quietMs = performance.now();
  const pods = (await Promise.all(lives)).flat();
  const what = `seed ${seed}: ${done.join(", ")}`;
  report(`chaos, seed ${seed}, ${done.length} faults`, { pods: pods.length, quietMs: performance.now() - quietMs });
  const wrong = await world.untilClean(RECOVERY_MS).then(
    () => "",
    ({ message }) => message,
  );
  expect(wrong, what).toBe("");
  for (const pod of pods) await expectOwned(world, pod);
}

interface LifeOptions {
  readonly podsPerNode: number;
  readonly isOver: () => boolean;
  readonly random: () => number;
}

/** One node's pods come and go until the end. Gives those that are left. */
async function live(world: World, node: LabNode, { isOver, podsPerNode, random }: LifeOptions): Promise<LabPod[]> {
  const running: LabPod[] = [];
  const moves = new Set<Promise<void>>();
  let count = 0;
  const come = async (): Promise<void> => {
    let pod: LabPod | undefined;
    // Another name each time: a call without an answer may have been carried out.
    await insist(async () => {
      pod = await world.createPod({ name: `chaos-${node.name}-${++count}`, node: node.name });
    });
    if (pod === undefined) throw new Error(`A pod of ${node.name} could not be made`);
    await attach(world, node, pod);
    running.push(pod);
  };
  while (!isOver()) {
    const pod = running.length > podsPerNode * random() ? running.shift() : undefined;
    const move = (pod === undefined ? come() : endPod(world, pod)).finally(() => moves.delete(move));
    moves.add(move);
    await pause(200 * random());
    if (moves.size >= podsPerNode) await Promise.race(moves);
  }
  await Promise.all(moves);
  return running;
}
