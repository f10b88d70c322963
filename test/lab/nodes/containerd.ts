/**
 * containerd on a node's machine, Debian's or version 2: its configuration, its start, the images of the lab.
 * Effects: files below the machine's folder; a process there.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { referenceTool } from "../../../scripts/setup/paths.mjs";
import { PAUSE_IMAGE } from "./image.ts";
import type { Machine, MachineProcess } from "./machine.ts";
import { LAN } from "./networks.ts";

/** Debian's containerd 1.6; of the set-up target `versions`: containerd 2, and CRI-O (crio.ts). */
export type Runtime = "containerd-1" | "containerd-2" | "crio";

export interface RuntimeOptions {
  readonly runtime: Runtime;
  /** Folder of the plugins. */
  readonly binDir: string;
  /** Network definitions; containerd follows changes there. */
  readonly confDir: string;
  /** Archives that are imported. */
  readonly images: readonly string[];
  /** For the plugins, which inherit it. */
  readonly env: Readonly<Record<string, string>>;
}

/** Where a test may start a registry: nodes pull from it without TLS. */
export const LAB_REGISTRY = `${LAN.gateway}:5000`;

export const START_MS = 30_000;
/** Message of containerd when the CRI serves; a kubelet that is faster ends. */
const SERVING = "Start streaming server";

export function runtimeSocket({ directory }: Pick<Machine, "directory">): string {
  return join(directory, "containerd.sock");
}

/** Runs containerd's own client on the machine. */
export function ctr(machine: Machine, runtime: Runtime, ...args: readonly string[]): Promise<string> {
  return machine.run([
    programOf(runtime, "ctr"),
    "--address",
    runtimeSocket(machine),
    "--namespace",
    "k8s.io",
    ...args,
  ]);
}

function programOf(runtime: Runtime, name: string): string {
  return runtime === "containerd-2" ? join(referenceTool("containerd").directory, name) : name;
}

/** Resolves when it answers and has the images. */
export async function startContainerd(machine: Machine, options: RuntimeOptions): Promise<MachineProcess> {
  const config = join(machine.directory, "containerd.toml");
  const isSecond = options.runtime === "containerd-2";
  const format = isSecond ? formatConfig2 : formatConfig;
  await writeFile(config, format(machine, options));
  await writeHosts(registriesOf(machine));
  // It finds the shim of its own version in PATH.
  const path = isSecond ? `${referenceTool("containerd").directory}:${process.env.PATH}` : `${process.env.PATH}`;
  const countStarts = async (): Promise<number> =>
    (await readFile(join(machine.directory, "containerd.log"), "utf8").catch(() => "")).split(SERVING).length;
  const before = await countStarts();
  const daemon = await machine.start("containerd", [programOf(options.runtime, "containerd"), "--config", config], {
    ...options.env,
    PATH: path,
  });
  try {
    const client = (...args: string[]) => ctr(machine, options.runtime, ...args);
    await daemon.until(async () => (await countStarts()) > before, START_MS);
    const known = await client("images", "list", "--quiet");
    if (!known.includes(PAUSE_IMAGE)) for (const image of options.images) await client("images", "import", image);
  } catch (error) {
    await daemon.end("SIGKILL");
    throw error;
  }
  return daemon;
}

const registriesOf = ({ directory }: Machine): string => join(directory, "certs.d");

async function writeHosts(folder: string): Promise<void> {
  await mkdir(join(folder, LAB_REGISTRY), { recursive: true });
  const address = `http://${LAB_REGISTRY}`;
  await writeFile(join(folder, LAB_REGISTRY, "hosts.toml"), `server = "${address}"\n[host."${address}"]\n`);
}

/** Formats the configuration: the folder is kept over a reboot; run-time state is below /run, which is not. */
function formatConfig(machine: Machine, { binDir, confDir }: RuntimeOptions): string {
  const { directory } = machine;
  const unused = ["snapshotter.v1.btrfs", "snapshotter.v1.zfs", "snapshotter.v1.devmapper", "snapshotter.v1.aufs"];
  const disabled = [...unused, "internal.v1.opt", "tracing.processor.v1.otlp", "internal.v1.tracing"];
  return `version = 2
root = "${join(directory, "containerd")}"
state = "/run/containerd"
disabled_plugins = [${disabled.map((name) => `"io.containerd.${name}"`).join(", ")}]
[debug]
  level = "info"
[grpc]
  address = "${runtimeSocket({ directory })}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${registriesOf(machine)}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${binDir}"
    conf_dir = "${confDir}"
    max_conf_num = 1
`;
}

/** The same for containerd 2. */
function formatConfig2(machine: Machine, { binDir, confDir }: RuntimeOptions): string {
  const { directory } = machine;
  return `version = 3
root = "${join(directory, "containerd")}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[debug]
  level = "info"
[grpc]
  address = "${runtimeSocket({ directory })}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "${registriesOf(machine)}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["${binDir}"]
    conf_dir = "${confDir}"
    max_conf_num = 1
`;
}
