/**
 * Addresses whose pods are gone and for which no DEL came, on a real API server: the test makes each sweep and moves
 * the clock.
 */
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { ApiError } from "../../host/kubernetes/kube-api.ts";
import { UNKNOWN_CONTAINER } from "../../host/registry/journal.ts";
import { AgentNode } from "../lab/cluster/agent-node.ts";
import { COOLDOWN_MS, GRACE_MS } from "../lab/cluster/collector.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import * as lab from "../lab/cluster/objects.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { recordLog } from "../world/recorded-log.ts";
import { borrowPlane } from "./borrow-plane.ts";

const DAY_MS = 86_400_000;
const HASH = "0123456789abcdef0123456789abcdef";

let world: World;
let node: AgentNode;
let podCount = 0;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
  await world.namespace("shop");
  await world.pool("blue", { subnet: "10.6.0.0/16" });
  node = await AgentNode.open(world.plane, "n1", { recorded: recordLog() });
});

afterEach(async () => {
  vi.useRealTimers();
  await world.plane.client.delete(`${lab.NAMESPACES}/shop/pods`, { gracePeriodSeconds: 0 });
  const isOthers = ({ namespace }: { namespace: string }): boolean => namespace !== "shop";
  await until("the watch has no pod", () => [...node.snapshot.pods.values()].every(isOthers));
  for (let turn = 0; turn < 2; turn++) {
    await node.reconcile();
    node.advance(GRACE_MS);
  }
  await node.reconcile();
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  expect([await node.rows(), await world.lines()], "nothing is left").toEqual([[], []]);
});

afterAll(async () => {
  await node?.close();
  await world?.stop();
});

function createPod(spec: Partial<lab.PodSpec> = {}): Promise<lab.LabPod> {
  return lab.createPod(world.plane.client, { name: `pod-${++podCount}`, node: "n1", ...spec });
}

const rowOf = async (address: string): Promise<string> => {
  const row = (await node.rows()).find((each) => each.startsWith(`${address} `));
  return row?.split(" ")[1] ?? "free";
};

const isWatched = ({ uid }: lab.LabPod): boolean => [...node.snapshot.pods.values()].some((each) => each.uid === uid);

async function deletePod(pod: lab.LabPod): Promise<void> {
  await until("the watch has seen it", () => isWatched(pod));
  await lab.deletePod(world.plane.client, pod);
  await until("the watch shows it", () => !isWatched(pod));
}

it("leak: a pod is gone and its DEL never came: the address goes at the second observation, and its object when it has cooled", async () => {
  const pod = await createPod();
  await node.attach("10.6.0.1", pod);
  await deletePod(pod);
  await node.reconcile();
  node.advance(GRACE_MS - 1_000);
  await node.reconcile();
  expect(await rowOf("10.6.0.1")).toBe("Bound");
  node.advance(1_000);
  await node.reconcile();
  expect([await rowOf("10.6.0.1"), await world.lines()]).toEqual(["Cooling", [`10.6.0.1 Bound ${pod.uid}`]]);
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  expect([await rowOf("10.6.0.1"), await world.lines()]).toEqual(["free", []]);
});

it("leak: a pod that is terminating keeps its address, however long that takes", async () => {
  const pod = await createPod();
  await world.plane.client.patch(lab.podPath(pod), { metadata: { finalizers: ["example.org/slow"] } });
  await node.attach("10.6.0.1", pod);
  await world.plane.client.delete(lab.podPath(pod), { gracePeriodSeconds: 0 });
  await until("the watch shows it", () => node.snapshot.pods.get(`shop/${pod.name}`)?.deleting === true);
  for (let turn = 0; turn < 3; turn++) {
    node.advance(GRACE_MS);
    await node.reconcile();
  }
  expect(await rowOf("10.6.0.1")).toBe("Bound");
  await world.plane.client.patch(lab.podPath(pod), { metadata: { finalizers: null } });
  await until("the watch shows it", () => !isWatched(pod));
});

it("leak: a finished Job pod gives its address back at once, without being deleted", async () => {
  const pod = await createPod();
  await node.attach("10.6.0.1", pod);
  await lab.finishPod(world.plane.client, pod);
  await until("its address cools", async () => (await rowOf("10.6.0.1")) === "Cooling");
  expect(await node.detach(pod), "a DEL that comes now finds nothing").toEqual([]);
  expect(isWatched(pod)).toBe(true);
});

it("leak: a stopped watch does not mislead: a pod recreated under the same name keeps its address, the old one's goes later", async () => {
  const old = await createPod({ name: "web" });
  await node.attach("10.6.0.1", old);
  await until("the watch shows it", () => isWatched(old));
  await node.cluster.resources.close();
  await lab.deletePod(world.plane.client, old);
  const recreated = await createPod({ name: "web" });
  await node.attach("10.6.0.2", recreated);
  for (let turn = 0; turn < 3; turn++) {
    node.advance(GRACE_MS);
    await node.reconcile();
  }
  expect([await rowOf("10.6.0.1"), await rowOf("10.6.0.2")]).toEqual(["Bound", "Bound"]);
  await node.stop();
  await node.start();
  await node.reconcile();
  node.advance(GRACE_MS);
  await node.reconcile();
  expect([await rowOf("10.6.0.1"), await rowOf("10.6.0.2")]).toEqual(["Cooling", "Bound"]);
});

it("leak: nothing goes while the API server is away, and all of it after", async () => {
  const pod = await createPod();
  await node.attach("10.6.0.1", pod);
  await deletePod(pod);
  await node.reconcile();
  node.advance(GRACE_MS);
  await world.plane.server.stop();
  // It fails, or knows already that what it watches may be old.
  await node.cluster.collector.sweep().catch(() => {});
  expect(await rowOf("10.6.0.1")).toBe("Bound");
  await world.plane.server.start();
  await until("it goes", async () => {
    await node.cluster.collector.sweep().catch(() => {});
    return (await rowOf("10.6.0.1")) === "Cooling";
  });
});

it("leak: a pod that the API server refuses to show keeps its address, and no other waits for it", async () => {
  const [hidden, gone] = [await createPod(), await createPod()];
  await node.attach("10.6.0.1", hidden);
  await node.attach("10.6.0.2", gone);
  node.api.before = async ({ method, path }) => {
    if (method !== "GET" || path !== lab.podPath(hidden)) return;
    throw new ApiError({ status: 403, reason: "Forbidden", operation: `GET ${path}`, message: "not for you" });
  };
  await deletePod(hidden);
  await deletePod(gone);
  await node.reconcile();
  node.advance(GRACE_MS);
  await node.reconcile();
  expect([await rowOf("10.6.0.1"), await rowOf("10.6.0.2")]).toEqual(["Bound", "Cooling"]);
  expect(node.lines.filter((line) => line.includes("Reading a pod was refused"))).not.toEqual([]);
  node.api.before = async () => {};
  await node.reconcile();
  node.advance(GRACE_MS);
  await node.reconcile();
  expect(await rowOf("10.6.0.1")).toBe("Cooling");
});

it("undo: an object that the API server refuses to show delays no other, and is adopted when it may be read", async () => {
  const pods = [await createPod(), await createPod()];
  for (const [index, pod] of pods.entries()) await node.attach(`10.6.0.${index + 1}`, pod);
  await node.stop();
  node.wipe();
  node.api.before = async ({ method, path }) => {
    if (method !== "GET" || path !== `${lab.ALLOCATIONS}/10.6.0.1`) return;
    throw new ApiError({ status: 403, reason: "Forbidden", operation: `GET ${path}`, message: "not for you" });
  };
  await node.start();
  expect(await node.rows()).toEqual([`10.6.0.2 Bound ${pods[1]?.uid} ${UNKNOWN_CONTAINER}`]);
  expect(node.lines.filter((line) => line.includes("Reading an allocation of this node failed"))).not.toEqual([]);
  node.api.before = async () => {};
  await node.reconcile();
  expect(await node.rows()).toEqual(
    pods.map(({ uid }, index) => `10.6.0.${index + 1} Bound ${uid} ${UNKNOWN_CONTAINER}`),
  );
});

it("leak: the time of day jumps by a day, and back: no address is collected early", async () => {
  const pod = await createPod();
  await node.attach("10.6.0.1", pod);
  await deletePod(pod);
  await node.reconcile();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + DAY_MS });
  await node.reconcile();
  vi.setSystemTime(Date.now() - 2 * DAY_MS);
  await node.reconcile();
  expect(await rowOf("10.6.0.1")).toBe("Bound");
  node.advance(GRACE_MS);
  await node.reconcile();
  expect(await rowOf("10.6.0.1")).toBe("Cooling");
});

it("static-pods: a static pod keeps its address with its mirror pod, and without it", async () => {
  const annotations = { "kubernetes.io/config.hash": HASH };
  const mirror = await createPod({ name: "etcd-n1", annotations });
  const owner = { ...mirror, uid: HASH };
  const row = await node.attach("10.6.0.1", owner, { netns: "/proc/self/ns/net" });
  const sweep = async (): Promise<void> => {
    node.advance(GRACE_MS);
    await node.reconcile();
  };
  await sweep();
  await sweep();
  expect([await rowOf("10.6.0.1"), await node.cluster.collector.isPodGone(row)]).toEqual(["Bound", false]);
  await deletePod(mirror);
  await sweep();
  await sweep();
  expect([await rowOf("10.6.0.1"), await node.cluster.collector.isPodGone(row)]).toEqual(["Bound", false]);
  expect(await node.detach(owner), "its DEL frees it").toHaveLength(1);
});

it("late-del: CNI GC takes back only what belongs to pods that are gone", async () => {
  const [live, gone] = [await createPod(), await createPod()];
  await node.attach("10.6.0.1", live);
  await node.attach("10.6.0.2", gone);
  await lab.deletePod(world.plane.client, gone);
  const released = await node.registry.releaseOthers("lab", [], node.nowMs() + 1);
  expect(released.map(({ owner }) => owner)).toEqual([gone.uid]);
  expect([await rowOf("10.6.0.1"), await rowOf("10.6.0.2")]).toEqual(["Bound", "Cooling"]);
});

it("unattached: the address of a NIC that never came goes with its pod", async () => {
  const pod = await createPod();
  await node.attach("10.6.0.1", pod);
  await node.attach("10.6.0.2", pod, { ifName: "net1", containerId: "" });
  await deletePod(pod);
  await node.reconcile();
  node.advance(GRACE_MS);
  await node.reconcile();
  expect([await rowOf("10.6.0.1"), await rowOf("10.6.0.2")]).toEqual(["Cooling", "Cooling"]);
});
