/**
 * The cgroups of a node: a folder of its own in each hierarchy, below which its kubelet makes those of the pods.
 * Version 1 and 2.
 *
 *   await makeCgroups("berth-1-node1");
 *   await findPodProcesses("berth-1-node1", pod.metadata.uid);    // PIDs in this process's namespace
 *   await removeCgroups("berth-1-node1");                         // when the node's processes are gone
 *
 * Effects: folders below /sys/fs/cgroup.
 */
import { access, mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const ROOT = "/sys/fs/cgroup";
/** In version 1 a cpuset without these takes no process. */
const CPUSET_FILES = ["cpuset.cpus", "cpuset.mems"];
const CONTROLLERS = ["cpu", "cpuset", "memory", "pids"];
const REMOVE_MS = 10_000;
const PAUSE_MS = 50;

/** The kubelet wants them to exist. */
export async function makeCgroups(name: string): Promise<void> {
  for (const hierarchy of await findHierarchies()) {
    await mkdir(join(hierarchy, name), { recursive: true });
    for (const file of CPUSET_FILES) {
      const value = await readFile(join(hierarchy, file), "utf8").catch(() => "");
      if (value.trim() !== "") await writeFile(join(hierarchy, name, file), value);
    }
  }
  if (await exists(join(ROOT, "cgroup.controllers"))) {
    const text = CONTROLLERS.map((controller) => `+${controller}`).join(" ");
    await writeFile(join(ROOT, "cgroup.subtree_control"), text);
  }
}

/** Waits for the last processes. Nothing happens when they are gone already. */
export async function removeCgroups(name: string): Promise<void> {
  const deadline = performance.now() + REMOVE_MS;
  for (const hierarchy of await findHierarchies()) {
    while (await exists(join(hierarchy, name))) {
      try {
        await removeFolder(join(hierarchy, name));
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await sleep(PAUSE_MS);
      }
    }
  }
}

/** Returns the processes of all its containers; none if it has no sandbox here. */
export async function findPodProcesses(name: string, uid: string): Promise<number[]> {
  const [hierarchy = ROOT] = (await findHierarchies()).filter((path) => path === ROOT || path.endsWith("/pids"));
  const folder = (await listFolders(join(hierarchy, name))).find((path) => path.endsWith(`/pod${uid}`));
  if (folder === undefined) return [];
  const texts = await Promise.all(
    [folder, ...(await listFolders(folder))].map((path) =>
      readFile(join(path, "cgroup.procs"), "utf8").catch(() => ""),
    ),
  );
  return texts.flatMap((text) => text.split("\n").filter((line) => line !== "")).map(Number);
}

/**
 * The whole of version 2; or each hierarchy of version 1, and that of version 2 beside them, where runc makes
 * folders, too.
 */
async function findHierarchies(): Promise<string[]> {
  if (await exists(join(ROOT, "cgroup.controllers"))) return [ROOT];
  const folders = (await readdir(ROOT, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const paths = folders.map(({ name }) => join(ROOT, name));
  const isUsed = await Promise.all(paths.map((path) => exists(join(path, "cgroup.procs"))));
  return paths.filter((_, index) => isUsed[index]);
}

/** All folders below, parents first, without those that vanish meanwhile. */
async function listFolders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  const own = entries.filter((entry) => entry.isDirectory()).map((entry) => join(path, entry.name));
  const deeper = await Promise.all(own.map(listFolders));
  return own.flatMap((folder, index) => [folder, ...(deeper[index] ?? [])]);
}

/** Only folders can be removed there. */
async function removeFolder(path: string): Promise<void> {
  for (const folder of [path, ...(await listFolders(path))].reverse()) await rmdir(folder);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
