/**
 * A node's machine: processes, mounts and network of its own, on this machine's kernel. Its first process is the
 * pause program; when that ends, the kernel ends all others of the machine and takes its mounts: nothing can be left
 * of it but cgroups (cgroups.ts) and its folder.
 *
 *   const machine = await bootMachine({ name: "node1", directory, netns });
 *   const runtime = await machine.start("containerd", ["containerd", "--config", path]);
 *   await runtime.end("SIGTERM");
 *   await machine.powerOff();                         // as when the plug is pulled
 *
 * Below /run it is empty at each boot, /var/lib and /var/log are folders of its own that outlive it, and so is the
 * boot ID new each time. An installable machine also has /opt and changes of /etc for itself. All other files are
 * those of this machine, by the same paths.
 * Effects: processes; files below `directory`.
 */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../../scripts/setup/paths.mjs";
import { type CommandOptions, mountOver, requireCommand } from "../command.ts";
import { type Daemon, startDaemon } from "../daemon.ts";
import type { Netns } from "../netns.ts";

export interface MachineOptions {
  readonly name: string;
  readonly directory: string;
  readonly netns: Netns;
  /**
   * Gives it /opt and /etc of its own; /etc begins as this machine's, without networks. Installed files stay in its
   * folder.
   */
  readonly isInstallable?: boolean;
}

/** A program that runs on the machine. */
export interface MachineProcess {
  readonly name: string;
  /** As this process's own namespace numbers it. */
  readonly pid: number;
  /** The end of its output. */
  output(): Promise<string>;
  /** Asks until `isReady` says so; throws with its output when it ends or `limitMs` is over. */
  until(isReady: () => Promise<boolean>, limitMs: number): Promise<void>;
  /** Sends it and does not wait: SIGSTOP makes a program hang, SIGCONT lets it go on. */
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal, waits for the end, sends SIGKILL after ten seconds. Nothing happens when it has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
}

export interface Machine {
  readonly name: string;
  readonly directory: string;
  readonly netns: Netns;
  /** Its files, as this process sees them: a path of the machine goes behind it. */
  readonly root: string;
  /** Puts `nsenter` in front of a command line: into all of the machine's namespaces. */
  enter(argv: readonly string[]): string[];
  /** Throws unless it exits with 0; gives its stdout. */
  run(argv: readonly string[], options?: CommandOptions): Promise<string>;
  /** Its output goes to `<directory>/<name>.log`. */
  start(name: string, argv: readonly string[], env?: Readonly<Record<string, string>>): Promise<MachineProcess>;
  /** All processes end at once. */
  powerOff(): Promise<void>;
}

/** In the new mount namespace; the arguments are the folder and the command of the first process. */
const INIT = `set -e
# As systemd has it: what is mounted later appears in containers that ask for it.
mount --make-rshared /
${mountOver(`if [ "$2" = installable ]; then
  mount --bind "$0/opt" /opt
  mount -t overlay -o "lowerdir=/etc,upperdir=$0/etc,workdir=$0/etc-work" etc /etc
  [ -e "$0/etc/cni" ] || { rm -rf /etc/cni && mkdir -p /etc/cni/net.d; }
fi
mount -t tmpfs -o mode=755 run /run
mount --bind "$0/lib" /var/lib
mount --bind "$0/log" /var/log`)}
mount --bind "$0/boot-id" /proc/sys/kernel/random/boot_id
exec "$1"`;
const BOOT_MS = 10_000;
const END_MS = 10_000;
/** The kernel ends every process of the machine and takes its namespaces down before the first process is gone. */
const GONE_MS = 60_000;
const PAUSE_MS = 10;
const OUTPUT_CHARACTERS = 6_000;

export async function bootMachine(options: MachineOptions): Promise<Machine> {
  const { name, directory, netns, isInstallable = false } = options;
  for (const folder of ["lib", "log", "opt", "etc", "etc-work"])
    await mkdir(join(directory, folder), { recursive: true });
  await writeFile(join(directory, "boot-id"), `${randomUUID()}\n`);
  const pause = join(root, "dist", "nodes", "pause");
  const kind = isInstallable ? "installable" : "";
  const own = ["--pid", "--fork", "--kill-child=KILL", "--mount", "--mount-proc"];
  const holder = await startDaemon(name, ["unshare", ...own, "sh", "-c", INIT, directory, pause, kind], netns);
  try {
    return machineOf(options, holder, await findInit(holder, pause));
  } catch (error) {
    await holder.kill();
    throw error;
  }
}

/** Its number here, once it is the pause program: then the mounts are made. */
async function findInit(holder: Daemon, pause: string): Promise<number> {
  let init: number | undefined;
  const isUp = async (): Promise<boolean> => {
    init = await findChild(holder.pid);
    return init !== undefined && (await readFile(`/proc/${init}/cmdline`, "utf8")).startsWith(`${pause}\0`);
  };
  await holder.until(isUp, BOOT_MS);
  return init ?? 0;
}

async function findChild(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text.trim() === "" ? undefined : Number.parseInt(text, 10);
}

function machineOf(options: MachineOptions, holder: Daemon, init: number): Machine {
  const { directory } = options;
  const enter = (argv: readonly string[]): string[] => [
    ...["nsenter", `--target=${init}`, "--net", "--mount", "--pid", "--"],
    ...argv,
  ];
  return {
    ...options,
    root: `/proc/${init}/root`,
    enter,
    run: (argv, commandOptions) => requireCommand(enter(argv), commandOptions),
    start: async (name, argv, env = {}) => {
      const log = join(directory, `${name}.log`);
      // Its own children may outlive it and must not hold a pipe of ours.
      const words = Object.entries(env).map(([key, value]) => `${key}=${value}`);
      const logged = ["sh", "-c", 'exec "$@" >> "$0" 2>&1', log, "env", ...words, ...argv];
      const daemon = await startDaemon(name, logged, { ...options.netns, enter });
      return processOf(daemon, await waitForChild(daemon), () => readEnd(log));
    },
    powerOff: async () => {
      await holder.kill();
      await untilGone(init);
    },
  };
}

/** `nsenter` stays outside of the machine and waits for its child, which is the program. */
async function waitForChild(daemon: Daemon): Promise<number> {
  let pid: number | undefined;
  await daemon.until(async () => {
    pid = await findChild(daemon.pid);
    return pid !== undefined;
  }, BOOT_MS);
  return pid ?? 0;
}

function processOf(daemon: Daemon, pid: number, output: () => Promise<string>): MachineProcess {
  const { name } = daemon;
  const until = async (isReady: () => Promise<boolean>, limitMs: number): Promise<void> => {
    try {
      await daemon.until(isReady, limitMs);
    } catch (error) {
      throw new Error(`${name} is not ready:\n${await output()}`, { cause: error });
    }
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!daemon.isRunning()) return;
    sendSignal(pid, signal);
    const lastResort = setTimeout(() => sendSignal(pid, "SIGKILL"), END_MS);
    await untilGone(pid);
    clearTimeout(lastResort);
    await daemon.kill();
  };
  const signal = (wanted: NodeJS.Signals): void => {
    sendSignal(pid, wanted);
    // `nsenter` stops itself with its child, and would never bury it.
    if (wanted === "SIGCONT") sendSignal(daemon.pid, wanted);
  };
  return { name, pid, output, until, signal, end };
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** Until no process has the number, or only a zombie that its parent has not reaped. */
async function untilGone(pid: number): Promise<void> {
  const deadline = performance.now() + GONE_MS;
  for (;;) {
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    // The first thread may be a zombie while others still hold sockets.
    const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
    if (status === "" || (/^State:\s+[ZX]/m.test(status) && threads.length <= 1)) return;
    if (performance.now() > deadline) throw new Error(`Process ${pid} does not end: ${status.split("\n")[2]}`);
    await sleep(PAUSE_MS);
  }
}

async function readEnd(path: string): Promise<string> {
  return (await readFile(path, "utf8").catch(() => "")).slice(-OUTPUT_CHARACTERS);
}
