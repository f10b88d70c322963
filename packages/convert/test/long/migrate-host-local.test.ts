/**
 * From host-local to Berth on three kubelets, as docs/migration.md says: node by node, workload by workload, with the
 * way back, while pods talk to each other.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { KubeObject } from "../../../../test/lab/kube-client.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../../../../test/lab/nodes/cluster.ts";
import { type Observer, observe } from "../../../../test/lab/nodes/observe.ts";
import { deploymentOf, paths, statefulSetOf } from "../../../../test/lab/nodes/workloads.ts";
import { Operator } from "../../../../test/nodes/operator.ts";
import { berth, countOf, MigrationWatch } from "./migration-watch.ts";

/** Range of the nodes' subnet, outside of host-local's ranges. */
const OWN = "10.99.16.0-10.99.31.255";
const OURS = /^10[.]99[.](?:1[6-9]|2\d|3[01])[.]/;
const THEIRS = /^10[.]99[.]10[1-3][.]/;
const NETWORK = "lan-host-local";
const FILE = "10-lan.conflist";
const POOL = `/apis/ipam.vendor.io/v1/ippools/${NETWORK}-v4`;
const RESERVED = "/apis/ipam.vendor.io/v1/reservedips";

let cluster: RealCluster;
let seen: Observer;
let operator: Operator;
let watch: MigrationWatch;
let nodes: string[];

beforeAll(async () => {
  cluster = await startRealCluster({ nodes: 3, network: "host-local" });
  nodes = cluster.nodes.map(({ name }) => name);
  seen = observe(cluster);
  operator = new Operator(cluster, nodes);
  watch = new MigrationWatch(cluster, seen);
  await cluster.client.delete("/apis/ipam.vendor.io/v1/ippools/lan");
}, 300_000);
afterAll(async () => {
  await watch?.end();
  await cluster?.stop();
  operator?.[Symbol.dispose]();
});

const deployments = paths.deployments(NAMESPACE);
const addressesOf = (pods: readonly KubeObject[]): string[] => pods.map(({ status }) => status.podIP).sort();
const byName = (pods: readonly KubeObject[]) => pods.map(({ metadata, status }) => `${metadata.name} ${status.podIP}`);

/** Copies the nodes' present files, as the administrator does. */
function copyNodes(): string[] {
  return cluster.nodes.map(({ name, machine }) => {
    const folder = join(operator.home, "nodes", name);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    cpSync(join(machine.root, "/var/lib/cni/networks"), join(folder, "networks"), { recursive: true });
    cpSync(join(machine.directory, "net.d"), join(folder, "net.d"), { recursive: true });
    return `${name}=${folder}`;
  });
}

/** host-local's records of all nodes: addresses. */
function theirRecords(): string[] {
  const folders = cluster.nodes.map(({ machine }) => join(machine.root, "/var/lib/cni/networks", NETWORK));
  return folders.flatMap((folder) => readdirSync(folder).filter((name) => /^\d+[.]/.test(name))).sort();
}

const adopt = (...words: string[]): Promise<string> => berth(operator, "adopt", ...words);

const plan = () => join(operator.home, "plan");
const convert = (...words: string[]): Promise<string> =>
  berth(operator, "convert", "host-local", ...copyNodes(), "--ips", OWN, "--out", plan(), ...words);
const listReserved = async (): Promise<string[]> =>
  (await cluster.client.get(RESERVED)).items.flatMap(({ spec }: KubeObject) => spec.ips);

/** The network that each node has from now on; pods that run keep theirs. */
function installNetworks(whose: "berth" | "host-local"): void {
  for (const { name, machine } of cluster.nodes) {
    const folder = whose === "berth" ? join(plan(), "cni", name) : join(operator.home, "before", name, "net.d");
    const path = join(machine.directory, "net.d", FILE);
    writeFileSync(`${path}.new`, readFileSync(join(folder, FILE)));
    renameSync(`${path}.new`, path);
  }
}

/** The pods' addresses are from the range, and Berth's allocations are those of all pods. */
async function expectAddresses(pods: readonly KubeObject[], range: RegExp): Promise<void> {
  expect(addressesOf(pods).filter((address) => !range.test(address))).toEqual([]);
  await seen.untilConsistent();
  expect((await operator.check()).found).toEqual([]);
}

let still: KubeObject[];
let db: KubeObject[];

test("addresses of running pods are adopted, and their reservation is not needed any more", async () => {
  await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 6 }));
  await cluster.client.create(deployments, deploymentOf({ name: "still", replicas: 3 }));
  await cluster.client.create(paths.statefulSets(NAMESPACE), statefulSetOf({ name: "db", replicas: 3 }));
  const web = await seen.untilReady("web", 6);
  [still, db] = [await seen.untilReady("still", 3), await seen.untilReady("db", 3)];
  for (const pod of still) await watch.connect(pod, [...still, ...db]);
  copyNodes();
  cpSync(join(operator.home, "nodes"), join(operator.home, "before"), { recursive: true });

  expect(await convert("--apply")).toContain("12 addresses in use");
  // host-local begins each node's range at its first address.
  expect(await listReserved()).toEqual([
    "10.99.101.1-10.99.101.4",
    "10.99.102.1-10.99.102.4",
    "10.99.103.1-10.99.103.4",
  ]);
  expect(countOf(await adopt(), "adoptable")).toBe(12);
  expect(await seen.allocations()).toEqual([]);
  expect(countOf(await adopt("--apply"), "adopted")).toBe(12);
  await expectAddresses([...web, ...still, ...db], THEIRS);
  expect(countOf(await adopt("--apply"), "recorded")).toBe(12);

  const again = await convert("--apply");
  expect(again).toContain("0 addresses in use");
  expect(again).toMatch(/ReservedIP\/host-local-in-use-v4 .* no longer needed/);
  await cluster.client.delete(`${RESERVED}/host-local-in-use-v4`);
}, 180_000);

test("a workload moves when it restarts on a node that has Berth's network; the others keep their addresses", async () => {
  installNetworks("berth");
  const web = await watch.restart("deployments", "web");
  await expectAddresses(web, OURS);
  await expectAddresses([...still, ...db], THEIRS);
  for (const pod of still) await watch.connect(pod, web.slice(0, 2));
  for (const pod of web.slice(2, 4)) await watch.connect(pod, still);
  await watch.expectUnharmed();
}, 180_000);

test("the way back: workloads restart with host-local's network, and adopted addresses are released", async () => {
  for (const pod of still) await watch.connect(pod, [...still, ...db]);
  installNetworks("host-local");
  const web = await watch.restart("deployments", "web");
  expect(addressesOf(web).filter((address) => !THEIRS.test(address))).toEqual([]);
  // Of pods that run, and of those that ended while the node had the other network: the runtime did not call
  // host-local for them.
  expect(theirRecords()).toEqual(expect.arrayContaining(addressesOf([...web, ...still, ...db])));
  expect(countOf(await adopt("--undo"), "releasable")).toBe(6);
  expect(countOf(await adopt("--undo", "--apply"), "released")).toBe(6);
  await seen.untilReturned();
  expect(byName(await seen.pods("db"))).toEqual(byName(db));
  await watch.expectUnharmed();
}, 180_000);

test("a StatefulSet keeps its adopted addresses once host-local allocates none, and host-local can be removed", async () => {
  for (const pod of still) await watch.connect(pod, still);
  const [pod] = still;
  installNetworks("berth");
  expect(countOf(await adopt("--apply"), "adopted")).toBe(12);
  await watch.restart("deployments", "web");
  // No pod gets an address of host-local any more: its ranges are Berth's from now on.
  await cluster.client.patch(POOL, { spec: { ips: [OWN, "10.99.101.1-10.99.103.250"] } });
  expect(await adopt("--undo").catch(String)).toContain("would allocate it to another pod");
  const moved = await watch.restart("statefulSets", "db");
  expect(byName(moved)).toEqual(byName(db));
  await watch.connect(pod as KubeObject, moved);
  await watch.expectUnharmed();
  await watch.restart("deployments", "still");
  await seen.untilConsistent();
  for (const { machine } of cluster.nodes)
    rmSync(join(machine.root, "/var/lib/cni/networks", NETWORK), { recursive: true });
  expect(await adopt()).toContain("No pod of this node has an address of another IPAM in a pool");
  await watch.deleteWorkloads();
}, 240_000);
