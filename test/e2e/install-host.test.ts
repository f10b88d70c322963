/** install.sh of the release tarball, into folders that stand for a host's root. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { readVersion } from "../../scripts/setup/version.mjs";
import { requireCommand, runCommand } from "../lab/command.ts";
import { assembleHostLayout, SMALL_NODE } from "../lab/host-layout.ts";
import { createNetns } from "../lab/netns.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const VERSION = readVersion();
const directory = temporaryDirectory("berth-install-");
let script: string;
let host: string;

const install = (...words: readonly string[]) => requireCommand(["sh", script, "--root", host, ...words]);
const listFiles = () => readdirSync(host, { recursive: true, encoding: "utf8" }).sort();
const read = (path: string) => readFileSync(join(host, path), "utf8");

/** Writes a network list as `berth-agent install --conflist` does, and returns its path. */
function writeList(): string {
  const path = join(host, "etc/cni/net.d/10-berth.conflist");
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(
    path,
    JSON.stringify({ name: "lan", plugins: [{ type: "macvlan" }], installedBy: "berth-agent install" }),
  );
  return path;
}

beforeAll(async () => {
  script = assembleHostLayout(join(directory, "release"), SMALL_NODE);
});

beforeEach(() => {
  host = mkdtempSync(join(directory, "host-"));
});

it("installs the version, plugins, unit, directories, settings and an example pool", async () => {
  await install();
  const files = ["etc/systemd/system/berth-agent.service", "etc/tmpfiles.d/berth.conf", "etc/logrotate.d/berth"];
  const plugins = ["berth", "berth-coordinator", "berth-ifacer", "coordinator", "ifacer"].map(
    (name) => `opt/cni/bin/${name}`,
  );
  for (const path of [...files, ...plugins, "etc/berth/pool.yaml.example", `opt/berth/${VERSION}/lib/node`])
    expect(existsSync(join(host, path)), path).toBe(true);
  for (const path of plugins) expect(statSync(join(host, path)).mode & 0o777).toBe(0o755);
  expect(read("etc/berth/agent.env")).toContain("BERTH_AGENT_OPTIONS=--config /etc/berth/pools.d\n");
  expect(await requireCommand([join(host, "opt/berth/current/bin/berthctl"), "--version"])).toBe(`${VERSION}\n`);
});

it("links the users' commands into PATH: berthctl, the plugin of kubectl and its completion", async () => {
  await install();
  const target = (path: string) => readlinkSync(join(host, path));
  for (const name of ["berthctl", "kubectl-berth", "kubectl_complete-berth"]) {
    expect(target(`usr/local/bin/${name}`)).toBe(`/opt/berth/current/bin/${name}`);
    expect(existsSync(join(host, target(`usr/local/bin/${name}`)))).toBe(true);
  }
  // Shells find the completion files.
  for (const path of [
    "bash-completion/completions/berthctl",
    "zsh/site-functions/_berthctl",
    "fish/vendor_completions.d/berthctl.fish",
  ])
    expect(read(target(`usr/local/share/${path}`))).toContain(" __complete ");
  // Podman finds the driver of networks.
  const driver = target("usr/local/libexec/netavark/berth");
  expect(await requireCommand([join(host, driver), "info"])).toContain('"api_version":"1.0.0"');
  // As kubectl calls it.
  const complete = (...words: string[]) =>
    requireCommand([join(host, "opt/berth/current/bin/kubectl_complete-berth"), ...words]);
  expect(await complete("rel")).toMatch(/^release\t.*\n:4\n$/);
  expect(await complete("pools", "--output", "w")).toMatch(/^wide\n:4\n$/);
});

it("removes links to man pages, which releases up to 0.4.0 had, and leaves those of others", async () => {
  const pages = join(host, "usr/local/share/man/man1");
  mkdirSync(pages, { recursive: true });
  const own = join(pages, "berthctl-old.1");
  symlinkSync("/opt/berth/current/share/man/man1/berthctl-old.1", own);
  symlinkSync("/opt/other/share/man/man1/other.1", join(pages, "other.1"));
  expect(await install()).toContain(`rm -f ${own}\n`);
  await install("uninstall");
  expect(readdirSync(pages)).toEqual(["other.1"]);
  expect(listFiles().filter((path) => path.startsWith("usr/local/bin/"))).toEqual([]);
});

it("changes nothing when it is repeated, and keeps the administrator's files", async () => {
  await install();
  writeFileSync(join(host, "etc/berth/agent.env"), "BERTH_AGENT_OPTIONS='--kubeconfig /srv/kube'\n");
  expect(await install("--kubeconfig", "/srv/kube")).toBe("");
  expect(read("etc/berth/agent.env")).toContain("'--kubeconfig /srv/kube'");
});

it("keeps one version beside its own: the one that was in use", async () => {
  const versions = join(host, "opt/berth");
  for (const name of ["0.2.0", "0.3.0", "0.4.0"]) {
    mkdirSync(join(versions, name), { recursive: true });
    writeFileSync(join(versions, name, "VERSION"), name);
  }
  mkdirSync(join(versions, "notes"));
  symlinkSync("0.3.0", join(versions, "current"));
  await install();
  expect(readdirSync(versions).sort()).toEqual(["0.3.0", VERSION, "current", "notes"].sort());
});

it("names the kubeconfig of an agent in a cluster", async () => {
  await install("--kubeconfig", "/etc/berth/kubeconfig");
  expect(read("etc/berth/agent.env")).toContain("BERTH_AGENT_OPTIONS=--kubeconfig /etc/berth/kubeconfig\n");
  rmSync(join(host, "etc/berth/agent.env"));
  await install("--kubeconfig", "/etc/berth/kubeconfig", "--renew-token");
  expect(read("etc/berth/agent.env")).toContain("--kubeconfig /etc/berth/kubeconfig --renew-token\n");
});

it("refuses options that the host's settings lack, and takes a package for another installation", async () => {
  await install("--kubeconfig", "/etc/berth/kubeconfig");
  const refusal = async (...words: string[]) => (await runCommand(["sh", script, "--root", host, ...words])).stderr;
  expect(await refusal("--kubeconfig", "/etc/berth/kube")).toContain("lacks --kubeconfig /etc/berth/kube; edit it");
  const renewing = ["--kubeconfig", "/etc/berth/kubeconfig", "--renew-token"];
  expect(await refusal(...renewing)).toContain("agent.env lacks --renew-token; edit it");
  mkdirSync(join(host, "usr/lib/berth/bin"), { recursive: true });
  writeFileSync(join(host, "usr/lib/berth/bin/berth-agent"), "");
  expect(await refusal()).toContain("a package has installed Berth");
});

it("prints each step and makes none with --dry-run", async () => {
  const printed = await install("--dry-run");
  expect(printed).toContain(`create ${host}/opt/cni/bin/berth\n`);
  expect(printed).toContain(`mv -f ${host}/etc/tmpfiles.d/berth.conf.berth-new ${host}/etc/tmpfiles.d/berth.conf\n`);
  expect(listFiles()).toEqual([]);
});

it("leaves the network lists of the host as they are", async () => {
  await install();
  const list = writeList();
  expect(await install()).toBe("");
  expect(existsSync(list)).toBe(true);
});

it("uninstalls everything of its own, the files of runs included, and leaves another product's plugin", async () => {
  await install();
  writeFileSync(join(host, "opt/cni/bin/macvlan"), "of another product");
  writeList();
  for (const folder of ["var/lib/berth/state", "var/log/vendor", "run/berth"])
    mkdirSync(join(host, folder), { recursive: true });
  for (const path of [
    "var/lib/berth/state/registry.sqlite",
    "var/log/vendor/coordinator.log",
    "var/log/vendor/coordinator.log.2.gz",
    "var/log/vendor/coordinator.log-20261129",
    "run/berth/agent.sock.registry",
  ])
    writeFileSync(join(host, path), "");
  expect(await install("uninstall", "--dry-run")).toContain(`remove ${host}/var/lib/berth\n`);
  expect(existsSync(join(host, "opt/berth"))).toBe(true);
  await install("uninstall", "--purge");
  expect(listFiles().filter((path) => statSync(join(host, path)).isFile())).toEqual(["opt/cni/bin/macvlan"]);
});

it("uninstalls from a folder without a change of this machine's kernel", async () => {
  await install();
  const netns = await createNetns(`berth-install-${process.pid}`);
  onTestFinished(() => netns.delete());
  await netns.ip("rule add pref 900 from all lookup 500 protocol 98");
  await requireCommand(netns.enter(["sh", script, "--root", host, "uninstall"]));
  expect(await netns.ip("rule")).toContain("900:");
});

it("keeps the administrator's files when it is uninstalled, and says so, unless with --purge", async () => {
  await install();
  for (const path of ["pools.d/lan.yaml", "kubeconfig"]) writeFileSync(join(host, "etc/berth", path), "");
  expect(await install("uninstall")).toContain(`kept ${host}/etc/berth; --purge removes it\n`);
  expect(readdirSync(join(host, "etc/berth")).sort()).toEqual(["agent.env", "kubeconfig", "pools.d"]);
  expect(existsSync(join(host, "opt/berth"))).toBe(false);
  const { exitCode, stderr } = await runCommand([
    "sh",
    script,
    "--root",
    host,
    "--kubeconfig",
    "/etc/berth/kubeconfig",
  ]);
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining("agent.env lacks --kubeconfig")]);
  await install("uninstall", "--purge");
  expect(existsSync(join(host, "etc/berth"))).toBe(false);
});

it("says where there is no systemd that no agent was started", async () => {
  const hide = 'mount -t tmpfs none /run && exec sh "$0" --dry-run --cni-dir /run/cni';
  expect(await requireCommand(["unshare", "--mount", "sh", "-c", hide, script])).toMatch(/no agent was started.*\n$/);
});

it.each(["--root ", "--kubeconfig ", "--kubeconfig kubeconfig", "--cni-dir bin"])("refuses %j", async (words) => {
  const [option = "", value = ""] = words.split(" ");
  const { exitCode, stderr } = await runCommand(["sh", script, "--dry-run", option, value]);
  expect([exitCode, stderr]).toEqual([1, `install.sh: option ${option}: found "${value}", want a path from /\n`]);
});

it("refuses an unknown option with its usage", async () => {
  const { exitCode, stderr } = await runCommand(["sh", script, "--clean"]);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining("--keep-state")]);
});

it("a purge of a removed package leaves the registry that another installation uses", async () => {
  const scripts = join(directory, "common.sh");
  copyFileSync("deploy/packages/common.sh", scripts);
  const hide = "for place in /opt /run /var; do mount -t tmpfs none $place; done";
  const purge = `${hide}; mkdir -p /opt/berth/current /var/lib/berth/state; . "$0"; purge; ls /var/lib/berth`;
  const { stdout, stderr } = await runCommand(["unshare", "--mount", "sh", "-c", purge, scripts]);
  expect([stdout, stderr]).toEqual(["state\n", expect.stringContaining("another installation serves this host")]);
});

it("installs a unit that systemd accepts without a warning", async () => {
  await install();
  const unit = join(host, "etc/systemd/system/berth-agent.service");
  // The unit's program is on this machine by another path.
  writeFileSync(unit, read("etc/systemd/system/berth-agent.service").replaceAll("/opt/berth", join(host, "opt/berth")));
  const { exitCode, stderr } = await runCommand(["systemd-analyze", "verify", "--man=no", unit]);
  expect([exitCode, stderr.split("\n").filter((line) => line.includes("berth-agent"))]).toEqual([0, []]);
});

it("installs a unit whose exposure is below 4.0 of 10", async () => {
  await install();
  const unit = join(host, "etc/systemd/system/berth-agent.service");
  const { stdout } = await runCommand(["systemd-analyze", "security", "--offline=true", "--threshold=40", unit]);
  expect(Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1])).toBeLessThan(4);
});
