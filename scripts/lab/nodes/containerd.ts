/**
 * Debian's containerd on a node's machine: its configuration, its start, the images of the lab.
 * Effects: files below the machine's folder; a process there.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PAUSE_IMAGE } from "./image.ts";
import type { Machine, MachineProcess } from "./machine.ts";

export interface ContainerdOptions {
  /** Where the plugins are. */
  readonly binDir: string;
  /** Archives that are imported. */
  readonly images: readonly string[];
  /** For the plugins, which inherit it. */
  readonly env: Readonly<Record<string, string>>;
}

export interface ContainerdPlace {
  readonly socket: string;
  /** Network definitions; containerd follows what happens there. */
  readonly confDir: string;
}

const START_MS = 30_000;

export function containerdPlace({ directory }: Pick<Machine, "directory">): ContainerdPlace {
  return { socket: join(directory, "containerd.sock"), confDir: join(directory, "net.d") };
}

/** Resolves when it answers and has the images. */
export async function startContainerd(machine: Machine, options: ContainerdOptions): Promise<MachineProcess> {
  const place = containerdPlace(machine);
  await mkdir(place.confDir, { recursive: true });
  const config = join(machine.directory, "containerd.toml");
  await writeFile(config, formatConfig(machine, place, options.binDir));
  const daemon = await machine.start("containerd", ["containerd", "--config", config], options.env);
  try {
    const ctr = ["ctr", "--address", place.socket, "--namespace", "k8s.io"];
    await daemon.until(() => machine.run([...ctr, "version"]).then(() => true), START_MS);
    const known = await machine.run([...ctr, "images", "list", "--quiet"]);
    if (!known.includes(PAUSE_IMAGE))
      for (const image of options.images) await machine.run([...ctr, "images", "import", image]);
  } catch (error) {
    await daemon.end("SIGKILL");
    throw error;
  }
  return daemon;
}

/** What is kept over a reboot is in the folder; the state of what runs is below /run, which is not. */
function formatConfig({ directory }: Machine, { socket, confDir }: ContainerdPlace, binDir: string): string {
  const unused = ["snapshotter.v1.btrfs", "snapshotter.v1.zfs", "snapshotter.v1.devmapper", "snapshotter.v1.aufs"];
  const disabled = [...unused, "internal.v1.opt", "tracing.processor.v1.otlp", "internal.v1.tracing"];
  return `version = 2
root = "${join(directory, "containerd")}"
state = "/run/containerd"
disabled_plugins = [${disabled.map((name) => `"io.containerd.${name}"`).join(", ")}]
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${binDir}"
    conf_dir = "${confDir}"
    max_conf_num = 1
`;
}
