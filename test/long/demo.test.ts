/** The demo's other forms, on real API servers. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";

it.each(["--cluster", "--clusters"])("the demo with %s comes to its end, and all its claims are true", async (form) => {
  const { stdout } = await promisify(execFile)(process.execPath, ["scripts/demo.ts", form], { cwd: root });
  expect(stdout).toMatch(/\n[0-9]{2,} claims, all true, in /);
});
