/**
 * berthctl as one file: Linux's is executed, by itself and as a plugin that krew has installed; those of macOS and
 * Windows are checked in form, since there is no such machine.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readTar } from "../../scripts/release/archive.ts";
import { buildBerthctl } from "../../scripts/release/berthctl.ts";
import { readFacts } from "../../scripts/release/facts.ts";
import { takeInventory } from "../../scripts/release/inventory/inventory.ts";
import { sha256 } from "../../scripts/release/sources.ts";
import { referenceTool } from "../../scripts/setup/paths.mjs";
import { readVersion, tagOf } from "../../scripts/setup/version.mjs";
import { requireCommand, runCommand } from "../lab/command.ts";
import { checkSignature, segmentsOf } from "../lab/mach-o.ts";

const VERSION = readVersion();
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:";
const here = `linux-${process.arch === "arm64" ? "arm64" : "amd64"}`;
const directory = mkdtempSync(join(tmpdir(), "berth-one-file-test-"));
const inTemporary = (name: string) => join(directory, name);
let artifacts: ReadonlyMap<string, Buffer>;
let program = "";

beforeAll(async () => {
  const inventory = await takeInventory("amd64", { entries: [], packages: [] });
  const inventories = { amd64: inventory, arm64: inventory };
  const notices = Buffer.from("of a release\n");
  artifacts = new Map(await buildBerthctl({ facts: readFacts(), output: directory, inventories, notices }));
  for (const [name, content] of artifacts) writeFileSync(inTemporary(name), content);
  program = inTemporary("berthctl");
  writeFileSync(program, await executableOf(here));
  chmodSync(program, 0o755);
}, 900_000);
afterAll(() => rmSync(directory, { recursive: true }));

const archiveOf = (platform: string) => `berthctl-${tagOf(VERSION)}-${platform}.tar.gz`;

async function executableOf(platform: string): Promise<Buffer> {
  const files = await readTar(artifacts.get(archiveOf(platform)) ?? expect.unreachable(`there is no ${platform}`));
  expect([...files.keys()]).toEqual([expect.stringMatching(/^berthctl(?:\.exe)?$/), "LICENSE", "THIRD_PARTY_LICENSES"]);
  const [executable] = files.values();
  return executable ?? expect.unreachable();
}

it("runs alone, without the network definitions and the Node.js of this machine", async () => {
  const env = { PATH: "/nowhere" };
  expect(await requireCommand([program, "--version"], { env })).toBe(`${VERSION}\n`);
  expect(await requireCommand([program, "network", "lan", "--type", "ptp"], { env })).toContain("type");
  const { exitCode, stderr } = await runCommand([program, "pools", "--socket", inTemporary("none")], { env });
  expect([exitCode, stderr]).toEqual([3, expect.stringContaining("none")]);
});

it("has the core inside, which calculates with ranges", async () => {
  const pool = inTemporary("pool.yaml");
  writeFileSync(
    pool,
    `apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: { name: blue }
spec: { subnet: 10.60.0.0/24, ips: [10.60.0.10-10.60.0.20], excludeIPs: [10.60.0.12-10.60.0.20] }
`,
  );
  const printed = await requireCommand([program, "convert", "spiderpool", pool, "--ips", "10.60.0.12-10.60.0.20"], {});
  expect(printed).toContain("- 10.60.0.12-10.60.0.20\n");
});

it("is found in an index, and is `kubectl berth` once krew has installed it, until krew removes it", async () => {
  const krew = join(referenceTool("krew").directory, "krew");
  const index = inTemporary("index");
  const manifest = join(index, "plugins", "berth.yaml");
  mkdirSync(join(index, "plugins"), { recursive: true });
  writeFileSync(manifest, artifacts.get("berth.krew.yaml") ?? "");
  const author = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
  for (const words of [
    ["init", "--quiet"],
    ["add", "."],
    [...author, "commit", "--quiet", "--message=index"],
  ])
    await requireCommand(["git", "-C", index, ...words]);
  const env = {
    PATH: `${directory}/krew/bin:${referenceTool("kubectl").directory}:/usr/bin`,
    ...{ HOME: directory, KREW_ROOT: inTemporary("krew"), KREW_DEFAULT_INDEX_URI: index, KREW_NO_UPGRADE_CHECK: "1" },
  };
  await requireCommand([krew, "update"], { env });
  expect(await requireCommand([krew, "search", "berth"], { env })).toMatch(/^berth +Inspect Berth/m);
  const archive = inTemporary(archiveOf(here));
  await requireCommand([krew, "install", `--manifest=${manifest}`, `--archive=${archive}`], { env });
  expect(await requireCommand(["kubectl", "berth", "--help"], { env })).toContain("Usage: kubectl berth");
  expect(await requireCommand(["kubectl", "berth", "version", "--client"], { env })).toContain(VERSION);
  expect(await requireCommand([krew, "list"], { env })).toContain("berth");
  await requireCommand([krew, "uninstall", "berth"], { env });
  expect((await runCommand(["kubectl", "berth", "version", "--client"], { env })).exitCode).toBe(1);
});

it("is `kubectl berth` under that name in PATH", async () => {
  symlinkSync(program, inTemporary("kubectl-berth"));
  expect(await requireCommand([inTemporary("kubectl-berth"), "--help"], {})).toContain("Usage: kubectl berth");
});

it("krew's manifest names each archive with its sum", () => {
  const { spec } = parse(artifacts.get("berth.krew.yaml")?.toString() ?? "");
  const sums = spec.platforms.map((each: { uri: string; sha256: string }) => [
    each.uri.replace(/.*\//, ""),
    each.sha256,
  ]);
  const archives = [...artifacts].filter(([name]) => name.endsWith(".tar.gz"));
  expect(sums).toEqual(archives.map(([name, content]) => [name, sha256(content)]));
  expect(archives).toHaveLength(5);
});

describe.each(["darwin-amd64", "darwin-arm64"])("%s (not run)", (platform) => {
  let executable: Buffer;
  beforeAll(async () => {
    executable = await executableOf(platform);
  });

  it("is an executable of that processor with the program in a segment of its own", () => {
    const processor = platform.endsWith("arm64") ? 0x0100000c : 0x01000007;
    const MH_EXECUTE = 2;
    expect([0, 4, 12].map((at) => executable.readUInt32LE(at))).toEqual([0xfeedfacf, processor, MH_EXECUTE]);
    const [offset, length] = segmentsOf(executable).get("NODE_SEA") ?? expect.unreachable("there is no NODE_SEA");
    expect(executable.subarray(offset, offset + length).includes("host-local")).toBe(true);
    expect(executable.includes(`${FUSE}1`)).toBe(true);
  });

  it("is signed ad hoc: each page has the hash that is signed, and a change is noticed", () => {
    expect(checkSignature(executable)).toEqual({ wrongPages: [], isAdHoc: true, identifier: "berthctl" });
    const [start, length] = segmentsOf(executable).get("__LINKEDIT") ?? expect.unreachable();
    expect(start + length).toBe(executable.length);
    const changed = Buffer.from(executable);
    changed[5 * 4096 + 1] = (changed[5 * 4096 + 1] ?? 0) ^ 1;
    expect(checkSignature(changed).wrongPages).toEqual([5]);
  });
});

it("windows-amd64 (not run) is an executable with the program as a resource, without the signature of Node.js", async () => {
  const executable = await executableOf("windows-amd64");
  const header = executable.readUInt32LE(0x3c);
  expect(executable.toString("latin1", header, header + 4)).toBe("PE\0\0");
  const [IMAGE_FILE_MACHINE_AMD64, PE32_PLUS] = [0x8664, 0x20b];
  expect([4, 24].map((at) => executable.readUInt16LE(header + at))).toEqual([IMAGE_FILE_MACHINE_AMD64, PE32_PLUS]);
  const security = header + 24 + 112 + 4 * 8;
  expect(executable.readBigUInt64LE(security)).toBe(0n);
  const sections = header + 24 + executable.readUInt16LE(header + 20);
  const ends = Array.from({ length: executable.readUInt16LE(header + 6) }, (_, index) => {
    const section = executable.subarray(sections + index * 40);
    return section.readUInt32LE(20) + section.readUInt32LE(16);
  });
  expect(Math.max(...ends)).toBe(executable.length);
  expect(executable.includes(Buffer.from("NODE_SEA_BLOB", "utf16le"))).toBe(true);
  expect(executable.includes(`${FUSE}1`)).toBe(true);
});
