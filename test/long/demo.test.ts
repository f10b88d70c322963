/** The demo's second form, on a real API server. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";

it("the demo of a cluster comes to its end, and all its claims are true", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["scripts/demo.ts", "--cluster"], { cwd: root });
  expect(stdout).toMatch(/\n[0-9]{2,} claims, all true, in /);
});
