/**
 * Built agents of two nodes at work, while an attacker with the token of one tries to get the addresses of the other.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startNotices } from "../../host/controller/notices/notice-controller.ts";
import { ALLOCATIONS, createWorkload } from "../lab/cluster/objects.ts";
import { applyWorkloadKinds } from "../lab/cluster/workload-kinds.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import type { KubeClient, KubeObject } from "../lab/kube-client.ts";
import { inParallel } from "../lab/parallel.ts";
import { until } from "../lab/waiting.ts";
import { borrowPlane } from "./borrow-plane.ts";
import { become, outcomeOf, pathOf, rewrite } from "./rights-objects.ts";

const PODS = 12;

let world: World;
/** With the token of the agent of n2. */
let thief: KubeClient;

beforeAll(async () => {
  world = await startWorld({
    startPlane: borrowPlane,
    nodes: ["n1", "n2"],
    pools: [{ name: "blue", subnet: "10.6.0.0/23" }],
    settings: { enableStatefulSet: true },
  });
  await applyWorkloadKinds(world.client);
  thief = await world.openClient("n2");
});
afterAll(() => world?.stop());

it("node-rights: pods of both nodes come and go while an attacker tries to free and to take every address of the first", async () => {
  const done: string[] = [];
  const counts = new Map<string, number>();
  /** Names of objects that the thief was refused with 403. */
  const refused = new Set<string>();
  let isOver = false;
  const attack = async (): Promise<void> => {
    while (!isOver) {
      const { items } = await thief.get(`${ALLOCATIONS}?fieldSelector=spec.node%3Dn1`);
      for (const { metadata, spec } of items.filter((each: KubeObject) => each.spec.state === "Bound")) {
        const { name } = metadata;
        const free = (changed: KubeObject) => Object.assign(changed, { state: "Cooling", holders: [] });
        const attempts = [
          () => thief.delete(pathOf(name), { preconditions: { resourceVersion: metadata.resourceVersion } }),
          () => thief.put(pathOf(name), { ...object(name, metadata), spec: free({ ...spec }) }),
          () => thief.put(pathOf(name), { ...object(name, metadata), spec: taken({ ...spec }) }),
        ];
        for (const attempt of attempts) {
          const outcome = (await outcomeOf(attempt())).slice(0, 4).trim();
          counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
          if (outcome === "done") done.push(name);
          if (outcome === "403") refused.add(name);
        }
      }
    }
  };
  const object = (name: string, metadata: KubeObject): KubeObject => ({
    ...{ apiVersion: "ipam.vendor.io/v1", kind: "IPAllocation" },
    metadata: { name, uid: metadata.uid, resourceVersion: metadata.resourceVersion },
  });
  const taken = (spec: KubeObject): KubeObject => {
    become("Bound", "n2")(spec, {});
    return spec;
  };
  const attacking = attack();
  attacking.catch(() => {});
  const specs = Array.from({ length: PODS }, (_, index) => ({ name: `web-${index}`, node: `n${(index % 2) + 1}` }));
  await inParallel(specs, 6, async (spec) => {
    const { runtime } = world.node(spec.node);
    const pod = await world.createPod(spec);
    const [address = ""] = (await runtime.attach(pod)).addresses;
    const { state, node, holders } = await world.spec(address);
    expect([state, node, holders[0].podUID]).toEqual(["Bound", spec.node, pod.uid]);
    expect(world.ledger.breaches).toEqual([]);
    refused.delete(address);
    if (spec.node === "n1") await until(`an attempt to take ${address} was refused`, () => refused.has(address));
    await runtime.detach(pod);
    await world.deletePod(pod);
  });
  isOver = true;
  await attacking;
  console.log(`attempts by answer: ${[...counts].map(([code, count]) => `${code} ${count}`).join(", ")}`);
  expect(done).toEqual([]);
  // Besides the policies and the kind, objects that have changed or gone meanwhile.
  expect([...counts.keys()].filter((code) => !["403", "422", "409", "404"].includes(code))).toEqual([]);
  await world.untilClean();
});

it("retention: an address taken in the name of a workload is taken back by the agent whose pod lives", async () => {
  const { namespace: _, ...owner } = await createWorkload(world.client, "StatefulSet", "db", { replicas: 1 });
  const pod = await world.createPod({ name: "db-0", node: "n1", owner });
  await world.setNode("n1", "True");
  const [address = ""] = (await world.node("n1").runtime.attach(pod)).addresses;
  const { caches } = await world.lead({ notices: startNotices });
  await until("the controller knows it", () => caches.allocations.items.has(address));
  const { spec } = await world.client.get(pathOf(address));
  await rewrite(thief, address, become("Bound", "n2", { workload: spec.workload }));
  const start = performance.now();
  await until("it is the live pod's again", async () => {
    const now = await world.client.get(pathOf(address));
    return now.spec.node === "n1" && now.spec.holders[0].podUID === pod.uid;
  });
  console.log(`taken back after ${(performance.now() - start).toFixed(1)} ms`);
  expect(await outcomeOf(thief.delete(pathOf(address)))).toMatch(/^403 /);
  await world.untilClean();
});
