/** The unit that install.sh installs, under a real systemd in namespaces: ordering, restarts, hardening, uninstall. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { requireCommand, runCommand } from "../../scripts/lab/command.ts";
import { type Daemon, startDaemon } from "../../scripts/lab/daemon.ts";
import { assembleHostLayout } from "../../scripts/lab/host-layout.ts";
import { root } from "../../scripts/setup/paths.mjs";

const UNIT = "berth-agent.service";
const ADDRESS = /"192\.0\.2\.\d+\/24"/;

let directory: string;
let boot: Daemon;
/** The first process of the host. */
let init: number;

const enter = (words: readonly string[]) => [
  ...["nsenter", `--target=${init}`, "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd"],
  ...words,
];
const run = (...words: readonly string[]) => requireCommand(enter(words));
const show = async (unit: string, property: string) =>
  (await run("systemctl", "show", "--value", `--property=${property}`, unit)).trim();
const add = (name: string) => run("sh", "/srv/add.sh", name);

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "berth-systemd-"));
  assembleHostLayout(join(directory, "release"));
  mkdirSync(join(directory, "root"));
  const script = join(root, "scripts", "lab", "boot-systemd.sh");
  const spaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"];
  const words = ["sh", script, join(directory, "root"), join(directory, "release")];
  boot = await startDaemon("systemd", ["unshare", ...spaces, "--fork", "--kill-child", ...words]);
  await boot.until(async () => {
    init = Number(readFileSync(`/proc/${boot.pid}/task/${boot.pid}/children`, "utf8"));
    if (!readFileSync(`/proc/${init}/cmdline`, "utf8").includes("systemd\0--system")) return false;
    return (
      (await show("containerd.service", "ActiveState")) !== "inactive" &&
      (await show("multi-user.target", "ActiveState")) === "active"
    );
  }, 60_000);
});

afterAll(async () => {
  await boot?.kill();
  rmSync(directory, { recursive: true });
});

it("the runtime starts when the agent serves, and its first pod gets an address", async () => {
  expect(await show("containerd.service", "Result")).toBe("success");
  const ready = Number(await show(UNIT, "ActiveEnterTimestampMonotonic"));
  expect(Number(await show("containerd.service", "ExecMainStartTimestampMonotonic"))).toBeGreaterThanOrEqual(ready);
  expect(await run("berthctl", "allocations")).toContain("shop/first");
});

it("after kill -9 the agent is restarted, and an ADD meanwhile waits for it", async () => {
  const pid = await show(UNIT, "MainPID");
  await run("kill", "-9", pid);
  expect(await add("killed")).toMatch(ADDRESS);
  expect(await show(UNIT, "NRestarts")).toBe("1");
  expect(await show(UNIT, "MainPID")).not.toBe(pid);
});

it("the agent survives daemon-reexec", async () => {
  const pid = await show(UNIT, "MainPID");
  await run("systemctl", "daemon-reexec");
  await expect.poll(() => show(UNIT, "ActiveState").catch(String), { timeout: 20_000 }).toBe("active");
  expect(await show(UNIT, "MainPID")).toBe(pid);
  expect(await add("reexecuted")).toMatch(ADDRESS);
});

it("an uninstall is refused with the addresses in use, and with --force leaves nothing", async () => {
  const refused = await runCommand(enter(["sh", "/opt/berth/current/install.sh", "uninstall"]));
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining("shop/first")]);
  expect(await show(UNIT, "ActiveState")).toBe("active");
  await run("sh", "/opt/berth/current/install.sh", "uninstall", "--force");
  const left = await run(
    "sh",
    "-c",
    "find / -xdev -name '*berth*' -not -path '/srv/*' -not -path '/proc/*'; ls /opt/cni/bin",
  );
  expect(left).toBe("");
});
