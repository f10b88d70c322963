/** Files of the gate that have more cases, or try more often, than the gate has time for: with all of them. */
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../unit/house/sources.ts";
import { LONG_VARIABLE } from "../world/long-cases.ts";

/** `uml` has a machine of its own (uml.test.ts). */
const KINDS = ["unit", "property", "netns", "cluster", "nodes", "e2e"];

function filesOf(kind: string): string[] {
  const files = globSync(`test/${kind}/**/*.ts`, { cwd: root });
  const text = (file: string): string => readFileSync(join(root, file), "utf8");
  const long = files.filter((file) => file.endsWith(".long.test.ts") || text(file).includes("/world/long-cases.ts"));
  // What is no test itself is a part of the one beside it.
  return [...new Set(long.map((file) => (file.endsWith(".test.ts") ? file : `test/${kind}/`)))];
}

it.for(KINDS)("%s", (kind) => {
  const files = filesOf(kind);
  expect(files).not.toEqual([]);
  const { status, stdout, stderr } = spawnSync(
    join(root, "node_modules/.bin/vitest"),
    ["run", "--project", kind, "--testTimeout=3000000", ...files],
    { cwd: root, encoding: "utf8", env: { ...process.env, [LONG_VARIABLE]: "1" }, maxBuffer: 2 ** 28 },
  );
  expect(status, stdout + stderr).toBe(0);
});
