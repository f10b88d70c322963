/** The controller's collection, on a real API server: the test makes each sweep and moves the clock. */

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { COLLECTION_RETRY_MS } from "../../host/controller/gc/check-allocation.ts";
import { COLLECTION_PAGE } from "../../host/controller/gc/garbage-collector.ts";
import { ApiUnavailable } from "../../host/kubernetes/kube-api.ts";
import { NOTICE_ANNOTATION } from "../../host/resources/allocation-notice.ts";
import { COOLDOWN_MS, GRACE_MS, INTERVAL_MS, type LabCollector, NODE_LOST_MS } from "../lab/cluster/collector.ts";
import * as lab from "../lab/cluster/objects.ts";
import type { World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { allocate, bind, openCollector, WEB } from "./collected.ts";

let world: World;
let collector: LabCollector;
let podCount = 0;

beforeAll(async () => {
  ({ world, collector } = await openCollector());
});

afterEach(async () => {
  await collector.clear();
});

afterAll(() => world?.stop());

function createPod(node: string, spec: Partial<lab.PodSpec> = {}): Promise<lab.LabPod> {
  return lab.createPod(world.client, { name: `pod-${++podCount}`, node, ...spec });
}

it("node-lost: a pod and its node are gone: quarantine after a grace, with who had it, and nothing before", async () => {
  const pod = await createPod("n1");
  await bind({ world, collector }, "10.6.0.1", pod, { workload: WEB });
  await lab.deletePod(world.client, pod);
  await collector.sweep(GRACE_MS - 1);
  expect(await world.stateOf("10.6.0.1")).toBe("Bound n1");
  collector.advance(1);
  await collector.sweep();
  expect(await world.spec("10.6.0.1")).toMatchObject({
    ...{ state: "Quarantined", node: "n1", holders: [], workload: { uid: WEB.uid, member: WEB.member } },
    quarantine: { reason: "NodeLost", holder: { pod: pod.name, podUID: pod.uid, interface: "eth0", node: "n1" } },
  });
  expect(
    collector.events.map(({ regarding, reason }) => `${regarding.kind} ${regarding.name} ${reason}`).sort(),
  ).toEqual(["IPPool blue NodeLost", "Node n1 NodeLost"]);
  await collector.gc.sweep();
  expect(collector.gc.problems.filter((line) => line.startsWith('Node "n1" is lost'))).toHaveLength(1);
});

it("node-lost: a node that is ready is its agent's, which is told once, until that has done nothing for long", async () => {
  await collector.setNode("n1", "True");
  const pod = await createPod("n1");
  await bind({ world, collector }, "10.6.0.1", pod);
  await lab.deletePod(world.client, pod);
  const notice = async () => (await world.client.get(`${lab.NODES}/n1`)).metadata.annotations?.[NOTICE_ANNOTATION];
  await collector.sweep(Math.max(GRACE_MS, COOLDOWN_MS) - 1);
  expect(await notice()).toBeUndefined();
  collector.advance(1);
  await collector.sweep();
  const told = await notice();
  expect(told).toMatch(/ 10\.6\.0\.1$/);
  expect(await world.stateOf("10.6.0.1")).toBe("Bound n1");
  await collector.sweep(2 * INTERVAL_MS + NODE_LOST_MS - 1);
  expect(await notice()).toBe(told);
  expect(await world.stateOf("10.6.0.1")).toBe("Bound n1");
  collector.advance(1);
  await collector.sweep();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
});

it("node-lost: a node that comes back in between starts over", async () => {
  await collector.setNode("n1", "Unknown");
  const pod = await createPod("n1");
  await bind({ world, collector }, "10.6.0.1", pod);
  await lab.deletePod(world.client, pod);
  await collector.sweep();
  await collector.setNode("n1", "True");
  await collector.setNode("n1", "Unknown");
  collector.advance(GRACE_MS);
  await collector.sweep();
  expect(await world.stateOf("10.6.0.1")).toBe("Bound n1");
  collector.advance(GRACE_MS);
  await collector.sweep();
  expect(await world.stateOf("10.6.0.1")).toBe("Quarantined n1");
});

it("node-lost: addresses of a node that is said to be out of service are free within seconds of the end of its pods", async () => {
  await collector.setNode("n1", "Unknown");
  const pods = [];
  for (let last = 1; last <= 20; last++) {
    const pod = await createPod("n1");
    pods.push(pod);
    await bind({ world, collector }, `10.6.0.${last}`, pod, last === 20 ? { workload: WEB } : {});
  }
  collector.liveness.set(WEB.uid, "alive");
  await collector.setNode("n1", "Unknown", [lab.OUT_OF_SERVICE]);
  await collector.gc.checkDue();
  expect((await world.client.get(lab.ALLOCATIONS)).items).toHaveLength(20);
  for (const pod of pods) await lab.deletePod(world.client, pod);
  collector.advance(1_000);
  // By its own timer: no event triggers the check.
  const start = performance.now();
  await until("they are free", async () => (await world.client.get(lab.ALLOCATIONS)).items.length === 1);
  console.log(`20 addresses of a node out of service: free after ${Math.round(performance.now() - start)} ms`);
  expect(performance.now() - start).toBeLessThan(COLLECTION_RETRY_MS);
  expect(await world.spec("10.6.0.20")).toMatchObject({
    state: "Kept",
    workload: { member: "web-0", interface: "eth0" },
  });
});

it("retention: an address retained for a deleted workload cools, and becomes free when no agent frees it", async () => {
  await allocate({ world, collector }, "10.6.0.1", { state: "Kept", workload: WEB });
  await allocate({ world, collector }, "10.6.0.2", { state: "Kept", workload: { ...WEB, uid: "alive" } });
  await allocate({ world, collector }, "10.6.0.3", { state: "Kept", workload: { ...WEB, uid: "unknown" } });
  collector.liveness.set("alive", "alive");
  collector.ownerGone(WEB.uid);
  await collector.gc.checkDue();
  collector.advance(GRACE_MS);
  await collector.gc.checkDue();
  expect(await world.spec("10.6.0.1")).toMatchObject({ state: "Cooling", node: "n1" });
  expect((await world.spec("10.6.0.1"))?.workload).toBeUndefined();
  await collector.sweep(GRACE_MS);
  expect(await Promise.all([1, 2, 3].map((last) => world.stateOf(`10.6.0.${last}`)))).toEqual([
    "free",
    "Kept n1",
    "Kept n1",
  ]);
});

it("pool-changes: an allocation of a pool that is gone is legal, and reported", async () => {
  await collector.setNode("n1", "True");
  await bind({ world, collector }, "10.7.0.1", await createPod("n1"), { pool: "old" });
  await collector.sweep(10 * INTERVAL_MS);
  expect(await world.stateOf("10.7.0.1")).toBe("Bound n1");
  expect(collector.gc.problems).toEqual(['There is no IPPool "old", and 1 of its addresses is in use']);
});

it("leak: an object that is written, or whose pod is recreated, right before it is collected, stays", async () => {
  const pod = await createPod("n1", { name: "web-0" });
  await bind({ world, collector }, "10.6.0.1", pod);
  await allocate({ world, collector }, "10.6.0.2");
  await lab.deletePod(world.client, pod);
  await collector.sweep();
  collector.advance(GRACE_MS);
  const path = (address: string): string => `${lab.ALLOCATIONS}/${address}`;
  let rewritten = 0;
  collector.api.before = async ({ method, path: called }) => {
    if (method !== "PUT" && method !== "DELETE") return;
    rewritten++;
    await world.client.patch(called, { spec: { since: new Date().toISOString() } });
  };
  await collector.sweep();
  expect(rewritten).toBeGreaterThanOrEqual(2);
  expect([await world.stateOf("10.6.0.1"), await world.stateOf("10.6.0.2")]).toEqual(["Bound n1", "Cooling n1"]);
  // And that counts as new: the time begins again.
  collector.api.before = async () => {};
  await collector.sweep(GRACE_MS - 1);
  expect([await world.stateOf("10.6.0.1"), await world.stateOf("10.6.0.2")]).toEqual(["Bound n1", "Cooling n1"]);
  // The pod of that UID is back in the API server, as after a restored etcd: nothing may happen.
  await world.client.patch(path("10.6.0.1"), {
    spec: {
      holders: [
        {
          namespace: "shop",
          pod: "web-1",
          podUID: (await createPod("n1", { name: "web-1" })).uid,
          interface: "eth0",
          node: "n1",
        },
      ],
    },
  });
  collector.advance(10 * INTERVAL_MS);
  await collector.sweep(10 * INTERVAL_MS);
  expect(await world.stateOf("10.6.0.1")).toBe("Bound n1");
});

it("leak: a node that comes back right before the write keeps its addresses, whatever the caches say", async () => {
  await collector.setNode("n1", "Unknown");
  const pod = await createPod("n1");
  await bind({ world, collector }, "10.6.0.1", pod);
  await lab.deletePod(world.client, pod);
  await collector.sweep();
  collector.advance(GRACE_MS);
  let asked = 0;
  collector.api.before = async ({ method, path }) => {
    if (method !== "GET" || path !== `${lab.NODES}/n1` || asked++ > 0) return;
    const conditions = [{ type: "Ready", status: "True" }];
    await world.client.patch(`${lab.NODES}/n1/status`, { status: { conditions } });
  };
  await collector.sweep();
  expect([asked > 0, await world.stateOf("10.6.0.1")]).toEqual([true, "Bound n1"]);
});

/** More than a page of what may go. */
async function fill(count: number): Promise<void> {
  const work = Array.from({ length: count }, (_, index) => `10.6.${1 + Math.floor(index / 200)}.${1 + (index % 200)}`);
  const one = async (): Promise<void> => {
    for (let address = work.pop(); address !== undefined; address = work.pop())
      await allocate({ world, collector }, address);
  };
  await Promise.all(Array.from({ length: 16 }, one));
}

const countAll = async (): Promise<number> => (await world.client.get(lab.ALLOCATIONS)).items.length;

it("leak: more than a page; the API server goes in the middle, and nothing is half done", async () => {
  const count = COLLECTION_PAGE + 20;
  await fill(count);
  await collector.gc.sweep();
  collector.advance(GRACE_MS);
  let deletes = 0;
  collector.api.before = async ({ method, path }) => {
    if (method === "DELETE" && ++deletes > 40) throw new ApiUnavailable(`DELETE ${path}`, "The API server is away");
  };
  await expect(collector.gc.sweep()).rejects.toThrow("The API server is away");
  expect(await countAll()).toBe(count - 40);
  collector.api.before = async () => {};
  await collector.gc.sweep();
  expect(await countAll()).toBe(0);
});
