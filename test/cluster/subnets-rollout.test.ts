/**
 * Rollouts of workloads whose pods end slowly, in generated pools, with an agent and the controller's account. The test
 * is the controllers of Kubernetes: it makes and deletes pods, and writes what their controllers would report.
 */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { startSubnets } from "../../host/controller/subnets/subnets-controller.ts";
import * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { add, openAgents } from "./workloads.ts";

const APPS = "/apis/apps/v1/namespaces/shop";
const GRACE_S = 300;

let world: World;
let annotations: Readonly<Record<string, string>> = {};

beforeAll(async () => {
  world = await openAgents(["n1"]);
  await world.subnet("red", { subnet: "10.9.0.0/24" });
  await world.subnet("tiny", { subnet: "10.9.1.0/29", gateway: "10.9.1.1" });
  await world.lead({ subnets: startSubnets, conditions: startConditions, finalizers: startFinalizers });
}, 120_000);
afterEach(async () => {
  for (const plural of ["deployments", "replicasets", "daemonsets"]) {
    const { items } = await world.client.get(`${APPS}/${plural}`);
    for (const { metadata } of items) await world.client.delete(`${APPS}/${plural}/${metadata.name}`);
  }
  await world.clear();
  await vi.waitFor(async () => expect(await wanted()).toEqual([]), { timeout: 90_000, interval: 200 });
});
afterAll(() => world?.stop());

const eventually = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 30_000, interval: 20 });

/** The generated pools. */
const pools = async (): Promise<KubeObject[]> =>
  (await world.client.get(lab.POOLS)).items.filter(({ spec }: KubeObject) => spec.generated !== undefined);

const wanted = async (): Promise<readonly string[]> =>
  (await pools()).map(({ spec }) => `${spec.generated.wanted}: ${spec.generated.reason}`);

const untilWanted = (text: string): Promise<void> => eventually(async () => expect(await wanted()).toEqual([text]));

const report = (path: string, status: object): Promise<KubeObject> =>
  world.client.patch(`${APPS}/${path}/status`, { status });

const subnet = (name: string) => ({ "ipam.vendor.io/subnet": JSON.stringify({ ipv4: [name] }), ...annotations });

const pod = (name: string, owner: lab.OwnerReference, of = "red"): Promise<lab.LabPod> => {
  const { apiVersion, kind, name: by, uid } = owner;
  return world.createPod({ name, node: "n1", annotations: subnet(of), owner: { apiVersion, kind, name: by, uid } });
};

/** As a Deployment's controller does: the pod has its grace period, and keeps its sandbox meanwhile. */
const end = (of: lab.LabPod): Promise<KubeObject> =>
  world.client.delete(lab.podPath(of), { gracePeriodSeconds: GRACE_S, preconditions: { uid: of.uid } });

/** A Deployment of three with its pods, and the ReplicaSet of its next version. */
async function threeReplicas(of: string) {
  const options = { replicas: 3, annotations: subnet(of) };
  const web = await lab.createWorkload(world.client, "Deployment", "web", options);
  const owner = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: web.uid };
  const old = await lab.createWorkload(world.client, "ReplicaSet", "web-1", { ...options, owner });
  await report("deployments/web", { observedGeneration: 1, replicas: 3, updatedReplicas: 3 });
  await eventually(async () => expect(await pools()).toHaveLength(1));
  const pods: lab.LabPod[] = [];
  for (const name of ["web-1-a", "web-1-b", "web-1-c"]) pods.push(await pod(name, old, of));
  for (const each of pods) await add(world, each);
  return { pods, owner, options };
}

test("a Deployment of three with default settings and a grace of 300 s is rolled out without a wait", async () => {
  const { pods, owner, options } = await threeReplicas("red");
  expect(await wanted()).toEqual(["4: 3 replicas and 1 more"]);
  await world.client.patch(`${APPS}/deployments/web`, {
    spec: { template: { metadata: { annotations: { version: "2" } } } },
  });
  const next = await lab.createWorkload(world.client, "ReplicaSet", "web-2", { ...options, replicas: 1, owner });
  const young: lab.LabPod[] = [];
  const took: number[] = [];
  for (const [at, old] of pods.entries()) {
    // One more than replicas, then one of the former version goes.
    await report("deployments/web", { observedGeneration: 2, replicas: 4, updatedReplicas: at + 1 });
    const made = await pod(`web-2-${at}`, next);
    const beganMs = performance.now();
    await eventually(async () => void (await add(world, made)));
    took.push(performance.now() - beganMs);
    young.push(made);
    await end(old);
  }
  expect(Math.max(...took)).toBeLessThan(5_000);
  await report("deployments/web", { observedGeneration: 2, replicas: 3, updatedReplicas: 3 });
  expect((await world.allocations()).filter(({ spec }) => spec.state === "Bound")).toHaveLength(6);
  for (const each of pods) await world.endPod(each);
  // It shrinks by itself.
  await untilWanted("4: 3 replicas and 1 more");
  await eventually(async () => expect((await pools())[0]?.status?.total ?? 4).toBe(4));
  for (const each of young) await world.endPod(each);
}, 120_000);

test("the pods of a DaemonSet with maxSurge and of kinds that are not followed count, too, while they are ending", async () => {
  const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
  const updateStrategy = { type: "RollingUpdate", rollingUpdate };
  const set = await lab.createWorkload(world.client, "DaemonSet", "web", {
    annotations: subnet("red"),
    more: { updateStrategy, replicas: undefined },
  });
  const counts = { currentNumberScheduled: 1, numberMisscheduled: 0, numberReady: 1 };
  const status = { observedGeneration: 1, desiredNumberScheduled: 1, updatedNumberScheduled: 1 };
  await report("daemonsets/web", { ...counts, ...status });
  await untilWanted("2: 1 node and 1 more");
  const first = await pod("web-a", set);
  await add(world, first);
  await end(first);
  await untilWanted("3: 1 node and 1 more, and 1 of pods that are ending");
  await world.endPod(first);
  await untilWanted("2: 1 node and 1 more");
  await world.client.delete(`${APPS}/daemonsets/web`);
  const clones = { apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet", name: "web", uid: crypto.randomUUID() };
  const [one, other] = [await pod("web-b", clones), await pod("web-c", clones)];
  await eventually(async () => expect(await wanted()).toContain("3: 2 pods and 1 more"));
  await add(world, one);
  await end(one);
  await eventually(async () => expect(await wanted()).toContain("3: 1 pod and 1 more, and 1 of pods that are ending"));
  for (const each of [one, other]) await world.endPod(each);
}, 120_000);

test.each([
  [
    "of a fixed size is refused, by name of those that are ending",
    "4",
    "red",
    /4 as ippool-ip-number says; 2 of them are of pods that are ending: web-1-a, web-1-b/,
  ],
  [
    "of a full Subnet is refused, by name of those that are ending",
    "+1",
    "tiny",
    /has 5 of 6 addresses wanted \(3 replicas and 1 more, and 2 of pods that are ending: web-1-a, web-1-b\): Subnet "tiny" has 0 free/,
  ],
])(
  "a new pod %s",
  async (_what, number, of, told) => {
    annotations = { "ipam.vendor.io/ippool-ip-number": number };
    const { pods, owner, options } = await threeReplicas(of);
    const next = await lab.createWorkload(world.client, "ReplicaSet", "web-2", { ...options, owner });
    for (const old of pods.slice(0, 2)) await end(old);
    const young: lab.LabPod[] = [];
    for (const name of of === "red" ? ["web-2-a"] : ["web-2-a", "web-2-b"]) young.push(await pod(name, next, of));
    for (const each of young) await eventually(async () => void (await add(world, each)));
    const refused = await pod("web-2-c", next, of);
    await eventually(() =>
      expect(add(world, refused)).rejects.toMatchObject({ code: 101, message: expect.stringMatching(told) }),
    );
    await world.deletePod(refused);
    for (const each of [...pods, ...young]) await world.endPod(each);
    annotations = {};
  },
  120_000,
);
