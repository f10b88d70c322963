/**
 * Five agents and two hundred pods at once on a real API server: by etcd's own history, no write breaks a rule of an
 * address.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { ErrorCode } from "../../host/cni/error.ts";
import { BERTH_PLUGIN } from "../lab/cluster/agent-node.ts";
import { type FollowedWorld, followWorld } from "../lab/cluster/followed-world.ts";
import { createWorkload, type LabPod, type OwnerReference } from "../lab/cluster/objects.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { inParallel } from "../lab/parallel.ts";
import { until } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";
import { Seeded } from "../world/seeded.ts";
import { borrowPlane } from "./borrow-plane.ts";

const NODES = ["n1", "n2", "n3", "n4", "n5"];
/** Cooldown of a released address, and the shortest time until another pod may have one. */
const COOLDOWN = { allocationCooldown: "2s" };
const MIN_REUSE_MS = 2_000;
const SEED = Number(process.env.BERTH_SEED ?? 7);

let world: World;
let followed: FollowedWorld;

beforeAll(async () => {
  const pools = [
    { name: "wide", subnet: "10.128.0.0/16", default: true },
    { name: "exact", subnet: "10.129.0.0/24", ips: ["10.129.0.10-10.129.0.49"], default: false },
  ];
  world = await startWorld({ startPlane: borrowPlane, settings: COOLDOWN, pools });
  followed = await followWorld(world, { minReuseMs: MIN_REUSE_MS });
  await inParallel(NODES, 5, (name) => world.openAgent(name, { plugin: BERTH_PLUGIN, isMaintained: true }));
});

afterEach(() => followed.check());

afterAll(() => world?.stop());

/** Pods spread over all nodes. */
function createPods(prefix: string, count: number, annotations = {}) {
  const nodeOf = (index: number): string => NODES[index % NODES.length] ?? "";
  const specs = Array.from({ length: count }, (_, index) => ({ name: `${prefix}-${index}`, node: nodeOf(index) }));
  return inParallel(specs, 32, (spec) => world.createPod({ ...spec, annotations }));
}

interface AttachedPod {
  readonly pod: LabPod;
  readonly ips: readonly string[];
}

const attach = async (pod: LabPod): Promise<AttachedPod> => ({ pod, ips: (await world.agent(pod.node).add(pod)).ips });
const end = ({ pod }: AttachedPod): Promise<void> => world.endPod(pod);
const stateOf = () => [...followed.history.checker.objects.values()].map(({ spec }) => spec.state);

async function untilObjects(what: string, isSo: (states: readonly string[]) => boolean): Promise<void> {
  const caughtUp = async (): Promise<boolean> => {
    await followed.history.caughtUp();
    return isSo(stateOf());
  };
  await until(() => `${what}; ${followed.history.checker.objects.size} addresses have an object`, caughtUp);
}

const empty = () => untilObjects("no address has an object", ({ length }) => length === 0);

itLong("a hundred pods come and go, each with an address to itself, and all addresses come back", async () => {
  const pods = await createPods("life", 100);
  await inParallel(pods, 20, async (pod) => end(await attach(pod)));
  await empty();
  expect(followed.history.checker.writes).toBeGreaterThanOrEqual(200);
});

it("prefetch: an ADD of what was claimed ahead asks the API server for no address", async () => {
  const node = world.agent("n1");
  const claims = () => node.api.calls.filter((call) => call.includes("ipallocations"));
  const pod = await world.bindPod({ name: "ahead", node: "n1" });
  await until("it is claimed ahead", () => node.aheadOf(pod).length > 0);
  const [ahead, before] = [node.aheadOf(pod), claims()];
  const { ips } = await node.add(pod);
  expect([ips, claims()]).toEqual([ahead, before]);
  await world.endPod(pod);
  await empty();
});

it("a pool that fits exactly is used up, one pod more is refused, and the next forty wait their turn", async () => {
  const exact = { ippool: { ipv4: ["exact"] } };
  const pods = await createPods("fit", 40, exact);
  const attached = await inParallel(pods, pods.length, (pod) => attach(pod));
  expect(new Set(attached.flatMap(({ ips }) => ips)).size).toBe(40);
  const [more] = await createPods("more", 1, exact);
  if (more === undefined) throw new Error("One pod was created");
  await expect(attach(more)).rejects.toMatchObject({ code: ErrorCode.PoolExhausted });
  // It would get one of the forty: it waits longer than the next ones.
  await world.endPod(more);
  await inParallel(attached, 20, end);
  const next = await inParallel(await createPods("next", 40, exact), 40, (pod) => attach(pod));
  await inParallel(next, 20, end);
  await empty();
});

itLong("the pods of StatefulSets that are rolled at once keep their addresses, on whichever node", async () => {
  const chance = new Seeded(SEED);
  const member = async (owner: OwnerReference, ordinal: number): Promise<AttachedPod> => {
    const name = `${owner.name}-${ordinal}`;
    const pod = await world.createPod({ name, node: chance.pick(NODES), owner });
    return attach(pod);
  };
  const roll = async (name: string): Promise<AttachedPod[]> => {
    const { namespace: _, ...owner } = await createWorkload(world.client, "StatefulSet", name, { replicas: 5 });
    const pods: AttachedPod[] = [];
    for (let ordinal = 0; ordinal < 5; ordinal++) pods.push(await member(owner, ordinal));
    for (const [ordinal, old] of [...pods.entries()].reverse()) {
      await end(old);
      const pod = await member(owner, ordinal);
      expect(pod.ips).toEqual(old.ips);
      pods[ordinal] = pod;
    }
    return pods;
  };
  const pods = (await Promise.all(["a", "b", "c", "d"].map(roll))).flat();
  await inParallel(pods, 20, end);
  await untilObjects("all are kept", (states) => states.length === 20 && states.every((state) => state === "Kept"));
});
