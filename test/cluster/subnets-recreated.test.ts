/**
 * Generated pools of workloads that are created again around their running pods (`kubectl delete --cascade=orphan`),
 * with agents and the controller's account. The test is the controllers of Kubernetes: it takes owner references off,
 * and puts them on.
 */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { startSubnets } from "../../host/controller/subnets/subnets-controller.ts";
import { leadAddressOwners } from "../lab/cluster/collector.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { add, openAgents } from "./workloads.ts";

const APPS = "/apis/apps/v1/namespaces/shop";
const ANNOTATIONS = { subnet: { ipv4: ["red"] } };

let world: World;
let controller: LabController;
let sweep: () => Promise<void>;

beforeAll(async () => {
  world = await openAgents(["n1"]);
  await world.subnet("red", { subnet: "10.9.0.0/24" });
  sweep = await leadAddressOwners(world);
  controller = await world.lead({ subnets: startSubnets, finalizers: startFinalizers });
}, 120_000);
afterEach(async () => {
  for (const path of ["statefulsets/web", "deployments/web", "replicasets/web-5d"])
    await world.client.delete(`${APPS}/${path}`).catch(() => {});
  await world.clear();
  await eventually(async () => expect(await pools()).toEqual([]));
});
afterAll(() => world?.stop());

const eventually = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 30_000, interval: 20 });

/** The generated pools. */
const pools = async (): Promise<KubeObject[]> =>
  (await world.client.get(lab.POOLS)).items.filter(({ spec }: KubeObject) => spec.generated !== undefined);

/** The controller has read the pod so many times more. */
async function looks(count: number): Promise<void> {
  const { calls } = controller.api;
  const start = calls.length;
  const reads = () => calls.slice(start).filter((call) => call.includes("pods/web-0")).length;
  await eventually(async () => expect(reads()).toBeGreaterThanOrEqual(count));
}

/** `StatefulSet web u1`, with a word for one in deletion. */
async function owners(): Promise<string[]> {
  const all = (await pools()).map(({ spec, metadata }) => {
    const { kind, name, uid } = spec.generated.application;
    return `${kind} ${name} ${uid}${metadata.deletionTimestamp === undefined ? "" : " ends"}`;
  });
  return all.sort();
}

const untilOwners = (wanted: readonly string[]): Promise<void> =>
  eventually(async () => expect(await owners()).toEqual(wanted.toSorted()));

const create = (kind: "StatefulSet" | "Deployment", namespace = "shop") =>
  lab.createWorkload(world.client, kind, "web", { replicas: 2, subnet: "red", namespace });

const ownedBy = async (path: string, owner?: lab.OwnerReference): Promise<void> => {
  const { namespace: _, ...reference } = { namespace: "", ...owner };
  await world.client.patch(path, {
    metadata: { ownerReferences: owner === undefined ? null : [{ ...reference, controller: true }] },
  });
};

const pod = (name: string, { apiVersion, kind, name: owner, uid }: lab.OwnerReference): Promise<lab.LabPod> =>
  world.createPod({ name, node: "n1", annotations: ANNOTATIONS, owner: { apiVersion, kind, name: owner, uid } });

/** The ADD of a new sandbox, tried as a runtime does: the agent may have looked the former workload up. */
async function restart(of: lab.LabPod): Promise<readonly string[]> {
  await world.agent("n1").del(of);
  let ips: readonly string[] = [];
  await eventually(async () => {
    ips = await add(world, of);
  });
  return ips;
}

test("a set's pool follows its pods: it stays in the gap, then it is the new set's, and no other is made", async () => {
  const first = await create("StatefulSet");
  await untilOwners([`StatefulSet web ${first.uid}`]);
  const web = await pod("web-0", first);
  const ips = await add(world, web);
  const [before] = await pools();
  await ownedBy(lab.podPath(web));
  await world.client.delete(`${APPS}/statefulsets/web`);
  const second = await create("StatefulSet");
  // Not adopted yet: the new set has no pool, and its event names no shortage.
  await looks(2);
  expect(await owners()).toEqual([`StatefulSet web ${first.uid}`]);
  await ownedBy(lab.podPath(web), second);
  await untilOwners([`StatefulSet web ${second.uid}`]);
  const [after] = await pools();
  expect([after.metadata.uid, after.spec.ips]).toEqual([before.metadata.uid, before.spec.ips]);
  const { items } = await world.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
  expect(items.filter(({ regarding }: KubeObject) => regarding.uid === second.uid)).toEqual([]);
  expect(await restart(web)).toEqual(ips);
  await sweep();
  await world.endPod(web);
});

test("a Deployment's pool follows its ReplicaSet", async () => {
  const first = await create("Deployment");
  const set = await lab.createWorkload(world.client, "ReplicaSet", "web-5d", {
    ...{ replicas: 2, subnet: "red" },
    owner: { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: first.uid },
  });
  await untilOwners([`Deployment web ${first.uid}`]);
  const web = await pod("web-5d-a", set);
  const ips = await add(world, web);
  const [before] = await pools();
  await ownedBy(`${APPS}/replicasets/web-5d`);
  await world.client.delete(`${APPS}/deployments/web`);
  // Without its Deployment the ReplicaSet is a workload by itself.
  await untilOwners([`Deployment web ${first.uid}`, `ReplicaSet web-5d ${set.uid}`]);
  const second = await create("Deployment");
  await ownedBy(`${APPS}/replicasets/web-5d`, second);
  await untilOwners([`Deployment web ${second.uid}`]);
  const [after] = await pools();
  expect([after.metadata.uid, after.spec.ips]).toEqual([before.metadata.uid, before.spec.ips]);
  expect((await world.spec(`${ips[0]}`))?.pool).toBe(after.metadata.name);
  await world.endPod(web);
});

test("when no pod lives, the old pool ends and a new one is made", async () => {
  const first = await create("StatefulSet");
  await untilOwners([`StatefulSet web ${first.uid}`]);
  const web = await pod("web-0", first);
  await add(world, web);
  await lab.deletePod(world.client, web);
  await world.client.delete(`${APPS}/statefulsets/web`);
  const second = await create("StatefulSet");
  await untilOwners([`StatefulSet web ${first.uid} ends`, `StatefulSet web ${second.uid}`]);
  await world.agent("n1").del(web);
});

test("a pod that names a workload of another namespace gives it nothing, and the pool ends with the pod", async () => {
  const first = await create("StatefulSet");
  await untilOwners([`StatefulSet web ${first.uid}`]);
  const web = await pod("web-0", first);
  await add(world, web);
  await world.namespace("evil");
  const evil = await create("StatefulSet", "evil");
  const other = `StatefulSet web ${evil.uid}`;
  await untilOwners([`StatefulSet web ${first.uid}`, other]);
  await ownedBy(lab.podPath(web), evil);
  await world.client.delete(`${APPS}/statefulsets/web`);
  await looks(2);
  expect(await owners()).toEqual([`StatefulSet web ${first.uid}`, other].sort());
  await world.client.delete("/apis/apps/v1/namespaces/evil/statefulsets/web");
  await world.endPod(web);
});
