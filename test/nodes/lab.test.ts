import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { createNetns } from "../../scripts/lab/netns.ts";
import { NAMESPACE, startRealCluster } from "../../scripts/lab/nodes/cluster.ts";
import { observe } from "../../scripts/lab/nodes/observe.ts";
import { paths, podOf } from "../../scripts/lab/nodes/workloads.ts";

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

test("a cluster that has run pods leaves no process, mount, cgroup, namespace and file", async () => {
  const cluster = await startRealCluster({ nodes: 1 });
  try {
    await cluster.client.create(paths.pods(NAMESPACE), podOf({ name: "one" }));
    await observe(cluster).untilReady("one", 1);
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
