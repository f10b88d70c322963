/**
 * From Spiderpool and its coordinator to Berth on three kubelets, as docs/migration.md says: first NICs by Multus,
 * workload by workload, with the way back, while pods talk to each other.
 */
import { readFileSync } from "node:fs";
import { readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "../../../../scripts/setup/paths.mjs";
import { runCommand } from "../../../../test/lab/command.ts";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../../../../test/lab/nodes/cluster.ts";
import { type Observer, observe } from "../../../../test/lab/nodes/observe.ts";
import { deploymentOf, paths, statefulSetOf } from "../../../../test/lab/nodes/workloads.ts";
import { installSpiderpool, SPIDER_POOL } from "../../../../test/lab/peers/spiderpool-nodes.ts";
import { Operator } from "../../../../test/nodes/operator.ts";
import { berth, countOf, isNoneOf, MigrationWatch } from "./migration-watch.ts";

const IPS = "10.99.64.1-10.99.127.254";
/** Berth's part of it. */
const OWN = "10.99.96.1-10.99.127.254";
const OURS = /^10[.]99[.](?:9[6-9]|1[01]\d|12[0-7])[.]/;
const THEIRS = /^10[.]99[.](?:6[4-9]|[78]\d|9[0-5])[.]/;

let cluster: RealCluster;
let seen: Observer;
let operator: Operator;
let watch: MigrationWatch;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  cluster = await startRealCluster({ nodes: 3, network: "overlay" });
  stack.defer(() => cluster.stop());
  seen = observe(cluster);
  operator = stack.use(
    new Operator(
      cluster,
      cluster.nodes.map(({ name }) => name),
    ),
  );
  watch = new MigrationWatch(cluster, seen);
  stack.defer(() => watch.end());
  await cluster.client.delete("/apis/ipam.vendor.io/v1/ippools/lan");
  stack.use(await installSpiderpool(cluster, { ips: [IPS], serviceCIDR: "10.96.0.0/16" }));
}, 300_000);
afterAll(() => stack.disposeAsync());

const deployments = paths.deployments(NAMESPACE);
const annotations = { "v1.multus-cni.io/default-network": "kube-system/spider" };
const addressesOf = (pods: readonly KubeObject[]): string[] => pods.map(({ status }) => status.podIP).sort();
const byName = (pods: readonly KubeObject[]) => pods.map(({ metadata, status }) => `${metadata.name} ${status.podIP}`);
const adopt = (...words: string[]): Promise<string> => berth(operator, "adopt", ...words);
const convert = (ips: string, ...words: string[]): Promise<string> =>
  berth(operator, "convert", "spiderpool", "--ips", ips, "--apply", ...words);

let still: KubeObject[];
let db: KubeObject[];

test("Berth refuses to install over Spiderpool's coordinator, and beside it has names of its own", async () => {
  const install = (...words: string[]) =>
    runCommand([
      process.execPath,
      join(root, "dist", "berth-agent.mjs"),
      "install",
      "--cni-bin-dir",
      cluster.binDir,
      ...words,
    ]);
  const before = await readdir(cluster.binDir);
  const refused = await install();
  expect([refused.exitCode, refused.stderr]).toEqual([
    1,
    expect.stringContaining("belongs to another product; nothing was changed"),
  ]);
  expect(await readdir(cluster.binDir)).toEqual(before);
  expect((await install("--aliases-only")).exitCode).toBe(0);
  expect(await readlink(join(cluster.binDir, "coordinator"))).toContain("spiderpool");
});

test("addresses of running pods are adopted, once the other IPAM excludes Berth's", async () => {
  await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 6, annotations }));
  await cluster.client.create(deployments, deploymentOf({ name: "still", replicas: 3, annotations }));
  await cluster.client.create(paths.statefulSets(NAMESPACE), statefulSetOf({ name: "db", replicas: 3, annotations }));
  const web = await seen.untilReady("web", 6);
  [still, db] = [await seen.untilReady("still", 3), await seen.untilReady("db", 3)];
  expect(addressesOf([...web, ...still, ...db]).filter((address) => !/^10[.]99[.]/.test(address))).toEqual([]);
  for (const pod of still) await watch.connect(pod, [...still, ...db]);
  await cluster.client.patch(SPIDER_POOL, { spec: { excludeIPs: [OWN] } });
  const applied = await convert(OWN, "--out", join(operator.home, "plan"));
  // Its controller has made one before.
  expect(applied).toContain("Coordinator/default changed");
  expect(applied).toContain("Spiderpool's routes of running pods stay in table 500");
  expect(countOf(await adopt(), "adoptable")).toBe(12);
  expect(countOf(await adopt("--apply"), "adopted")).toBe(12);
  await expectAllocated([], [...web, ...still, ...db]);
  const again = await convert(OWN);
  expect(again).toContain("0 addresses in use");
  expect(again).toMatch(/ReservedIP\/spiderpool-in-use-v4 .* no longer needed/);
  await cluster.client.delete("/apis/ipam.vendor.io/v1/reservedips/spiderpool-in-use-v4");
}, 240_000);

/** Berth's allocations are all pods' addresses; each range has its own. */
async function expectAllocated(ours: readonly KubeObject[], adopted: readonly KubeObject[]): Promise<void> {
  expect(addressesOf(ours).filter((address) => !OURS.test(address))).toEqual([]);
  expect(addressesOf(adopted).filter((address) => !THEIRS.test(address))).toEqual([]);
  await seen.untilConsistent();
  expect((await operator.check()).found).toEqual([]);
}

/** Spiderpool's records: pods. */
async function theirPods(): Promise<string[]> {
  const { status } = await cluster.client.get(SPIDER_POOL);
  const records: { pod: string }[] = Object.values(JSON.parse(status.allocatedIPs ?? "{}"));
  return records.map(({ pod }) => pod).sort();
}
const namesOf = (pods: readonly KubeObject[]): string[] =>
  pods.map(({ metadata }) => `${NAMESPACE}/${metadata.name}`).sort();

test("a workload moves with its patch, beside Spiderpool's routes, and the others keep their addresses", async () => {
  const before = await seen.pods("web");
  expect(await convert(OWN, "--patch", "deployment/shop/web")).toContain("deployment/shop/web changed");
  const web = await seen.untilReady("web", 6, isNoneOf(before));
  await expectAllocated(web, [...still, ...db]);
  for (const pod of still) await watch.connect(pod, web.slice(0, 2));
  for (const pod of web.slice(2, 4)) await watch.connect(pod, still);
  for (const { machine, name } of cluster.nodes) {
    const routes = async (table: string): Promise<string> => machine.run(["ip", "route", "show", "table", table]);
    const [theirs, ours] = [await routes("500"), await routes("501")];
    const here = (pods: readonly KubeObject[]) => addressesOf(pods.filter(({ spec }) => spec.nodeName === name));
    expect(here([...still, ...db]).filter((address) => !theirs.includes(address))).toEqual([]);
    expect(here(web).filter((address) => !ours.includes(address))).toEqual([]);
    expect(here(web).filter((address) => theirs.includes(address))).toEqual([]);
  }
  await watch.expectUnharmed();
  expect(await theirPods()).toEqual(namesOf([...still, ...db]));
}, 240_000);

test("the way back: the rollback restores the workload, and adopted addresses are released", async () => {
  for (const pod of still) await watch.connect(pod, [...still, ...db]);
  const before = await seen.pods("web");
  const rollback = readFileSync(join(operator.home, "plan", "rollback", "deployment.shop.web.yaml"), "utf8");
  await cluster.client.patch(`${deployments}/web`, parse(rollback));
  const web = await seen.untilReady("web", 6, isNoneOf(before));
  expect(addressesOf(web).filter((address) => !THEIRS.test(address))).toEqual([]);
  expect(await theirPods()).toEqual(namesOf([...web, ...still, ...db]));
  expect(countOf(await adopt("--undo", "--apply"), "released")).toBe(6);
  await seen.untilReturned();
  expect(byName(await seen.pods("db"))).toEqual(byName(db));
  await watch.expectUnharmed();
}, 240_000);

test("members of a StatefulSet move with their addresses once Spiderpool allocates none", async () => {
  for (const pod of still) await watch.connect(pod, [...still, ...db]);
  expect(countOf(await adopt("--apply"), "adopted")).toBe(12);
  await cluster.client.patch(SPIDER_POOL, { spec: { excludeIPs: [IPS] } });
  // Spiderpool keeps the endpoints of pods for a while that have ended, whose addresses others have by now.
  await expect.poll(() => convert(IPS, "--patch", "deployment/shop/web"), { timeout: 60_000 }).toContain("web changed");
  await watch.expectUnharmed();
  expect(await convert(IPS, "--patch", "statefulset/shop/db")).toContain("statefulset/shop/db changed");
  const moved = await seen.untilReady("db", 3, isNoneOf(db));
  expect(byName(moved)).toEqual(byName(db));
  for (const pod of still) await watch.connect(pod, [...still, ...moved]);
  await watch.expectUnharmed();
  await convert(IPS, "--patch", "deployment/shop/still");
  await seen.untilReady("still", 3, isNoneOf(still));
  await seen.untilConsistent();
  // Spiderpool retains those of a StatefulSet as long as the set exists.
  await expect.poll(theirPods, { timeout: 30_000 }).toEqual(namesOf(db));
  expect(await adopt()).toContain("No pod of this node has an address of another IPAM in a pool");
  await watch.deleteWorkloads();
}, 240_000);
