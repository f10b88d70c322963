/**
 * A registry that has just appeared or went back in time, on a real API server with built agents: their definition is
 * deleted and made again under running pods, and etcd is restored from a copy that lacks what pods have got since.
 */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startEpoch } from "../../host/controller/epoch/epoch-controller.ts";
import { EPOCH_MAP } from "../../host/resources/registry-epoch.ts";
import { applyCrds } from "../lab/cluster/crds.ts";
import type { LabPod } from "../lab/cluster/objects.ts";
import { startPlane } from "../lab/cluster/plane.ts";
import { FORCE_DELETE } from "../lab/cluster/rights.ts";
import { startWorld, type World } from "../lab/cluster/world.ts";
import { until } from "../lab/waiting.ts";
import { endAll, endPod, expectOwned, report } from "./fault-questions.ts";

const DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ipallocations.ipam.vendor.io";
const RECORD = `/api/v1/namespaces/kube-system/configmaps/${EPOCH_MAP}`;
/** Time for which pods start and end between a copy of etcd and its return. */
const CHURN_MS = 15_000;

let world: World;
let count = 0;

beforeAll(async () => {
  world = await startWorld({
    // The definition of a borrowed one is others' too.
    startPlane,
    nodes: ["n1", "n2"],
    pools: [{ name: "blue", subnet: "10.6.0.0/27" }],
  });
  for (const name of ["n1", "n2"]) await world.setNode(name, "True");
  await world.lead({ epoch: startEpoch });
});

afterEach(() => endAll(world));

afterAll(() => world?.stop());

const newPods = (node: string, pods: number): Promise<LabPod[]> =>
  Promise.all(Array.from({ length: pods }, () => world.createPod({ name: `pod-${++count}`, node })));

/** Resolves when all have their addresses; returns the refusals that they met. */
async function attachAll(pods: readonly LabPod[]): Promise<string[]> {
  const outcomes = await Promise.all(pods.map((pod) => world.node(pod.node).runtime.attach(pod)));
  expect(outcomes.filter(({ addresses }) => addresses.length === 0)).toEqual([]);
  return outcomes.map(({ refusal }) => refusal).filter((refusal) => refusal !== "");
}

async function epochOf(): Promise<Record<string, string>> {
  return (await world.client.get(RECORD)).data ?? {};
}

async function untilFilled(before: string): Promise<number> {
  const start = performance.now();
  await until("a new epoch is settled", async () => {
    const { epoch = "", settled } = await epochOf().catch(() => ({ epoch: before, settled: before }));
    return epoch !== before && settled === epoch;
  });
  return performance.now() - start;
}

it("an empty cluster's first epoch is settled when the first pod comes", async () => {
  const [pod] = await newPods("n1", 1);
  if (pod === undefined) throw new Error("There is no pod");
  const { attempts, addresses } = await world.node("n1").runtime.attach(pod);
  expect([attempts, addresses.length]).toEqual([1, 1]);
  const { epoch, settled, cause } = await epochOf();
  expect([settled, cause]).toEqual([epoch, "first"]);
});

it("the definition is deleted and made again under ten running pods while seventeen start elsewhere", async () => {
  const running = await newPods("n1", 10);
  await attachAll(running);
  const { epoch: before = "" } = await epochOf();
  const starting = await newPods("n2", 17);
  await world.client.patch(DEFINITION, { metadata: { annotations: { [FORCE_DELETE]: "true" } } });
  await world.client.delete(DEFINITION);
  await until("it is gone", async () => (await world.client.get(DEFINITION).catch(() => undefined)) === undefined);
  const started = attachAll(starting);
  await applyCrds(world.client);
  const settledMs = await untilFilled(before);
  await started;
  expect(world.ledger.breaches).toEqual([]);
  for (const pod of [...running, ...starting]) await expectOwned(world, pod);
  report("definition made again", { settledMs });
  expect(settledMs).toBeLessThan(30_000);
});

it("an address stays reserved while the kind of reserved addresses is away", async () => {
  const kind = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/reservedips.ipam.vendor.io";
  const reserve = () => world.create("ReservedIP", "router", { ips: ["10.7.0.9"] });
  await reserve();
  await world.pool("few", { subnet: "10.7.0.0/24", ips: ["10.7.0.9"] });
  const pod = await world.createPod({ name: "eager", node: "n2", annotations: { ippool: { ipv4: ["few"] } } });
  const add = () => world.node("n2").runtime.attach(pod, { limitMs: 3_000 });
  expect((await add()).refusal).toContain("has no address that may be handed out");
  await world.client.patch(kind, { metadata: { annotations: { [FORCE_DELETE]: "true" } } });
  await world.client.delete(kind);
  await until("it is gone", async () => (await world.client.get(kind).catch(() => undefined)) === undefined);
  const { addresses, refusal } = await add();
  expect(addresses).toEqual([]);
  expect(refusal).toContain("waits for the kinds IPAllocation and ReservedIP, of which one is away");
  const { epoch: before = "" } = await epochOf();
  await applyCrds(world.client);
  await until("reserved addresses are served", () =>
    reserve().then(
      () => true,
      () => false,
    ),
  );
  await untilFilled(before);
  expect((await add()).addresses).toEqual([]);
});

/** Pods of which the copy has no record, because no agent has heard of them yet; and the copy. */
async function copyBefore(pods: () => Promise<LabPod[]>): Promise<{ late: LabPod[]; copy: string }> {
  for (const { proxy } of world.nodes()) proxy.holdWatches();
  const late = await pods();
  const copy = await world.plane.snapshot();
  for (const { proxy } of world.nodes()) proxy.releaseWatches();
  return { late, copy };
}

it("etcd is restored from an older copy under churn", async () => {
  const staying = await newPods("n1", 4);
  await attachAll(staying);
  const { epoch: before = "" } = await epochOf();
  const { late, copy } = await copyBefore(() => newPods("n1", 8));
  await attachAll(late);
  for (const start = performance.now(); performance.now() - start < CHURN_MS; ) {
    const pods = [...(await newPods("n1", 2)), ...(await newPods("n2", 2))];
    await attachAll(pods);
    for (const pod of pods) await endPod(world, pod);
  }
  await world.plane.restore(copy);
  const coming = [...(await newPods("n1", 4)), ...(await newPods("n2", 10))];
  await attachAll(coming);
  expect(world.ledger.breaches).toEqual([]);
  const settledMs = await untilFilled(before);
  expect((await epochOf()).cause).toBe("history");
  for (const pod of [...staying, ...late, ...coming]) await expectOwned(world, pod);
  report("restored under churn", { settledMs });
});

it("etcd is restored in a full pool whose addresses another node has had since", async () => {
  const [former, heirs] = [await newPods("n1", 12), await newPods("n2", 12)];
  await attachAll([...former, ...heirs]);
  const { epoch: before = "" } = await epochOf();
  const { late, copy } = await copyBefore(() => newPods("n2", 14));
  const ended = former.slice(0, 8);
  for (const pod of ended) await endPod(world, pod);
  // Thirty addresses: what the former pods had is among what these get.
  await attachAll(late);
  await world.plane.restore(copy);
  // The objects of those that have ended are back, and their kubelet starts them anew at once.
  const again = Promise.all(ended.map((pod) => world.node("n1").runtime.attach(pod, { limitMs: 5_000 })));
  const settledMs = await untilFilled(before);
  expect((await again).filter(({ addresses }) => addresses.length > 0)).toEqual([]);
  expect(world.ledger.breaches).toEqual([]);
  for (const pod of [...former.slice(8), ...heirs, ...late]) await expectOwned(world, pod);
  report("restored in a full pool", { settledMs });
});
