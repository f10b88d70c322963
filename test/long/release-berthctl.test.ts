/** berthctl as one file, executed; and as an npm package from the same step of a release. */
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { readTar } from "../../scripts/release/archive.ts";
import { buildBerthctl } from "../../scripts/release/berthctl.ts";
import { readFacts } from "../../scripts/release/facts.ts";
import { takeInventory } from "../../scripts/release/inventory.ts";
import { readVersion, tagOf } from "../../scripts/setup/version.mjs";
import { requireCommand, runCommand } from "../lab/command.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const VERSION = readVersion();
const directory = temporaryDirectory("berth-one-file-test-");
const inTemporary = (name: string) => join(directory, name);
let program = "";

beforeAll(async () => {
  const inventory = await takeInventory("amd64");
  const inventories = { amd64: inventory, arm64: inventory };
  const notices = Buffer.from("of a release\n");
  const artifacts = new Map(await buildBerthctl({ facts: readFacts(), inventories, notices }));
  const stem = `berthctl-${tagOf(VERSION)}`;
  const archives = [`${stem}.tgz`, `${stem}-linux-amd64.tar.gz`, `${stem}-linux-arm64.tar.gz`];
  const withSboms = archives.flatMap((name) => [name, name.replace(/\.tgz$|\.tar\.gz$/, ".cdx.json")]);
  expect([...artifacts.keys()]).toEqual(withSboms);
  const archive = artifacts.get(`${stem}-linux-${process.arch === "arm64" ? "arm64" : "amd64"}.tar.gz`);
  const files = await readTar(archive ?? expect.unreachable());
  expect([...files.keys()]).toEqual(["berthctl", "LICENSE", "THIRD_PARTY_LICENSES"]);
  program = inTemporary("berthctl");
  writeFileSync(program, files.get("berthctl") ?? "");
  chmodSync(program, 0o755);
}, 900_000);

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

it("is `kubectl berth` under that name in PATH", async () => {
  symlinkSync(program, inTemporary("kubectl-berth"));
  expect(await requireCommand([inTemporary("kubectl-berth"), "--help"], {})).toContain("Usage: kubectl berth");
});
