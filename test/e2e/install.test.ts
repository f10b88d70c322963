/** `berth-agent install` and `uninstall`, into folders that stand for a host's. */
import type { ChildProcess } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { requireCommand, runCommand } from "../lab/command.ts";
import { createNetns, type Netns } from "../lab/netns.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";
import { root, runShim } from "./shim/run-shim.ts";
import { answer, openScriptedAgent, sending } from "./shim/scripted-agent.ts";

const ALL = ["berth", "berth-coordinator", "berth-ifacer", "coordinator", "ifacer"];
const ALIASES = ["berth", "berth-coordinator", "berth-ifacer"];
const FOREIGN = "of another product";
const LIST = JSON.stringify({ cniVersion: "1.0.0", name: "lan", plugins: [{ type: "macvlan" }] });
const shim = readFileSync(join(root, "dist/bin/berth"));

let host: string;
let bin: string;
let conf: string;

beforeEach(() => {
  host = temporaryDirectory("berth-install-", onTestFinished);
  bin = join(host, "bin");
  conf = join(host, "net.d");
});

const agent = (...words: readonly string[]) => [process.execPath, join(root, "dist/berth-agent.mjs"), ...words];
const install = (...words: readonly string[]) =>
  runCommand(agent("install", "--cni-bin-dir", bin, "--cni-conf-dir", conf, ...words));

/** Another version of the shim, which may be executed. */
function writeOldShim(name: string): string {
  mkdirSync(bin, { recursive: true });
  const path = join(bin, name);
  writeFileSync(path, Buffer.concat([shim, Buffer.from("an older build")]), { mode: 0o755 });
  return path;
}

function writeForeign(name: string): void {
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, name), FOREIGN);
}

function writeList(name: string, text: string): string {
  const path = join(host, name);
  writeFileSync(path, text);
  return path;
}

describe("install", () => {
  it("creates the plugins under all names, executable for all", async () => {
    const { exitCode, stdout } = await install();
    expect([exitCode, stdout.trim().split("\n").length]).toEqual([0, 1 + ALL.length]);
    expect(readdirSync(bin).sort()).toEqual(ALL);
    for (const name of ALL) {
      expect(readFileSync(join(bin, name)).equals(shim), name).toBe(true);
      expect(statSync(join(bin, name)).mode & 0o7777, name).toBe(0o755);
    }
  });

  it("changes nothing when it is repeated", async () => {
    await install();
    const before = statSync(join(bin, "berth")).ino;
    expect((await install()).stdout).toBe("");
    expect(statSync(join(bin, "berth")).ino).toBe(before);
  });

  it("restores the mode of a plugin", async () => {
    await install();
    chmodSync(join(bin, "berth"), 0o600);
    expect((await install()).stdout).toBe(`replace ${join(bin, "berth")}\n`);
    expect(statSync(join(bin, "berth")).mode & 0o7777).toBe(0o755);
  });

  it("replaces a plugin while it runs and waits for its agent, which then answers", async () => {
    const result = '{"cniVersion":"1.0.0","ips":[]}';
    const executable = writeOldShim("coordinator");
    const directory = join(host, "run");
    mkdirSync(directory);
    const env = { BERTH_SOCKET: join(directory, "agent.sock"), BERTH_CONNECT_WAIT: "20" };
    let isRunning = false;
    const started = (child: ChildProcess) => void child.on("spawn", () => (isRunning = true));
    const waiting = runShim({ executable, command: "ADD", env, started });
    await expect.poll(() => isRunning).toBe(true);
    // A copy into the file would fail.
    expect(() => writeFileSync(executable, shim)).toThrow("ETXTBSY");
    const { exitCode, stdout, stderr } = await install();
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`replace ${executable}\n`);
    expect(readFileSync(executable).equals(shim)).toBe(true);
    await using _ = await openScriptedAgent(sending(answer(200, result)), directory);
    expect((await waiting).stdout.toString()).toBe(result);
  });

  it.each<[what: string, names: string[], words: string[], wanted: string]>([
    ["a plugin", ["ifacer"], [], "/ifacer belongs to another product; nothing was changed; with --aliases-only"],
    ["two plugins", ["coordinator", "ifacer"], [], "/coordinator, "],
    [
      "an alias",
      ["berth-ifacer"],
      ["--aliases-only"],
      "/berth-ifacer belongs to another product; nothing was changed\n",
    ],
  ])("refuses to replace %s of another product and changes nothing", async (_, names, words, wanted) => {
    for (const name of names) writeForeign(name);
    const { exitCode, stdout, stderr } = await install(...words);
    expect([exitCode, stdout, stderr]).toEqual([1, "", expect.stringContaining(wanted)]);
    expect(readdirSync(bin).sort()).toEqual(names);
    for (const name of names) expect(readFileSync(join(bin, name), "utf8")).toBe(FOREIGN);
  });

  it("leaves another product's coordinator alone with --aliases-only", async () => {
    writeForeign("coordinator");
    expect((await install("--aliases-only")).exitCode).toBe(0);
    expect(readFileSync(join(bin, "coordinator"), "utf8")).toBe(FOREIGN);
    expect(readdirSync(bin).sort()).toEqual([...ALIASES, "coordinator"]);
  });

  it.each<[what: string, make: (path: string) => void]>([
    ["a link to nothing", (path) => symlinkSync("/nonexistent/plugin", path)],
    ["a directory", (path) => mkdirSync(path)],
  ])("refuses %s", async (_, make) => {
    mkdirSync(bin);
    make(join(bin, "berth"));
    const { exitCode, stderr } = await install();
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining(`${join(bin, "berth")} belongs to another product`),
    ]);
  });

  it("replaces a link to a plugin of Berth, not its target", async () => {
    const old = writeOldShim("berth");
    symlinkSync(old, join(bin, "ifacer"));
    await install();
    expect(readFileSync(join(bin, "ifacer")).equals(shim)).toBe(true);
  });

  it("removes the files of an installer that died, and not those that another one is writing", async () => {
    mkdirSync(bin);
    const hourAgo = Date.now() / 1000 - 3_600;
    for (const name of ["dead", "alive"]) writeFileSync(join(bin, `.berth-install-${name}`), "");
    utimesSync(join(bin, ".berth-install-dead"), hourAgo, hourAgo);
    await install();
    expect(readdirSync(bin).filter((name) => name.startsWith("."))).toEqual([".berth-install-alive"]);
  });
});

describe("install --conflist", () => {
  it("writes the list with its mark, replaces it, and removes it when it is no longer wanted", async () => {
    await install("--conflist", writeList("10-berth.conflist", LIST));
    const path = join(conf, "10-berth.conflist");
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ ...JSON.parse(LIST), installedBy: "berth-agent install" });
    const { stdout } = await install("--conflist", writeList("05-berth.conflist", LIST));
    expect(stdout).toBe(`create ${join(conf, "05-berth.conflist")}\nremove ${path}\n`);
    expect((await install()).stdout).toBe(`remove ${join(conf, "05-berth.conflist")}\n`);
    expect(readdirSync(conf)).toEqual([]);
  });

  it.each<[what: string, text: string, wanted: string]>([
    ["another program's list", LIST, "was not written by Berth and is not replaced"],
    ["text that is no list", "{", "10-berth.conflist"],
  ])("refuses for %s", async (what, text, wanted) => {
    mkdirSync(conf);
    if (what.startsWith("another")) writeFileSync(join(conf, "10-berth.conflist"), "{}");
    const { exitCode, stderr } = await install("--conflist", writeList("10-berth.conflist", text));
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(wanted)]);
    expect(existsSync(bin)).toBe(false);
  });
});

describe("uninstall", () => {
  let netns: Netns;

  beforeEach(async () => {
    netns = await createNetns(`berth-uninstall-${process.pid}`);
    for (const folder of ["run", "state", "log"]) mkdirSync(join(host, folder));
    for (const file of ["run/agent.sock.registry", "state/registry.sqlite", "log/coordinator.log"])
      writeFileSync(join(host, file), "");
  });

  afterEach(() => netns.delete());

  const inNetns = (...argv: readonly string[]) => requireCommand(netns.enter(argv));
  const uninstall = (...words: readonly string[]) => {
    const folders = ["--cni-bin-dir", bin, "--cni-conf-dir", conf];
    const own = ["run", "state", "log"].flatMap((name) => [`--${name}-dir`, join(host, name)]);
    return runCommand(netns.enter(agent("uninstall", ...folders, ...own, ...words)));
  };

  it("removes everything of Berth's and leaves others' files", async () => {
    await install("--conflist", writeList("10-berth.conflist", LIST));
    rmSync(join(bin, "ifacer"));
    writeForeign("ifacer");
    writeFileSync(join(conf, "20-other.conflist"), LIST);
    await netns.ip("link set lo up");
    await netns.ip("link add veth0123456789a type veth peer name peer");
    const alias = "berth uid container lan shop/web-0";
    await inNetns("ip", "link", "set", "veth0123456789a", "alias", alias);
    await netns.ip("link add other type veth peer name otherpeer");
    for (const family of ["-4", "-6"]) await netns.ip(`${family} rule add pref 900 from all lookup 500 protocol 98`);
    await netns.ip("rule add pref 901 from all lookup 501");
    await netns.ip("route add 192.0.2.1/32 dev lo table 500 proto 98");
    await netns.ip("route add 192.0.2.2/32 dev lo table 501");
    await inNetns("nft", "add table inet berth; add table inet other");
    const { exitCode, stderr } = await uninstall();
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(readdirSync(bin)).toEqual(["ifacer"]);
    expect(readdirSync(conf)).toEqual(["20-other.conflist"]);
    expect(readdirSync(host).sort()).toEqual(["10-berth.conflist", "bin", "net.d"]);
    const rules = (await netns.ip("rule")) + (await netns.ip("-6 rule"));
    expect(rules).not.toContain("900:");
    expect(rules).toContain("901:");
    expect(await netns.ip("route show table all")).not.toContain("192.0.2.1");
    expect(await netns.ip("route show table 501")).toContain("192.0.2.2");
    const links = await netns.ip("-o link");
    expect(links).not.toContain("veth0123456789a");
    expect(links).toContain("otherpeer");
    expect(await inNetns("nft", "list", "tables")).toBe("table inet other\n");
    expect((await uninstall()).stdout).toBe("");
  });

  it("keeps the state with --keep-state, and everything with --dry-run", async () => {
    await install();
    expect((await uninstall("--dry-run")).stdout).toContain(`remove ${join(bin, "berth")}\n`);
    expect(readdirSync(bin).sort()).toEqual(ALL);
    await uninstall("--keep-state");
    const paths = ["state/registry.sqlite", "log/coordinator.log", "run"];
    expect(paths.map((path) => existsSync(join(host, path)))).toEqual([true, true, false]);
  });

  it("empties a mount point, and goes on", async () => {
    await install();
    const mounted = [join(host, "run"), join(host, "state/disk")];
    mkdirSync(join(host, "state/disk"));
    await using mounts = new AsyncDisposableStack();
    for (const path of mounted) {
      await requireCommand(["mount", "-t", "tmpfs", "tmpfs", path]);
      mounts.defer(async () => void (await requireCommand(["umount", path])));
      writeFileSync(join(path, "file"), "");
    }
    const { exitCode, stderr } = await uninstall();
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(readdirSync(host, { recursive: true }).sort()).toEqual(["bin", "run", "state", "state/disk"]);
  });

  it("leaves another product's logs", async () => {
    writeFileSync(join(host, "log/other.log"), "");
    await uninstall();
    expect(readdirSync(join(host, "log"))).toEqual(["other.log"]);
  });

  it("refuses while an agent serves the socket", async () => {
    await install();
    const server = createServer().listen(join(host, "run/agent.sock"));
    const { exitCode, stderr } = await uninstall();
    server.close();
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("agent.sock; stop it first")]);
    expect(readdirSync(bin).sort()).toEqual(ALL);
  });
});
