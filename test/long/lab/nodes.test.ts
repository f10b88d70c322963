import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import type { KubeObject } from "../../lab/kube-client.ts";
import { createNetns } from "../../lab/netns.ts";
import { startCensus } from "../../lab/nodes/census.ts";
import { NAMESPACE, type RealCluster, startRealCluster } from "../../lab/nodes/cluster.ts";
import { observe, ownerOf } from "../../lab/nodes/observe.ts";
import { paths, podOf } from "../../lab/nodes/workloads.ts";
import { untilDefined } from "../../lab/waiting.ts";

/** Everything that a cluster of this process leaves anywhere, by name. */
async function leftovers(): Promise<string[]> {
  const own = `${process.pid}-`;
  const list = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
  const hierarchies = (await list("/sys/fs/cgroup")).map((name) => `/sys/fs/cgroup/${name}`);
  const folders = [tmpdir(), "/run/netns", "/run/containerd/s", "/sys/fs/cgroup", ...hierarchies];
  const names = (await Promise.all(folders.map(list))).flat();
  const pids = (await list("/proc")).filter((name) => /^\d+$/.test(name));
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  const mounts = (await readFile("/proc/mounts", "utf8")).split("\n");
  return [
    ...names.filter((name) => new RegExp(`^(?:berth-nodes-|bn|berth-)${own}`).test(name)),
    ...[...commands, ...mounts].filter((text) => text.includes(`berth-nodes-${own}`)),
  ];
}

/** The census sees both pods' addresses, and a duplicate as soon as there is one. */
async function expectCensus(cluster: RealCluster, one: KubeObject, other: KubeObject): Promise<void> {
  const [node] = cluster.nodes;
  await using census = startCensus(cluster);
  const addresses = census.latest().map(({ address }) => address);
  expect(addresses).toEqual(expect.arrayContaining([one.status.podIP, other.status.podIP]));
  const seen = census.samples;
  const isSampled = async () => census.samples > seen + 1 || undefined;
  await untilDefined(isSampled, () => census.samples, 10_000);
  expect(census.duplicates()).toEqual([]);
  await node?.execInPod(ownerOf(other), ["ip", "addr", "add", `${one.status.podIP}/16`, "dev", "eth0"]);
  const isFound = async () => census.duplicates().length > 0 || undefined;
  await untilDefined(isFound, () => JSON.stringify(census.latest()), 10_000);
  expect(census.duplicates().join()).toContain(`${one.status.podIP} is on node1`);
}

test("a cluster that has run pods leaves no process, mount, cgroup, namespace and file", async () => {
  const cluster = await startRealCluster({ nodes: 1 });
  try {
    for (const name of ["one", "other"]) await cluster.client.create(paths.pods(NAMESPACE), podOf({ name }));
    const [one] = await observe(cluster).untilReady("one", 1);
    const [other] = await observe(cluster).untilReady("other", 1);
    await expectCensus(cluster, one, other);
    expect(await leftovers()).not.toEqual([]);
  } finally {
    await cluster.stop();
  }
  expect(await leftovers()).toEqual([]);
});

test("nor does one whose second node cannot be started", async () => {
  const taken = await createNetns(`bn${process.pid}-2-node2`);
  try {
    await expect(startRealCluster({ nodes: 2 })).rejects.toThrow(/File exists/);
  } finally {
    await taken.delete();
  }
  expect(await leftovers()).toEqual([]);
});
