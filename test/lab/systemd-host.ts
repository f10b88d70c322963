/**
 * A host under a real systemd, in namespaces, with the release tarball unpacked in /srv/release and Berth installed
 * from it (boot-systemd.sh).
 *
 *   await using host = await bootHost();
 *   await host.require("systemctl", "restart", "berth-agent");
 *
 * Effects: processes and namespaces, files below the system's temporary folder; all gone after `stop`.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { cnitoolPath } from "./cnitool.ts";
import { type CommandOutcome, requireCommand, runCommand } from "./command.ts";
import { startDaemon } from "./daemon.ts";
import { assembleHostLayout } from "./host-layout.ts";

export interface Host extends AsyncDisposable {
  /** Process ID of its systemd on this machine. */
  readonly init: number;
  /** The files of the tarball on this machine; on the host /srv/release. */
  readonly release: string;
  run(...argv: readonly string[]): Promise<CommandOutcome>;
  /** Throws unless the exit code is 0. Gives stdout. */
  require(...argv: readonly string[]): Promise<string>;
  /** A property of a unit. */
  show(unit: string, property: string): Promise<string>;
  /** A script of /bin/sh; throws unless the exit code is 0. */
  sh(script: string): Promise<string>;
  /** To the main process of a unit; throws when it has none. */
  signal(unit: string, name: "KILL" | "STOP"): Promise<void>;
  /** An ADD of the plugin berth for a new pod; gives its result. */
  add(name: string, uid?: string): Promise<string>;
  /**
   * `cnitool COMMAND NETWORK` for a pod, with the lists of /etc/cni/net.d; its namespace is made when it is missing.
   */
  chain(command: "add" | "check" | "del", network: string, pod: string): Promise<string>;
  stop(): Promise<void>;
}

const BOOT_MS = 60_000;
/** A host's own: variables of the tests name folders of the checkout, which programs would make on the host. */
const ENVIRONMENT = [
  "env",
  "--ignore-environment",
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
];
const CHAIN = `
[ -e "/run/netns/$3" ] || ip netns add "$3"
export NETCONFPATH=/etc/cni/net.d CNI_PATH=/opt/cni/bin:/usr/lib/cni CNI_IFNAME=eth0
export CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=$3;K8S_POD_UID=uid-$3"
exec /srv/release/cnitool "$1" "$2" "/run/netns/$3"`;

/**
 * Resolves when the host has booted and its runtime has started, within `bootMs`. `bare`: Berth is not installed, and
 * packages can be.
 */
export async function bootHost({ bootMs = BOOT_MS, bare = false } = {}): Promise<Host> {
  const directory = mkdtempSync(join(tmpdir(), "berth-systemd-"));
  const release = join(directory, "release");
  assembleHostLayout(release);
  copyFileSync(cnitoolPath, join(release, "cnitool"));
  mkdirSync(join(directory, "root"));
  const script = join(root, "test", "lab", "boot-systemd.sh");
  const spaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"];
  const words = ["sh", script, join(directory, "root"), release, ...(bare ? ["bare"] : [])];
  const boot = await startDaemon("systemd", [...ENVIRONMENT, "unshare", ...spaces, "--fork", "--kill-child", ...words]);
  /** The first process of the host. */
  let init = 0;
  const enter = (argv: readonly string[]) => [
    ...["nsenter", `--target=${init}`, "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd"],
    ...ENVIRONMENT,
    ...argv,
  ];
  const stop = async () => {
    await boot.kill();
    rmSync(directory, { recursive: true });
  };
  const host: Host = {
    get init() {
      return init;
    },
    release,
    run: (...argv) => runCommand(enter(argv)),
    require: (...argv) => requireCommand(enter(argv)),
    show: async (unit, property) =>
      (await host.require("systemctl", "show", "--value", `--property=${property}`, unit)).trim(),
    sh: (text) => host.require("sh", "-c", text),
    signal: async (unit, name) => {
      const pid = await host.show(unit, "MainPID");
      // `kill 0` would end the caller's own process group.
      if (Number(pid) < 2) throw new Error(`Unit ${unit} has no process`);
      await host.require("kill", `-${name}`, pid);
    },
    add: (...args) => host.require("sh", "/srv/add.sh", ...args.filter((arg) => arg !== undefined)),
    chain: (...args) => host.require("sh", "-c", CHAIN, "chain", ...args),
    stop,
    [Symbol.asyncDispose]: stop,
  };
  try {
    await boot.until(async () => {
      init = Number((await runCommand(["pgrep", "--parent", String(boot.pid)])).stdout);
      if (!readFileSync(`/proc/${init}/cmdline`, "utf8").includes("systemd\0--system")) return false;
      return (
        (await host.show("containerd.service", "ActiveState")) !== "inactive" &&
        (await host.show("multi-user.target", "ActiveState")) === "active"
      );
    }, bootMs);
  } catch (error) {
    await stop();
    throw error;
  }
  return host;
}
