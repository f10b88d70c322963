import { unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { KubeObject } from "../lab/kube-client.ts";
import { ownerOf } from "../lab/nodes/observe.ts";
import { deploymentOf, jobOf, paths, podOf, statefulSetOf } from "../lab/nodes/workloads.ts";
import { untilDefined } from "../lab/waiting.ts";
import { itLong } from "../world/long-cases.ts";
import { cluster, NAMESPACE, seen } from "./shared-cluster.ts";

const deployments = paths.deployments(NAMESPACE);
const statefulSets = paths.statefulSets(NAMESPACE);
const jobs = paths.jobs(NAMESPACE);
const pods = paths.pods(NAMESPACE);
/** Deletion of a Job as a person means it: with its pods. */
const WITH_PODS = { propagationPolicy: "Background" };

/** Every address comes back after every test. */
afterEach(async () => void (await seen.untilReturned()));

const addressOf = (pod: KubeObject): string => pod.status.podIP;
const nodesOf = (list: readonly KubeObject[]): string[] => [...new Set(list.map(({ spec }) => spec.nodeName))].sort();

async function remove(collection: string, name: string): Promise<void> {
  await cluster.client.delete(`${collection}/${name}`, WITH_PODS);
  await seen.untilGone(name);
}

itLong(
  "a Deployment goes from 0 to 50 and back: each pod's address is an object, its own, and answers from other nodes",
  async () => {
    await cluster.client.create(deployments, deploymentOf({ name: "web", replicas: 0 }));
    await cluster.client.patch(`${deployments}/web`, { spec: { replicas: 50 } });
    const all = await seen.untilReady("web", 50);
    expect(new Set(all.map(addressOf)).size).toBe(50);
    await seen.untilConsistent();
    expect(nodesOf(all)).toEqual(["node1", "node2", "node3"]);
    for (const name of nodesOf(all)) {
      const from = all.find(({ spec }) => spec.nodeName === name);
      await seen.reach(from, all);
    }
    const { adds, used } = await claimsAhead();
    console.log(`${used} of ${adds} first ADDs found an address that was claimed when the pod was bound`);
    expect(used).toBeGreaterThan(adds / 2);
    await cluster.client.patch(`${deployments}/web`, { spec: { replicas: 0 } });
    await seen.untilGone("web");
    await seen.untilReturned();
    await remove(deployments, "web");
  },
);

/** Sums the claims ahead of all nodes' agents: docs/develop/prefetch.md. */
async function claimsAhead(): Promise<{ adds: number; used: number }> {
  const stats = await Promise.all(cluster.nodes.map(({ agent }) => agent.get("/v1/stats")));
  const sum = (key: string): number => stats.reduce((total, { prefetch }) => total + prefetch[key], 0);
  return { adds: sum("adds"), used: sum("used") };
}

test("a rolling update gives new pods their own addresses and takes the old ones' back", async () => {
  await cluster.client.create(deployments, deploymentOf({ name: "shop", replicas: 8 }));
  const before = await seen.untilReady("shop", 8);
  const { spec } = deploymentOf({ name: "shop", replicas: 8, version: "2" });
  await cluster.client.patch(`${deployments}/shop`, { spec });
  const after = await seen.untilReady("shop", 8, ({ metadata }) => metadata.labels.version === "2");
  expect(after.some(({ metadata }) => before.some((old) => old.metadata.uid === metadata.uid))).toBe(false);
  await seen.untilConsistent();
  await remove(deployments, "shop");
});

test("retention: a pod of a StatefulSet keeps its address over a restart and on another node", async () => {
  await cluster.client.create(statefulSets, statefulSetOf({ name: "db", replicas: 3 }));
  const before = await seen.untilReady("db", 3);
  const addresses = new Map(before.map((pod) => [pod.metadata.name, addressOf(pod)]));
  const [first] = before.filter(({ metadata }) => metadata.name === "db-0");
  await cluster.client.delete(`${pods}/db-0`);
  const restarted = await seen.untilReady("db", 3, isNoneOf([first]));
  expect(restarted.map((pod) => [pod.metadata.name, addressOf(pod)])).toEqual([...addresses]);

  const [second] = restarted.filter(({ metadata }) => metadata.name === "db-1");
  const home = `/api/v1/nodes/${second.spec.nodeName}`;
  await cluster.client.patch(home, { spec: { unschedulable: true } });
  await cluster.client.delete(`${pods}/db-1`);
  const moved = await seen.untilReady("db", 3, isNoneOf([first, second]));
  await cluster.client.patch(home, { spec: { unschedulable: null } });
  const [there] = moved.filter(({ metadata }) => metadata.name === "db-1");
  expect(there.spec.nodeName).not.toBe(second.spec.nodeName);
  expect(moved.map((pod) => [pod.metadata.name, addressOf(pod)])).toEqual([...addresses]);
  await seen.untilConsistent();
  await seen.reach(moved[0], moved);
  await remove(statefulSets, "db");
  // Its retained addresses go, too: that is checked after every test.
});

function isNoneOf(gone: readonly KubeObject[]) {
  const uids = gone.map(({ metadata }) => metadata.uid);
  return ({ metadata }: KubeObject): boolean => !uids.includes(metadata.uid);
}

test("static-pods: a static pod's address belongs to the hash of its manifest, and goes with the manifest", async () => {
  const [, node] = cluster.nodes;
  if (node === undefined) throw new Error("There are three nodes");
  const manifest = join(node.manifests, "ingress.json");
  const pod = podOf({ name: "ingress" });
  await writeFile(manifest, JSON.stringify({ ...pod, metadata: { ...pod.metadata, namespace: NAMESPACE } }));
  const [mirror] = await seen.untilReady("ingress", 1);
  expect(mirror.metadata.name).toBe(`ingress-${node.name}`);
  expect(ownerOf(mirror)).not.toBe(mirror.metadata.uid);
  await seen.untilConsistent();
  const [allocation] = await seen.allocations();
  expect(allocation.spec).toMatchObject({ address: addressOf(mirror), holders: [{ podUID: ownerOf(mirror) }] });
  await node.restart("kubelet");
  const [same] = await seen.untilReady("ingress", 1);
  expect([addressOf(same), ownerOf(same)]).toEqual([addressOf(mirror), ownerOf(mirror)]);
  await unlink(manifest);
  await seen.untilGone("ingress");
});

test("a Job that has finished gives its addresses back, and its pods are still there", async () => {
  await cluster.client.create(jobs, jobOf({ name: "sum", replicas: 4, busybox: ["sleep", "1"] }));
  await untilDefined(
    async () => (await cluster.client.get(`${jobs}/sum`)).status.succeeded === 4 || undefined,
    () => seen.pods("sum").then(JSON.stringify),
    60_000,
  );
  await seen.untilReturned();
  expect((await seen.pods("sum")).map(({ status }) => status.phase)).toEqual(Array(4).fill("Succeeded"));
  await remove(jobs, "sum");
});

test("a force-deleted pod's address is no other pod's while its processes live, and is returned then", async () => {
  const stubborn = { name: "stubborn", busybox: ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"] };
  await cluster.client.create(pods, podOf({ ...stubborn, pod: { terminationGracePeriodSeconds: 30 } }));
  const [pod] = await seen.untilReady("stubborn", 1);
  const node = cluster.node(pod.spec.nodeName);
  const lives = () =>
    node.execInPod(pod.metadata.uid, ["true"]).then(
      () => true,
      () => false,
    );
  await cluster.client.delete(`${pods}/stubborn`, { gracePeriodSeconds: 0 });
  await cluster.client.create(deployments, deploymentOf({ name: "after", replicas: 6 }));
  let reads = 0;
  for (; ; reads++) {
    const given = (await seen.pods("after")).map(addressOf);
    // It lives after the read, so it did at that time.
    if (!(await lives())) break;
    expect(given).not.toContain(addressOf(pod));
  }
  expect(reads).toBeGreaterThan(0);
  await seen.untilReady("after", 6);
  await remove(deployments, "after");
});
