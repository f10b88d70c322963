/**
 * Pools of Subnets from the workload to the pod on a real API server: agents, the controller's parts, and workloads
 * that are plain objects. The test is the controllers of Kubernetes. The rules are in test/unit/controller/subnets and
 * test/unit/agent/ipam/wait-for-pool.test.ts.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startConditions } from "../../host/controller/conditions/conditions-controller.ts";
import { startFinalizers } from "../../host/controller/finalizers/finalizer-controller.ts";
import { startSubnets } from "../../host/controller/subnets/subnets-controller.ts";
import * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import type { KubeObject } from "../lab/kube-client.ts";
import { until } from "../lab/waiting.ts";
import { add, openAgents } from "./workloads.ts";

const APPS = "/apis/apps/v1/namespaces/shop";

let world: World;

beforeAll(async () => {
  world = await openAgents(["n1"]);
  await world.subnet("tiny", { subnet: "10.9.1.0/29", gateway: "10.9.1.1" });
  await world.lead({ subnets: startSubnets, conditions: startConditions, finalizers: startFinalizers });
}, 120_000);
afterEach(async () => {
  for (const plural of ["deployments", "replicasets", "statefulsets"]) await world.client.delete(`${APPS}/${plural}`);
  await world.clear();
  await until("no pool is left", async () => (await pools()).length === 0, 90_000);
});
afterAll(() => world?.stop());

const pools = async (): Promise<KubeObject[]> =>
  (await world.client.get(lab.POOLS)).items.filter(({ spec }: KubeObject) => spec.generated !== undefined);

/** `StatefulSet web u1 4: 3 replicas and 1 more` */
const wanted = async (): Promise<readonly string[]> =>
  (await pools()).map(({ spec: { generated } }) => {
    const { kind, name, uid } = generated.application;
    return `${kind} ${name} ${uid} ${generated.wanted}: ${generated.reason}`;
  });

const untilWanted = (text: string): Promise<void> => expect.poll(wanted, { timeout: 30_000 }).toEqual([text]);

const pod = (name: string, owner: lab.OwnerReference, of: string): Promise<lab.LabPod> => {
  const { apiVersion, kind, name: by, uid } = owner;
  const annotations = { subnet: { ipv4: [of] } };
  return world.createPod({ name, node: "n1", annotations, owner: { apiVersion, kind, name: by, uid } });
};

/** An ADD that is tried again as a runtime does it. */
async function attach(of: lab.LabPod): Promise<readonly string[]> {
  let ips: readonly string[] = [];
  const attempt = async () => {
    ips = await add(world, of);
    return true;
  };
  await until(`${of.name} is attached`, () => attempt().catch(() => false));
  return ips;
}

test("a Deployment of three with a grace of 300 s is rolled out without a wait, and more is refused by the Subnet's words", async () => {
  const options = { replicas: 3, subnet: "tiny" };
  const web = await lab.createWorkload(world.client, "Deployment", "web", options);
  const { namespace: _, ...owner } = web;
  const old = await lab.createWorkload(world.client, "ReplicaSet", "web-1", { ...options, owner });
  const report = (status: object) => world.client.patch(`${APPS}/deployments/web/status`, { status });
  await report({ observedGeneration: 1, replicas: 3, updatedReplicas: 3 });
  // The first ADD comes before its pool.
  const first = await pod("web-1-a", old, "tiny");
  expect(await add(world, first)).toEqual([expect.stringMatching(/^10\.9\.1\./)]);
  const former = [first, await pod("web-1-b", old, "tiny"), await pod("web-1-c", old, "tiny")];
  for (const each of former.slice(1)) await attach(each);
  await untilWanted(`Deployment web ${web.uid} 4: 3 replicas and 1 more`);
  const template = { metadata: { annotations: { version: "2" } } };
  await world.client.patch(`${APPS}/deployments/web`, { spec: { template } });
  const next = await lab.createWorkload(world.client, "ReplicaSet", "web-2", { ...options, owner });
  const young: lab.LabPod[] = [];
  for (const [at, each] of former.slice(0, 2).entries()) {
    // One more than replicas, then one of the former version goes, which keeps its sandbox for its grace period.
    await report({ observedGeneration: 2, replicas: 4, updatedReplicas: at + 1 });
    const made = await pod(`web-2-${at}`, next, "tiny");
    young.push(made);
    const beganMs = performance.now();
    await attach(made);
    expect(performance.now() - beganMs).toBeLessThan(5_000);
    await world.client.delete(lab.podPath(each), { gracePeriodSeconds: 300, preconditions: { uid: each.uid } });
  }
  const refused = await pod("web-2-c", next, "tiny");
  const text =
    /has 5 of 6 addresses wanted \(3 replicas and 1 more, and 2 of pods that are ending: web-1-a, web-1-b\): Subnet "tiny" has 0 free/;
  const refusal = () => add(world, refused).catch(({ code, message }) => `${code} ${message}`);
  await expect.poll(refusal, { timeout: 30_000 }).toMatch(text);
  for (const each of former.slice(0, 2)) await world.endPod(each);
  expect(await attach(refused)).toHaveLength(1);
  await untilWanted(`Deployment web ${web.uid} 4: 3 replicas and 1 more`);
  for (const each of [...young, refused, ...former.slice(2)]) await world.endPod(each);
}, 120_000);
