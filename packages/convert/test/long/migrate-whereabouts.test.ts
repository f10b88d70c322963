/**
 * From whereabouts and macvlan to Berth on three kubelets, as docs/migration.md says: second NICs by Multus, workload
 * by workload, with the way back, while pods talk to each other.
 */
import { readFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { applyObject } from "../../../../test/lab/apply.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../../../../test/lab/nodes/cluster.ts";
import { type Observer, observe } from "../../../../test/lab/nodes/observe.ts";
import { deploymentOf, paths, statefulSetOf } from "../../../../test/lab/nodes/workloads.ts";
import { installWhereabouts, whereaboutsNetwork } from "../../../../test/lab/peers/whereabouts.ts";
import { Operator } from "../../../../test/nodes/operator.ts";
import { berth, countOf, isNoneOf, MigrationWatch } from "./migration-watch.ts";

const RANGE = "10.99.64.0/18";
/** Berth's part of it. */
const OWN = "10.99.96.0/19";
const OURS = /^10[.]99[.](?:9[6-9]|1[01]\d|12[0-7])[.]/;
const THEIRS = /^10[.]99[.](?:6[4-9]|[78]\d|9[0-5])[.]/;
const DEFINITION = `${paths.definitions(NAMESPACE)}/lan`;
const THEIR_POOLS = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools";

let cluster: RealCluster;
let seen: Observer;
let operator: Operator;
let watch: MigrationWatch;

beforeAll(async () => {
  cluster = await startRealCluster({ nodes: 3, network: "overlay" });
  seen = observe(cluster);
  operator = new Operator(
    cluster,
    cluster.nodes.map(({ name }) => name),
  );
  watch = new MigrationWatch(cluster, seen);
  await cluster.client.delete("/apis/ipam.vendor.io/v1/ippools/lan");
  await installWhereabouts(cluster);
  await applyObject(cluster.client, whereaboutsNetwork(cluster, "lan", { range: RANGE }));
}, 300_000);
afterAll(async () => {
  await watch?.end();
  await cluster?.stop();
  operator?.[Symbol.dispose]();
});

const deployments = paths.deployments(NAMESPACE);
const networks = { "k8s.v1.cni.cncf.io/networks": "lan" };

/** Returns the address of its second NIC, as Multus reports it. */
function addressOf({ metadata }: KubeObject): string {
  const status: { readonly interface: string; readonly ips: readonly string[] }[] = JSON.parse(
    metadata.annotations["k8s.v1.cni.cncf.io/network-status"],
  );
  return status.find((each) => each.interface === "net1")?.ips[0] ?? "";
}
const addressesOf = (pods: readonly KubeObject[]): string[] => pods.map(addressOf).sort();
const byName = (pods: readonly KubeObject[]) => pods.map((pod) => `${pod.metadata.name} ${addressOf(pod)}`);

const convert = (...words: string[]): Promise<string> =>
  berth(operator, "convert", "whereabouts", "--ips", OWN, ...words);
const adopt = (...words: string[]): Promise<string> => berth(operator, "adopt", ...words);
/** whereabouts' records: pods. */
async function theirPods(): Promise<string[]> {
  const { items } = await cluster.client.get(THEIR_POOLS);
  const pods: string[] = items.flatMap(({ spec }: KubeObject) =>
    Object.values(spec.allocations).map((each) => (each as KubeObject).podref),
  );
  return pods.sort();
}

/** Berth's allocations are these pods' addresses; each range has its own. */
async function expectAllocated(ours: readonly KubeObject[], adopted: readonly KubeObject[]): Promise<void> {
  expect(addressesOf(ours).filter((address) => !OURS.test(address))).toEqual([]);
  expect(addressesOf(adopted).filter((address) => !THEIRS.test(address))).toEqual([]);
  const wanted = addressesOf([...ours, ...adopted]);
  const allocated = async (): Promise<string[]> =>
    (await seen.allocations())
      .filter(({ spec }) => spec.state === "Bound")
      .map(({ spec }) => spec.address)
      .sort();
  await expect.poll(allocated, { timeout: 30_000 }).toEqual(wanted);
  expect((await operator.check()).found).toEqual([]);
}

let still: KubeObject[];
let db: KubeObject[];

test("addresses of running pods are adopted, once the other IPAM excludes Berth's", async () => {
  await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 6, annotations: networks }));
  await cluster.client.create(deployments, deploymentOf({ name: "still", replicas: 3, annotations: networks }));
  await cluster.client.create(
    paths.statefulSets(NAMESPACE),
    statefulSetOf({ name: "db", replicas: 3, annotations: networks }),
  );
  const web = await seen.untilReady("web", 6);
  [still, db] = [await seen.untilReady("still", 3), await seen.untilReady("db", 3)];
  for (const pod of still) await watch.connect(pod, [...still, ...db], addressOf);

  const refused = await operator.berth("convert", "whereabouts", "--ips", OWN, "--apply");
  expect(refused.stdout).toContain("whereabouts allocates 10.99.96.0-10.99.127.255 as well as --ips would");
  expect(refused.stderr).toContain("Nothing was applied");
  expect(refused.exitCode).toBe(1);
  await cluster.client.patch(DEFINITION, {
    spec: whereaboutsNetwork(cluster, "lan", { range: RANGE, exclude: [OWN] }).spec,
  });
  await convert("--apply", "--out", join(operator.home, "plan"));
  expect(countOf(await adopt(), "adoptable")).toBe(12);
  expect(await seen.allocations()).toEqual([]);
  const adopted = await adopt("--apply");
  expect(countOf(adopted, "adopted")).toBe(12);
  expect(adopted).toContain("The runtime may still call whereabouts when these pods end");
  await expectAllocated([], [...web, ...still, ...db]);
  const again = await convert("--apply");
  expect(again).toContain("0 addresses in use");
  expect(again).toMatch(/ReservedIP\/whereabouts-in-use-v4 .* no longer needed/);
  await cluster.client.delete("/apis/ipam.vendor.io/v1/reservedips/whereabouts-in-use-v4");
}, 240_000);

test("a workload moves with its patch, and the others keep their addresses", async () => {
  const before = await seen.pods("web");
  expect(await convert("--apply", "--patch", "deployment/shop/web")).toContain("deployment/shop/web changed");
  const web = await seen.untilReady("web", 6, isNoneOf(before));
  await expectAllocated(web, [...still, ...db]);
  for (const pod of still) await watch.connect(pod, web.slice(0, 2), addressOf);
  for (const pod of web.slice(2, 4)) await watch.connect(pod, still, addressOf);
  await watch.expectUnharmed();
  // A pod that was not moved, and restarts, is still the other IPAM's.
  expect(await theirPods()).toEqual([...still, ...db].map(({ metadata }) => `${NAMESPACE}/${metadata.name}`).sort());
}, 240_000);

test("the way back: the rollback restores the workload, and adopted addresses are released", async () => {
  for (const pod of still) await watch.connect(pod, [...still, ...db], addressOf);
  const before = await seen.pods("web");
  const rollback = readFileSync(join(operator.home, "plan", "rollback", "deployment.shop.web.yaml"), "utf8");
  await cluster.client.patch(`${deployments}/web`, parse(rollback));
  const web = await seen.untilReady("web", 6, isNoneOf(before));
  await expectAllocated([], [...still, ...db]);
  expect(addressesOf(web).filter((address) => !THEIRS.test(address))).toEqual([]);
  expect(await theirPods()).toEqual(
    [...web, ...still, ...db].map(({ metadata }) => `${NAMESPACE}/${metadata.name}`).sort(),
  );
  expect(countOf(await adopt("--undo", "--apply"), "released")).toBe(6);
  await seen.untilReturned();
  expect(byName(await seen.pods("db"))).toEqual(byName(db));
  await watch.expectUnharmed();
}, 240_000);

test("the end of a pod needs the plugin that it was attached by, also if its address was adopted", async () => {
  for (const pod of still) await watch.connect(pod, [...still, ...db], addressOf);
  expect(countOf(await adopt("--apply"), "adopted")).toBe(12);
  const plugin = join(cluster.binDir, "whereabouts");
  await rename(plugin, `${plugin}.gone`);
  await cluster.client.patch(`${deployments}/web`, { spec: { replicas: 0 } });
  await expect.poll(readWarnings, { timeout: 60_000 }).toMatch(/failed to find plugin .{1,2}whereabouts/);
  expect((await seen.pods("web")).length).toBeGreaterThan(0);
  await rename(`${plugin}.gone`, plugin);
  await seen.untilGone("web");
  await expectAllocated([], [...still, ...db]);
}, 240_000);

test("members of a StatefulSet move with their addresses once whereabouts allocates none, and it can be removed", async () => {
  const all = whereaboutsNetwork(cluster, "lan", { range: RANGE, exclude: [RANGE] });
  await cluster.client.patch(DEFINITION, { spec: all.spec });
  const whole = ["convert", "whereabouts", "--ips", RANGE, "--apply", "--patch"];
  await watch.expectUnharmed();
  for (const pod of still) await watch.connect(pod, still, addressOf);
  expect(await berth(operator, ...whole, "statefulset/shop/db")).toContain("statefulset/shop/db changed");
  expect(await adopt("--undo").catch(String)).toContain("would allocate it to another pod");
  const moved = await seen.untilReady("db", 3, isNoneOf(db));
  expect(byName(moved)).toEqual(byName(db));
  for (const pod of still) await watch.connect(pod, [...still, ...moved], addressOf);
  await watch.expectUnharmed();
  await berth(operator, ...whole, "deployment/shop/still");
  await seen.untilReady("still", 3, isNoneOf(still));
  expect(await theirPods()).toEqual([]);
  expect(await adopt()).toContain("No pod of this node has an address of another IPAM in a pool");
  await cluster.client.delete(DEFINITION);
  await rename(join(cluster.binDir, "whereabouts"), join(cluster.binDir, "whereabouts.removed"));
  await watch.deleteWorkloads();
}, 240_000);

async function readWarnings(): Promise<string> {
  const { items } = await cluster.client.get(`/api/v1/namespaces/${NAMESPACE}/events?fieldSelector=type%3DWarning`);
  return items.map(({ message }: KubeObject) => message).join("\n");
}
