/** What V8 has compiled is kept from start to start, where the service and the chart say: for root alone, and ignored if it is damaged. */
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ipPool } from "../../scripts/lab/manifests.ts";
import { withWorld } from "../../scripts/lab/netns-world.ts";
import { root } from "../../scripts/setup/paths.mjs";

const POOL = { "blue.yaml": ipPool("blue", "10.6.0.0/28", { default: true }) };

const filesOf = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

it("an agent that stops leaves what its next start needs, and starts with damaged files as well", () =>
  withWorld(POOL, async (world) => {
    const { agent } = world;
    expect(await agent.stop()).toBe(0);
    const files = filesOf(agent.codeCache);
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) expect(statSync(file).mode & 0o777, file).toBe(0o600);
    await agent.start();
    expect(await agent.stop()).toBe(0);
    const times = files.map((file) => statSync(file).mtimeMs);
    for (const [index, file] of files.entries()) {
      const bytes = readFileSync(file);
      if (index % 3 === 0) truncateSync(file, Math.floor(bytes.length / 2));
      else if (index % 3 === 1) writeFileSync(file, bytes.reverse());
      else writeFileSync(file, bytes.fill(0x5a, bytes.length >> 1));
    }
    await agent.start();
    expect(await world.add("c1")).toEqual([expect.stringMatching(/^10\.6\.0\./)]);
    // They are written anew, since none of them was of use.
    expect(await agent.stop()).toBe(0);
    expect(files.filter((file, index) => statSync(file).mtimeMs === times[index])).toEqual([]);
  }));

it("service and chart name a directory of their own", () => {
  const read = (...path: string[]): string => readFileSync(join(root, "deploy", ...path), "utf8");
  const unit = read("host", "systemd", "berth-agent.service");
  const [, directory] = /^Environment=NODE_COMPILE_CACHE=(\S+)$/m.exec(unit) ?? [];
  expect(unit).toContain(`CacheDirectory=${directory?.replace("/var/cache/", "")}\n`);
  expect(read("agent.yaml")).toContain(`name: NODE_COMPILE_CACHE\n              value: ${directory}\n`);
  expect(read("agent.yaml")).toContain(`name: cache\n              mountPath: ${directory}\n`);
});
