/**
 * Five agents and two hundred pods at once on a real API server: by etcd's own history, no write breaks a rule of an
 * address.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { BERTH_PLUGIN } from "../lab/cluster/agent-node.ts";
import { type AttachedPod, attachPod, endPod } from "../lab/cluster/followed-pods.ts";
import { createWorkload, type OwnerReference } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { followHistory, type History } from "../lab/history/follow.ts";
import { inParallel } from "../lab/parallel.ts";
import { until } from "../lab/waiting.ts";
import { Seeded } from "../world/seeded.ts";
import { borrowPlane } from "./borrow-plane.ts";

const NODES = ["n1", "n2", "n3", "n4", "n5"];
/** How long a released address rests, and how soon no other pod may have one. */
const COOLDOWN = { allocationCooldown: "2s" };
const MIN_REUSE_MS = 2_000;
const SEED = Number(process.env.BERTH_SEED ?? 7);

let world: World;
let history: History;

beforeAll(async () => {
  const pools = [
    { name: "wide", subnet: "10.128.0.0/16", default: true },
    { name: "exact", subnet: "10.129.0.0/24", ips: ["10.129.0.10-10.129.0.49"], default: false },
  ];
  world = await startWorld({ startPlane: borrowPlane, settings: COOLDOWN, pools });
  history = await followHistory(world.plane.etcdUrl, { minReuseMs: MIN_REUSE_MS });
  world.defer(() => history.close());
  await inParallel(NODES, 5, (name) => world.openAgent(name, { plugin: BERTH_PLUGIN, isMaintained: true }));
});

afterEach(async () => {
  await history.caughtUp();
  expect(history.checker.breaches).toEqual([]);
});

afterAll(() => world?.stop());

/** Pods spread over all nodes. */
function createPods(prefix: string, count: number, annotations = {}) {
  const nodeOf = (index: number): string => NODES[index % NODES.length] ?? "";
  const specs = Array.from({ length: count }, (_, index) => ({ name: `${prefix}-${index}`, node: nodeOf(index) }));
  return inParallel(specs, 32, (spec) => world.createPod({ ...spec, annotations }));
}

const end = (pod: AttachedPod): Promise<void> => endPod(world, history, pod);
const stateOf = () => [...history.checker.objects.values()].map(({ spec }) => spec.state);

async function untilObjects(what: string, isSo: (states: readonly string[]) => boolean): Promise<void> {
  const caughtUp = async (): Promise<boolean> => {
    await history.caughtUp();
    return isSo(stateOf());
  };
  await until(() => `${what}; ${history.checker.objects.size} addresses have an object`, caughtUp);
}

const empty = () => untilObjects("no address has an object", ({ length }) => length === 0);

it("a hundred pods come and go, each with an address to itself, and all addresses come back", async () => {
  const pods = await createPods("life", 100);
  await inParallel(pods, 20, async (pod) => end(await attachPod(world, history, pod)));
  await empty();
  expect(history.checker.writes).toBeGreaterThanOrEqual(200);
});

it("a pool that fits exactly is used up, one pod more is refused, and the next forty wait their turn", async () => {
  const exact = { ippool: { ipv4: ["exact"] } };
  const pods = await createPods("fit", 40, exact);
  const attached = await inParallel(pods, pods.length, (pod) => attachPod(world, history, pod));
  expect(new Set(attached.flatMap(({ attachments }) => attachments.map(({ name }) => name))).size).toBe(40);
  const [more] = await createPods("more", 1, exact);
  if (more === undefined) throw new Error("One pod was created");
  await expect(attachPod(world, history, more)).rejects.toMatchObject({ code: ErrorCode.PoolExhausted });
  await inParallel(attached, 20, end);
  const next = await inParallel(await createPods("next", 40, exact), 40, (pod) => attachPod(world, history, pod));
  await inParallel(next, 20, end);
  await empty();
});

it("the pods of StatefulSets that are rolled at once keep their addresses, on whichever node", async () => {
  const chance = new Seeded(SEED);
  const member = async (owner: OwnerReference, ordinal: number): Promise<AttachedPod> => {
    const name = `${owner.name}-${ordinal}`;
    const pod = await world.createPod({ name, node: chance.pick(NODES), owner });
    return attachPod(world, history, pod, `${owner.uid}/${name}`);
  };
  const roll = async (name: string): Promise<AttachedPod[]> => {
    const { namespace: _, ...owner } = await createWorkload(world.client, "StatefulSet", name, { replicas: 5 });
    const pods: AttachedPod[] = [];
    for (let ordinal = 0; ordinal < 5; ordinal++) pods.push(await member(owner, ordinal));
    for (const [ordinal, old] of [...pods.entries()].reverse()) {
      await end(old);
      const pod = await member(owner, ordinal);
      expect(pod.attachments.map(({ name }) => name)).toEqual(old.attachments.map(({ name }) => name));
      pods[ordinal] = pod;
    }
    return pods;
  };
  const pods = (await Promise.all(["a", "b", "c", "d"].map(roll))).flat();
  await inParallel(pods, 20, end);
  await untilObjects("all are kept", (states) => states.length === 20 && states.every((state) => state === "Kept"));
});
