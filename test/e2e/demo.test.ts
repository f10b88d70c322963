/** The demo, a newcomer's first command: every claim that it prints has to be true. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";

it("the demo comes to its end, and all its claims are true", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["scripts/demo.ts"], { cwd: root });
  expect(stdout).toMatch(/\n[0-9]{2,} claims, all true, in /);
  expect(stdout).toMatch(/open http:\/\/127\.0\.0\.1:\d+ while this demo runs/);
});
