/** `berthctl support-bundle` of a host with the built agent: its contents, secrets that it lacks, and its size. */
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { root } from "../../../../scripts/setup/paths.mjs";
import { type Agent, startAgent } from "../../../../test/lab/agent.ts";
import { type CommandOutcome, requireCommand, runCommand } from "../../../../test/lab/command.ts";
import { CONF, ipPool } from "../../../../test/lab/manifests.ts";
import { temporaryDirectory } from "../../../../test/world/temporary-directory.ts";
import { MAX_BUNDLE_FILE } from "../../bundle/archive.ts";
import { unpack } from "../unpack.ts";

/** Each is planted in one place, and none may be in a bundle. */
const SECRETS = {
  definition: "s3cret-of-a-definition",
  kubeconfig: "s3cret-of-a-kubeconfig",
  unnamedKubeconfig: "s3cret-of-a-hidden-kubeconfig",
  environment: "s3cret-of-the-environment",
  bearer: "s3cretOfALogLine123",
  elsewhere: "s3cret-beside-the-folder",
} as const;

const directory = temporaryDirectory("berth-bundle-");
let agent: Agent;
let bin: string;

const path = (name: string) => join(directory, name);
const kubeconfig = (secret: string) =>
  `apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user:\n    odd: ${secret}\n    token: ${secret}\n`;

beforeAll(async () => {
  bin = path("bin");
  mkdirSync(bin);
  // The journal of a service manager.
  const journal = `#!/bin/sh\ntouch ${path("journal-read")}\necho 'GET /x with Authorization: Bearer ${SECRETS.bearer}'\necho 'the end'\n`;
  writeFileSync(join(bin, "journalctl"), journal, { mode: 0o755 });
  agent = await startAgent({
    config: { "conf.yaml": CONF, "blue.yaml": ipPool("blue", "10.6.0.0/24") },
    env: { API_TOKEN: SECRETS.environment },
    cniConf: {
      "10-lan.conflist": {
        name: "lan",
        plugins: [{ type: "macvlan", master: "lo", token: SECRETS.definition, ipam: { type: "berth" } }],
      },
    },
  });
  const confDir = agent.cniConfDir;
  writeFileSync(join(confDir, "00-multus.kubeconfig"), kubeconfig(SECRETS.kubeconfig));
  writeFileSync(join(confDir, "calico-settings"), kubeconfig(SECRETS.unnamedKubeconfig));
  symlinkSync("/dev/zero", join(confDir, "endless"));
  writeFileSync(path("elsewhere"), SECRETS.elsewhere);
  symlinkSync(path("elsewhere"), join(confDir, "40-link.conf"));
  await requireCommand(["mkfifo", join(confDir, "pipe")]);
  writeFileSync(join(agent.logDir, "audit.jsonl"), `{"audit":"ADD","pod":"${"x".repeat(400)}"}\n`.repeat(8_000));
});
afterAll(async () => {
  await agent?.delete();
});

async function pack(file: string, ...words: string[]): Promise<CommandOutcome> {
  const options = ["--cni-conf-dir", agent.cniConfDir, "--cni-bin-dir", path("none"), "--log-dir", agent.logDir];
  const env = { ...agent.env, DB_PASSWORD: SECRETS.environment, PATH: `${bin}:${process.env.PATH}` };
  const argv = [process.execPath, join(root, "dist/berthctl.mjs"), "support-bundle", "--file", path(file)];
  return runCommand([...argv, ...options, ...words], { env, cwd: directory });
}

describe("a bundle of a host", () => {
  let files: Map<string, string>;
  beforeAll(async () => {
    const { exitCode, stdout, stderr } = await pack("a.tar.gz");
    expect([exitCode, stderr, stdout]).toEqual([
      0,
      "",
      expect.stringMatching(/^Wrote .*a\.tar\.gz: \d+ files, \d+ of/),
    ]);
    files = await unpack(path("a.tar.gz"));
  });
  const text = (name: string) => files.get(name) ?? "";
  const record = (name: string) => JSON.parse(text(name));

  it("has for tar: the agent's answers, metrics, audit lines, check, definitions, addresses and routes", () => {
    expect([...files.keys()]).toEqual(
      expect.arrayContaining([
        ...["about.json", "check.json", "agent/health.json", "agent/stats.json", "agent/pools.json"],
        ...["agent/allocations.json", "agent/metrics.txt", "audit.jsonl", "journal.log"],
        ...["net.d/10-lan.conflist", "ip-address.txt", "ip-rule.txt", "ip-route.txt", "ip-6-route.txt", "LEFT-OUT"],
      ]),
    );
    expect(record("about.json")).toMatchObject({ version: expect.any(String), kernel: expect.any(String) });
    expect(record("agent/pools.json")).toEqual([expect.objectContaining({ name: "blue" })]);
    expect(record("agent/health.json")).toMatchObject({ mode: "embedded" });
    expect(text("agent/metrics.txt")).toMatch(/^berth_build_info\{/m);
    expect(record("net.d/10-lan.conflist").plugins[0]).toMatchObject({ master: "lo", token: "[redacted]" });
    expect(text("ip-address.txt")).toContain("lo");
    const { nodes, findings } = record("check.json");
    expect([nodes, findings]).toEqual([
      [expect.objectContaining({ records: 0 })],
      expect.arrayContaining([expect.objectContaining({ kind: "plugins" })]),
    ]);
  });

  it.each(Object.entries(SECRETS))("has no %s secret", (_, secret) => {
    for (const [name, content] of files) expect(content.includes(secret), name).toBe(false);
  });

  it("has no kubeconfig and nothing endless, and says so", () => {
    for (const name of ["00-multus.kubeconfig", "calico-settings"])
      expect(text(`net.d/${name}`)).toBe("A kubeconfig is left out\n");
    expect(text("net.d/endless")).toMatch(/is a link to \/dev\/zero, which is left out/);
    expect(files.has("net.d/pipe")).toBe(false);
    expect(text("LEFT-OUT")).toMatch(/^net\.d\/calico-settings: A kubeconfig is left out$/m);
  });

  it("keeps the end of a log, and names missing parts", () => {
    expect(text("journal.log")).toMatch(/the end\n$/);
    expect(text("audit.jsonl").length).toBeLessThanOrEqual(MAX_BUNDLE_FILE);
    expect(text("LEFT-OUT")).toMatch(/^audit\.jsonl: the last \d+ of \d{7} bytes$/m);
  });

  it("is for its owner only", () => expect(statSync(path("a.tar.gz")).mode & 0o777).toBe(0o600));
});

it("is as small as --max-size says, without the last parts", async () => {
  expect((await pack("small.tar.gz", "--max-size", "0.2")).exitCode).toBe(0);
  const files = await unpack(path("small.tar.gz"));
  const size = [...files].reduce((sum, [name, { length }]) => sum + (name === "LEFT-OUT" ? 0 : length), 0);
  expect(size).toBeLessThanOrEqual(0.2 * 1024 * 1024);
  expect(files.has("agent/health.json")).toBe(true);
  expect(files.get("LEFT-OUT")).toMatch(/^audit\.jsonl: left out, \d+ bytes$/m);
});

it("is written without an agent, with the reason in each answer's place", async () => {
  const { exitCode } = await pack("dead.tar.gz", "--socket", path("no.sock"));
  expect(exitCode).toBe(0);
  const files = await unpack(path("dead.tar.gz"));
  expect(files.get("agent/health.json")).toMatch(/^No agent answers on/);
  expect(JSON.parse(files.get("check.json") ?? "")).toMatchObject({
    nodes: [],
    findings: expect.arrayContaining([expect.objectContaining({ kind: "not-compared" })]),
  });
  expect(files.get("LEFT-OUT")).toMatch(/^agent\/metrics\.txt: No agent answers on/m);
  expect(files.get("ip-route.txt")).toBeDefined();
});

it("is created anew: neither a link nor another user's file takes it", async () => {
  writeFileSync(path("victim"), "kept", { mode: 0o644 });
  symlinkSync(path("victim"), path("link.tar.gz"));
  for (const file of ["victim", "link.tar.gz", "victim/below", "./"]) {
    rmSync(path("journal-read"), { force: true });
    const { exitCode, stderr } = await pack(file, "--socket", path("no.sock"));
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/Option --file: E(?:EXIST|NOTDIR|ISDIR)/)]);
    expect(existsSync(path("journal-read"))).toBe(false);
  }
  expect([readFileSync(path("victim"), "utf8"), statSync(path("victim")).mode & 0o777]).toEqual(["kept", 0o644]);
  // A report replaces a file of its name.
  const check = [process.execPath, join(root, "dist/berthctl.mjs"), "check", "--report", path("link.tar.gz")];
  await runCommand(check, { env: { ...agent.env, PATH: process.env.PATH } });
  expect([lstatSync(path("link.tar.gz")).isFile(), statSync(path("link.tar.gz")).mode & 0o777]).toEqual([true, 0o600]);
  expect(readFileSync(path("victim"), "utf8")).toBe("kept");
});

it("leaves no part of it on a full disk", async () => {
  const berthctl = [process.execPath, join(root, "dist/berthctl.mjs"), "support-bundle", "--file", "full/a.tar.gz"];
  const script = 'mkdir full && mount -t tmpfs -o size=4k none full && "$@"; echo $?; ls full';
  const { stdout, stderr } = await runCommand(["unshare", "--mount", "sh", "-c", script, "sh", ...berthctl], {
    env: { ...agent.env, PATH: `${bin}:${process.env.PATH}` },
    cwd: directory,
  });
  expect([stdout, stderr]).toEqual(["2\n", expect.stringContaining("Option --file: ENOSPC")]);
});

it("is refused with a size of 0", async () => {
  expect((await pack("none.tar.gz", "--max-size=0")).exitCode).toBe(2);
  expect(existsSync(path("none.tar.gz"))).toBe(false);
});
