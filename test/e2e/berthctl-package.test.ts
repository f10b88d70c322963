/** The npm package of berthctl as `npm run release` packs it, installed by npm without a network. */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { npmPackage } from "../../scripts/release/berthctl.ts";
import { readFacts } from "../../scripts/release/facts.ts";
import { readVersion } from "../../scripts/setup/version.mjs";
import { requireCommand } from "../lab/command.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const directory = temporaryDirectory("berth-package-");
const inside = (name: string): string => join(directory, name);
const PACKAGE = inside("berthctl.tgz");
// The Node.js of this process before the machine's.
const PATH = [inside("global/bin"), dirname(process.execPath), process.env.PATH].join(":");
const env = { PATH, HOME: directory, npm_config_offline: "true", npm_config_update_notifier: "false" };
const run = (...argv: string[]) => requireCommand(argv, { env, cwd: directory, timeoutMs: 120_000 });

beforeAll(async () => {
  const notices = Buffer.from("of a release\n");
  writeFileSync(PACKAGE, await npmPackage({ facts: readFacts(), notices }));
  await run("npm", "install", "--global", "--prefix", inside("global"), PACKAGE);
}, 180_000);

it("has berthctl and the plugin of kubectl", async () => {
  expect(await run("berthctl", "--version")).toBe(`${readVersion()}\n`);
  expect(await run("berthctl", "network", "lan", "--type", "ptp")).toContain("type");
  expect(await run("kubectl-berth", "--help")).toContain("Usage: kubectl berth");
});

it("has the core, which calculates with ranges", async () => {
  writeFileSync(
    inside("pool.yaml"),
    `apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: { name: blue }
spec: { subnet: 10.60.0.0/24, ips: [10.60.0.10-10.60.0.20], excludeIPs: [10.60.0.12-10.60.0.20] }
`,
  );
  const printed = await run("berthctl", "convert", "spiderpool", "pool.yaml", "--ips", "10.60.0.12-10.60.0.20");
  expect(printed).toContain("- 10.60.0.12-10.60.0.20\n");
});

it("is run by npx without an installation", async () => {
  expect(await run("npx", "--yes", "--package", PACKAGE, "berthctl", "--version")).toBe(`${readVersion()}\n`);
});
