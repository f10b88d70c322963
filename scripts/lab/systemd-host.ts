/**
 * A host under a real systemd, in namespaces, with the release tarball unpacked in /srv/release and Berth installed from it (boot-systemd.sh).
 *
 *   await using host = await bootHost();
 *   await host.require("systemctl", "restart", "berth-agent");
 *
 * Effects: processes and namespaces, files below the system's temporary folder; all gone after `stop`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { type CommandOutcome, requireCommand, runCommand } from "./command.ts";
import { startDaemon } from "./daemon.ts";
import { assembleHostLayout } from "./host-layout.ts";

export interface Host extends AsyncDisposable {
  run(...argv: readonly string[]): Promise<CommandOutcome>;
  /** Throws unless the exit code is 0. Gives stdout. */
  require(...argv: readonly string[]): Promise<string>;
  /** A property of a unit. */
  show(unit: string, property: string): Promise<string>;
  stop(): Promise<void>;
}

const BOOT_MS = 60_000;

/** Resolves when the host has booted and its runtime has started. */
export async function bootHost(): Promise<Host> {
  const directory = mkdtempSync(join(tmpdir(), "berth-systemd-"));
  assembleHostLayout(join(directory, "release"));
  mkdirSync(join(directory, "root"));
  const script = join(root, "scripts", "lab", "boot-systemd.sh");
  const spaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"];
  const words = ["sh", script, join(directory, "root"), join(directory, "release")];
  const boot = await startDaemon("systemd", ["unshare", ...spaces, "--fork", "--kill-child", ...words]);
  /** The first process of the host. */
  let init = 0;
  const enter = (argv: readonly string[]) => [
    ...["nsenter", `--target=${init}`, "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd"],
    ...argv,
  ];
  const stop = async () => {
    await boot.kill();
    rmSync(directory, { recursive: true });
  };
  const host: Host = {
    run: (...argv) => runCommand(enter(argv)),
    require: (...argv) => requireCommand(enter(argv)),
    show: async (unit, property) =>
      (await host.require("systemctl", "show", "--value", `--property=${property}`, unit)).trim(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
  try {
    await boot.until(async () => {
      init = Number(readFileSync(`/proc/${boot.pid}/task/${boot.pid}/children`, "utf8"));
      if (!readFileSync(`/proc/${init}/cmdline`, "utf8").includes("systemd\0--system")) return false;
      return (
        (await host.show("containerd.service", "ActiveState")) !== "inactive" &&
        (await host.show("multi-user.target", "ActiveState")) === "active"
      );
    }, BOOT_MS);
  } catch (error) {
    await stop();
    throw error;
  }
  return host;
}
