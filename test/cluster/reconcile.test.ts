/**
 * Journal and objects that disagree, on a real API server: records that vanish, a journal that was lost, an etcd that
 * was restored.
 */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { NOTICE_REST_MS, startNotices } from "../../host/controller/notices/notice-controller.ts";
import { UNKNOWN_CONTAINER } from "../../host/registry/journal.ts";
import { AgentNode } from "../lab/cluster/agent-node.ts";
import { COOLDOWN_MS, GRACE_MS } from "../lab/cluster/collector.ts";
import type { LabController } from "../lab/cluster/controller.ts";
import { followWorld } from "../lab/cluster/followed-world.ts";
import * as lab from "../lab/cluster/objects.ts";
import { forceDelete } from "../lab/cluster/rights.ts";
import { openWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { recordLog } from "../world/recorded-log.ts";
import { mac } from "../world/values.ts";
import { borrowPlane } from "./borrow-plane.ts";

const MAC = mac("02:00:00:00:00:07");

let world: World;
const nodes: AgentNode[] = [];
let podCount = 0;

beforeAll(async () => {
  world = await openWorld(borrowPlane);
  // Its agents' clocks are the test's.
  await followWorld(world, { minReuseMs: 0, minConflictMs: 0 });
  await world.namespace("shop");
  await world.pool("blue", { subnet: "10.6.0.0/16" });
});

afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
  await world.clear();
});

afterAll(() => world?.stop());

async function openNode(name: string): Promise<AgentNode> {
  const node = await AgentNode.open(world.plane, name, { recorded: recordLog() });
  nodes.push(node);
  return node;
}

function createPod(node: string, name = `pod-${++podCount}`): Promise<lab.LabPod> {
  return lab.createPod(world.plane.client, { name, node });
}

const stateOf = async (address: string): Promise<string> => {
  const object = await world.allocation(address);
  return object === undefined
    ? "absent"
    : `${object.spec.state} ${object.spec.node} ${object.spec.holders[0]?.podUid ?? "-"}`;
};

/** As an administrator does by hand. */
const deleteObject = (address: string): Promise<unknown> => forceDelete(world.plane.client, address);

describe("recreate: with a controller that sends notices", () => {
  beforeAll(async () => {
    for (const name of ["n1", "n2"]) await world.setNode(name, "True");
  });

  afterEach(() => world.depose());

  /** Starts a leading controller that sends its findings about the node and knows these addresses. */
  async function lead(...addresses: readonly string[]): Promise<LabController> {
    const controller = await world.lead({ notices: startNotices });
    const { items } = controller.caches.allocations;
    await until("the controller knows them", () => addresses.every((each) => items.has(each)));
    return controller;
  }

  it("an object that was deleted by hand is made again at once, and another node's claim for its address loses", async () => {
    const one = await openNode("n1");
    const two = await openNode("n2");
    const pod = await createPod("n1");
    const rival = await createPod("n2");
    await one.attach("10.6.0.1", pod);
    const controller = await lead("10.6.0.1");
    const figures: number[] = [];
    for (let turn = 0; turn < 10; turn++) {
      const before = (await world.allocation("10.6.0.1"))?.uid;
      await deleteObject("10.6.0.1");
      const start = performance.now();
      await until("it is made again", async () => {
        const now = await world.allocation("10.6.0.1");
        return now !== undefined && now.uid !== before;
      });
      figures.push(performance.now() - start);
      await pause(NOTICE_REST_MS);
    }
    expect(await two.claim("10.6.0.1", rival)).toMatchObject({ kind: "taken", by: [{ owner: pod.uid }] });
    expect(await stateOf("10.6.0.1")).toBe(`Bound n1 ${pod.uid}`);
    expect([
      one.cluster.allocations.problems,
      one.cluster.allocations.stats.lost,
      controller.problems("notices"),
    ]).toEqual([[], 0, []]);
    figures.sort((a, b) => a - b);
    console.log(
      `from the deletion to the new object, ms: p50 ${figures[5]?.toFixed(1)}, max ${figures[9]?.toFixed(1)}`,
    );
  });

  it("is told of a deletion by force although the pod is gone from the API server, and of no end of a pod", async () => {
    const one = await openNode("n1");
    const [orphan, pod] = [await createPod("n1"), await createPod("n1")];
    await one.attach("10.6.0.1", orphan);
    await one.attach("10.6.0.2", pod);
    await lead("10.6.0.1", "10.6.0.2");
    const before = one.cluster.allocations.stats.notices;
    for (const each of [orphan, pod]) await lab.deletePod(world.plane.client, each);
    await one.detach(pod);
    one.advance(COOLDOWN_MS);
    await one.registry.expire();
    await one.registry.idle();
    expect([await stateOf("10.6.0.2"), one.cluster.allocations.stats.notices]).toEqual(["absent", before]);
    await deleteObject("10.6.0.1");
    await until("it is made again", async () => (await stateOf("10.6.0.1")) === `Bound n1 ${orphan.uid}`);
    expect(one.cluster.allocations.stats.notices).toBe(before + 1);
  });

  it("an object that somebody changed by hand is written again", async () => {
    const one = await openNode("n1");
    const pod = await createPod("n1");
    await one.attach("10.6.0.1", pod);
    await lead("10.6.0.1");
    await world.plane.client.patch(`${lab.ALLOCATIONS}/10.6.0.1`, { spec: { state: "Cooling", holders: [] } });
    await until("it is written again", async () => (await stateOf("10.6.0.1")) === `Bound n1 ${pod.uid}`);
  });

  it("if another node was first, nothing is deleted and nothing is silent", async () => {
    const one = await openNode("n1");
    const two = await openNode("n2");
    const pod = await createPod("n1");
    const rival = await createPod("n2");
    await one.attach("10.6.0.1", pod);
    await lead("10.6.0.1");
    const gate = Promise.withResolvers<void>();
    one.api.before = async ({ method }) => {
      if (method !== "GET") await gate.promise;
    };
    await deleteObject("10.6.0.1");
    await until("n2 has the name", async () => (await two.claim("10.6.0.1", rival)).kind === "bound");
    gate.resolve();
    await until("it is noticed", () => one.cluster.allocations.stats.lost === 1);
    const text = `Address 10.6.0.1 of pool "blue", which pod shop/${pod.name} has on interface "eth0", is recorded for pod shop/${rival.name} (UID ${rival.uid}) in the API server; delete one of the two pods`;
    expect(one.cluster.allocations.problems).toEqual([text]);
    expect(one.lines).toContain(`error ${text}`);
    expect(one.cluster.ipam.cluster?.findLoss({ containerId: `c-${pod.uid}`, ifName: "eth0" })).toBe(
      text.replace(/ \(UID .*?\)/, ""),
    );
    expect([await stateOf("10.6.0.1"), await one.rows()]).toEqual([
      `Bound n2 ${rival.uid}`,
      [`10.6.0.1 Bound ${pod.uid} c-${pod.uid}`],
    ]);
    await until("the pod's event is there", async () => {
      const { items } = await world.plane.client.get("/apis/events.k8s.io/v1/namespaces/shop/events");
      return items.some(
        ({ reason, regarding }: { reason: string; regarding: { uid: string } }) =>
          reason === "AddressLost" && regarding.uid === pod.uid,
      );
    });
    // It is reported once, however often it is found again.
    await one.reconcile();
    expect([one.cluster.allocations.stats.lost, one.lines.filter((line) => line.startsWith("error"))]).toEqual([
      1,
      [`error ${text}`],
    ]);
    // The pod ends: its DEL must not touch what is the other's.
    await one.detach(pod);
    one.advance(COOLDOWN_MS);
    await one.reconcile();
    expect([one.cluster.allocations.problems, await one.rows(), await stateOf("10.6.0.1")]).toEqual([
      [],
      [],
      `Bound n2 ${rival.uid}`,
    ]);
  });
});

it("recreate: what was lost is the pod's again when the other has let go of it", async () => {
  const one = await openNode("n1");
  const pod = await createPod("n1");
  await one.attach("10.6.0.1", pod);
  await one.stop();
  const { metadata, ...rest } = await world.plane.client.get(`${lab.ALLOCATIONS}/10.6.0.1`);
  const holders = [{ ...rest.spec.holders[0], podUID: "another", node: "n9" }];
  await deleteObject("10.6.0.1");
  const other = { ...rest, metadata: { name: metadata.name }, spec: { ...rest.spec, node: "n9", holders } };
  await world.plane.client.create(lab.ALLOCATIONS, other);
  await one.start();
  await until("the loss is noticed", () => one.cluster.allocations.stats.lost === 1);
  await deleteObject("10.6.0.1");
  await one.reconcile();
  await until("the watch shows it", async () => {
    await one.reconcile();
    return one.cluster.allocations.problems.length === 0;
  });
  expect(await stateOf("10.6.0.1")).toBe(`Bound n1 ${pod.uid}`);
});

it("undo: after the journal was lost, 20 running pods keep their addresses, and each is free only when its pod is gone", async () => {
  const node = await openNode("n1");
  const pods: lab.LabPod[] = [];
  for (let index = 1; index <= 20; index++) {
    const pod = await createPod("n1");
    await node.attach(`10.6.0.${index}`, pod);
    pods.push(pod);
  }
  await node.stop();
  node.wipe();
  await node.start();
  expect(await node.rows()).toEqual(
    pods.map(({ uid }, index) => `10.6.0.${index + 1} Bound ${uid} ${UNKNOWN_CONTAINER}`),
  );
  for (const pod of pods) expect(await node.detach(pod), "late-del: the container is unknown").toEqual([]);
  node.advance(10 * GRACE_MS);
  await node.reconcile();
  expect(await node.rows()).toHaveLength(20);
  const bound = async (): Promise<number> => (await node.rows()).filter((row) => row.includes(" Bound ")).length;
  for (const [index, pod] of pods.entries()) {
    const { uid } = pod;
    await lab.deletePod(world.plane.client, pod);
    await until("the watch shows it", () => ![...node.snapshot.pods.values()].some((each) => each.uid === uid));
    await node.reconcile();
    expect(await bound(), "the first observation only records it").toBe(20 - index);
    node.advance(GRACE_MS);
    await node.reconcile();
    expect(await bound()).toBe(19 - index);
  }
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  expect([await node.rows(), await world.lines()]).toEqual([[], []]);
});

it("undo: rows that are lost under the agent are taken in before an ADD goes on, and go with their pods", async () => {
  const node = await openNode("n1");
  const [pod, ended] = [await createPod("n1"), await createPod("n1")];
  await node.attach("10.6.0.1", pod);
  await node.attach("10.6.0.2", ended);
  const answers = Promise.withResolvers<void>();
  node.api.before = () => answers.promise;
  await node.loseRows();
  const claimed = node.claim("10.6.0.9", pod);
  expect([await node.rows(), node.cluster.readiness().ready]).toEqual([[], false]);
  answers.resolve();
  expect(await claimed).toMatchObject({ kind: "bound", created: [] });
  await node.cluster.synced(AbortSignal.timeout(10_000));
  expect(await node.rows()).toEqual([
    `10.6.0.1 Bound ${pod.uid} c-${pod.uid}`,
    `10.6.0.2 Bound ${ended.uid} ${UNKNOWN_CONTAINER}`,
  ]);
  await lab.deletePod(world.plane.client, ended);
  await until("the watch shows it", () => ![...node.snapshot.pods.values()].some(({ uid }) => uid === ended.uid));
  await node.reconcile();
  node.advance(GRACE_MS);
  await node.reconcile();
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  expect(await stateOf("10.6.0.2")).toBe("absent");
});

it("undo: a new sandbox gets the address that was taken in, and then its DEL frees it", async () => {
  const node = await openNode("n1");
  const pod = await createPod("n1");
  await node.attach("10.6.0.1", pod);
  await node.stop();
  node.wipe();
  await node.start();
  expect(await node.claim("10.6.0.9", pod)).toMatchObject({ kind: "bound", created: [] });
  expect(await node.rows()).toEqual([`10.6.0.1 Bound ${pod.uid} c-${pod.uid}`]);
  expect(await node.detach(pod)).toHaveLength(1);
});

it("undo: an object that no NIC has goes at the second observation", async () => {
  const node = await openNode("n1");
  const pod = await createPod("n1");
  await node.attach("10.6.0.1", pod);
  const object = await world.plane.client.get(`${lab.ALLOCATIONS}/10.6.0.1`);
  const { metadata, ...spare } = object;
  await world.plane.client.create(lab.ALLOCATIONS, {
    ...spare,
    metadata: { name: "10.6.0.2" },
    spec: { ...spare.spec, address: "10.6.0.2" },
  });
  await node.reconcile();
  expect(await node.rows()).toHaveLength(1);
  node.advance(GRACE_MS);
  await node.reconcile();
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  expect([await stateOf("10.6.0.1"), await stateOf("10.6.0.2")]).toEqual([`Bound n1 ${pod.uid}`, "absent"]);
});

it("registry-epoch: etcd is restored from last night: what is missing is made again, what is back from the dead is ended", async () => {
  const node = await openNode("n1");
  const [old, dead, young] = [
    await createPod("n1", "old"),
    await createPod("n1", "dead"),
    await createPod("n1", "young"),
  ];
  await node.attach("10.6.0.1", old);
  await node.attach("10.6.0.2", dead);
  const lastNight = await world.plane.snapshot();
  await node.attach("10.6.0.3", young);
  await node.detach(dead);
  await lab.deletePod(world.plane.client, dead);
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  expect(await world.lines()).toEqual([`10.6.0.1 Bound ${old.uid}`, `10.6.0.3 Bound ${young.uid}`]);
  await world.plane.restore(lastNight);
  const now = [`10.6.0.1 Bound ${old.uid}`, `10.6.0.3 Bound ${young.uid}`];
  await until("the records are those of the journal", async () => {
    const lines = await world.lines().catch(() => []);
    return lines.join() === now.join();
  });
  expect(await stateOf("10.6.0.3")).toBe(`Bound n1 ${young.uid}`);
  await node.reconcile();
  expect(await world.lines()).toEqual(now);
  expect(node.cluster.allocations.problems).toEqual([]);
});

it("registry-epoch: a record of an earlier pod that a backup brings back is the live pod's again at once", async () => {
  const node = await openNode("n1");
  const [dead, heir] = [await createPod("n1", "dead"), await createPod("n1", "heir")];
  await node.attach("10.6.0.1", dead);
  const lastNight = await world.plane.snapshot();
  await node.detach(dead);
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  await node.attach("10.6.0.1", heir);
  expect(await stateOf("10.6.0.1")).toBe(`Bound n1 ${heir.uid}`);
  await world.plane.restore(lastNight);
  // The backup has the earlier pod, too: the journal says which of the two has the address.
  await until("the record is the live pod's", async () => {
    await node.reconcile().catch(() => {});
    return (await stateOf("10.6.0.1")) === `Bound n1 ${heir.uid}`;
  });
  await node.reconcile();
  expect([node.cluster.allocations.problems, await node.rows()]).toEqual([
    [],
    [`10.6.0.1 Bound ${heir.uid} c-${heir.uid}`],
  ]);
});

it("undo: what is in quarantine is in quarantine after the journal was lost, and what cools cools", async () => {
  const node = await openNode("n1");
  const bad = await node.attach("10.6.0.1", await createPod("n1"));
  const quarantine = { reason: "Conflict", mac: MAC, parent: "ens5", nextProbeAtMs: node.nowMs() + GRACE_MS } as const;
  await node.registry.quarantine(bad, quarantine);
  const pod = await createPod("n1");
  await node.attach("10.6.0.2", pod);
  await node.detach(pod);
  await node.registry.publishCooling("blue");
  await node.registry.idle();
  expect(await world.lines()).toEqual(["10.6.0.1 Quarantined -", "10.6.0.2 Cooling -"]);
  await node.stop();
  node.wipe();
  await node.start();
  const [first, second] = await node.registry.list(undefined, 10);
  expect(first).toMatchObject({ state: "Quarantined", quarantine: { mac: MAC, parent: "ens5" } });
  expect(second?.state).toBe("Cooling");
  node.advance(COOLDOWN_MS);
  await node.reconcile();
  expect(await world.lines()).toEqual(["10.6.0.1 Quarantined -"]);
});

it("node-lost: what other nodes answer for is left alone, whatever became of their pods", async () => {
  const gone = await openNode("n2");
  const pod = await createPod("n2");
  await gone.attach("10.6.0.1", pod);
  await gone.attach("10.6.0.2", await createPod("n2"));
  await gone.stop();
  await lab.deletePod(world.plane.client, pod);
  const before = await world.allocations();
  const node = await openNode("n1");
  for (let turn = 0; turn < 3; turn++) {
    node.advance(GRACE_MS);
    await node.reconcile();
  }
  expect(await world.allocations()).toEqual(before);
  expect(await node.rows()).toEqual([]);
  expect(node.api.takeWrites()).toEqual([]);
});
