/** The simulation notices each fault of test/simulation/faults/faults.ts within its limit, and nothing without it. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { root } from "../unit/house/sources.ts";

it("notices every fault", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["test/simulation/faults/detect.ts"], {
    cwd: root,
    encoding: "utf8",
  });
  console.log(stdout);
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
