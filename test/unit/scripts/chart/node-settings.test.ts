/** Settings of Node.js for Berth: the chart has the same as the service of a host. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../../../scripts/setup/paths.mjs";
import { serviceEnvironment } from "../../../lab/service-environment.ts";

const manifest = (name: string): string => readFileSync(join(root, "deploy", name), "utf8");

test("the agent of the chart has the environment of the service, a limit of its heap included", () => {
  const settings = Object.entries(serviceEnvironment());
  expect(settings.map(([name]) => name)).toEqual(["NODE_OPTIONS", "MALLOC_ARENA_MAX", "UV_THREADPOOL_SIZE"]);
  for (const [name, value] of settings) {
    const written = /^\d+$/.test(value) ? `"${value}"` : value;
    expect(manifest("agent.yaml")).toContain(`- name: ${name}\n              value: ${written}\n`);
  }
  expect(serviceEnvironment().NODE_OPTIONS).toMatch(/^--max-old-space-size=\d+ /);
});

test("service and chart keep compiled code in the same directory", () => {
  const unit = manifest("host/systemd/berth-agent.service");
  const [, directory] = /^Environment=BERTH_CODE_CACHE=(\S+)$/m.exec(unit) ?? [];
  expect(unit).toContain(`CacheDirectory=${directory?.replace("/var/cache/", "")}\n`);
  expect(manifest("agent.yaml")).toContain(`name: BERTH_CODE_CACHE\n              value: ${directory}\n`);
  expect(manifest("agent.yaml")).toContain(`name: cache\n              mountPath: ${directory}\n`);
});
