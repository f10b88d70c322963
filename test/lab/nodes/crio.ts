/**
 * CRI-O on a node's machine, from the set-up target `versions`: its configuration, its start, the images of the lab.
 * Effects: files below the machine's folder; a process there.
 */
import { access, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { referenceTool, root } from "../../../scripts/setup/paths.mjs";
import { type RuntimeOptions, runtimeSocket, START_MS } from "./containerd.ts";
import { BUSYBOX_IMAGE, PAUSE_IMAGE } from "./image.ts";
import type { Machine, MachineProcess } from "./machine.ts";

const IMAGES: Readonly<Record<string, string>> = { "pause.tar": PAUSE_IMAGE, "busybox.tar": BUSYBOX_IMAGE };
const RUN = "/run/crio";

/** Resolves when it answers. */
export async function startCrio(machine: Machine, options: RuntimeOptions): Promise<MachineProcess> {
  const [config, policy] = [join(machine.directory, "crio.toml"), join(machine.directory, "policy.json")];
  await writeFile(policy, JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] }));
  await writeFile(config, formatConfig(machine, policy, options));
  await hideUnmountedControllers(machine);
  for (const archive of options.images) await importImage(machine, policy, archive);
  const argv = [join(referenceTool("crio").directory, "crio"), "--config", config, "--config-dir", ""];
  const daemon = await machine.start("crio", argv, options.env);
  try {
    await daemon.until(() => machine.run(["test", "-S", runtimeSocket(machine)]).then(() => true), START_MS);
  } catch (error) {
    await daemon.end("SIGKILL");
    throw error;
  }
  return daemon;
}

async function importImage(machine: Machine, policy: string, archive: string): Promise<void> {
  const copyimg = join(referenceTool("crio").directory, "copyimg");
  const store = ["--root", storeOf(machine), "--runroot", join(RUN, "storage"), "--storage-driver", "overlay"];
  const name = IMAGES[basename(archive)] ?? basename(archive);
  const source = ["--import-from", `docker-archive:${archive}`, "--image-name", name];
  await machine.run([copyimg, ...store, "--signature-policy", policy, ...source]);
}

/**
 * With cgroups of version 1, CRI-O sets limits of every controller of the kernel, and fails for one that is not
 * mounted.
 */
async function hideUnmountedControllers(machine: Machine): Promise<void> {
  const path = join(machine.directory, "cgroups");
  const lines = (await readFile("/proc/cgroups", "utf8")).split("\n");
  const isMounted = async (line: string): Promise<boolean> => {
    const [name = ""] = line.split("\t");
    if (name === "" || name.startsWith("#")) return true;
    return access(join("/sys/fs/cgroup", name)).then(
      () => true,
      () => false,
    );
  };
  const mounted = await Promise.all(lines.map(isMounted));
  await writeFile(path, lines.filter((_, index) => mounted[index]).join("\n"));
  await machine.run(["mount", "--bind", path, "/proc/cgroups"]);
}

const storeOf = ({ directory }: Machine): string => join(directory, "crio");

function formatConfig(machine: Machine, policy: string, { binDir, confDir }: RuntimeOptions): string {
  return `[crio]
root = "${storeOf(machine)}"
runroot = "${RUN}/storage"
storage_driver = "overlay"
log_dir = "${join(machine.directory, "crio-pods")}"
version_file = "${RUN}/version"
clean_shutdown_file = "${join(machine.directory, "crio-clean")}"
[crio.api]
listen = "${runtimeSocket(machine)}"
[crio.runtime]
default_runtime = "runc"
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
apparmor_profile = "unconfined"
irqbalance_config_restore_file = "disable"
enable_criu_support = false
hooks_dir = []
pinns_path = "${join(root, "dist", "nodes", "pinns")}"
namespaces_dir = "${RUN}/namespaces"
container_exits_dir = "${RUN}/exits"
container_attach_socket_dir = "${RUN}/attach"
[crio.runtime.runtimes.runc]
runtime_type = "oci"
runtime_path = "/usr/sbin/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/bin/conmon"
monitor_cgroup = "pod"
[crio.image]
pause_image = "${PAUSE_IMAGE}"
signature_policy = "${policy}"
[crio.network]
network_dir = "${confDir}"
plugin_dirs = ["${binDir}"]
[crio.nri]
enable_nri = false
`;
}
