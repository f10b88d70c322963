/** What V8 has compiled is kept from start to start, where the service and the chart say: for root alone, and ignored if it is damaged. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { ipPool } from "../lab/manifests.ts";
import { eventually, withWorld } from "../lab/netns-world.ts";

const POOL = { "blue.yaml": ipPool("blue", "10.6.0.0/26", { default: true }) };

const filesOf = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** The code of the agent's program, which it keeps itself. */
const programIn = (directory: string): string | undefined =>
  filesOf(directory).find((path) => path.endsWith("agent-program.cjs.code"));

const timeOf = (path: string): number => statSync(path).mtimeMs;

const written = (directory: string, sinceMs = 0): Promise<string | undefined> =>
  eventually(
    async () => programIn(directory),
    (path) => path !== undefined && timeOf(path) > sinceMs,
  );

it("an agent leaves what its next start needs, and starts with damaged files as well", () =>
  withWorld(POOL, async (world) => {
    const { agent } = world;
    await written(agent.codeCache);
    expect(await agent.stop()).toBe(0);
    const files = filesOf(agent.codeCache);
    expect(files.length).toBeGreaterThan(3);
    for (const file of files) expect(statSync(file).mode & 0o777, file).toBe(0o600);
    const times = files.map(timeOf);
    for (const [index, file] of files.entries()) {
      const bytes = readFileSync(file);
      if (index % 3 === 0) truncateSync(file, Math.floor(bytes.length / 2));
      else if (index % 3 === 1) writeFileSync(file, bytes.reverse());
      else writeFileSync(file, bytes.fill(0x5a, bytes.length >> 1));
    }
    const damagedMs = Math.max(...files.map(timeOf));
    await agent.start();
    expect(await world.add("c1")).toEqual([expect.stringMatching(/^10\.6\.0\./)]);
    await written(agent.codeCache, damagedMs);
    // They are written anew, since none of them was of use.
    expect(await agent.stop()).toBe(0);
    expect(files.filter((file, index) => timeOf(file) === times[index])).toEqual([]);
  }));

it("the code of the program is complete after twenty calls, used by the next start, and written no more", () =>
  withWorld(POOL, async (world) => {
    const { agent } = world;
    const path = (await written(agent.codeCache)) ?? "";
    const firstMs = timeOf(path);
    for (let pod = 0; pod < 20; pod++) await world.add(`c${pod}`);
    await written(agent.codeCache, firstMs);
    const completeMs = timeOf(path);
    await agent.kill("SIGKILL");
    await agent.start();
    for (let pod = 20; pod < 40; pod++) await world.add(`c${pod}`);
    // The agent looks once a second whether there is something to keep.
    const calledMs = performance.now();
    await eventually(
      async () => performance.now() - calledMs,
      (waitedMs) => waitedMs > 2_500,
    );
    expect(timeOf(path)).toBe(completeMs);
  }));

it("an installation leaves what the agent's first start needs", () => {
  const directory = mkdtempSync(join(tmpdir(), "berth-install-"));
  try {
    const program = join(root, "dist", "berth-agent.mjs");
    const args = ["install", "--plugins-only", "--dry-run", "--cni-bin-dir", join(directory, "bin")];
    const env = { ...process.env, NODE_COMPILE_CACHE: join(directory, "cache") };
    execFileSync(process.execPath, [program, ...args], { env });
    expect(programIn(join(directory, "cache"))).toBeDefined();
  } finally {
    rmSync(directory, { recursive: true });
  }
});

it("service and chart name a directory of their own", () => {
  const read = (...path: string[]): string => readFileSync(join(root, "deploy", ...path), "utf8");
  const unit = read("host", "systemd", "berth-agent.service");
  const [, directory] = /^Environment=NODE_COMPILE_CACHE=(\S+)$/m.exec(unit) ?? [];
  expect(unit).toContain(`CacheDirectory=${directory?.replace("/var/cache/", "")}\n`);
  const manifests = read("agent.yaml");
  // Of the agent, and of the installation before it.
  expect(manifests.split(`name: NODE_COMPILE_CACHE\n              value: ${directory}\n`)).toHaveLength(3);
  expect(manifests.split(`name: cache\n              mountPath: ${directory}\n`)).toHaveLength(3);
});
