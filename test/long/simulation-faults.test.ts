/** The simulation notices each fault of docs/simulation-faults.md within its limit. */
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
