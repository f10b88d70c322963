/** The demo's other forms: on real API servers, and by an agent that is root of a user namespace only. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";

it("the demo with --cluster comes to its end, and all its claims are true", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["scripts/demo.ts", "--cluster"], { cwd: root });
  expect(stdout).toMatch(/\n[0-9]{2,} claims, all true, in /);
});

it("the demo in a user namespace, as of rootless nodes, comes to its end, and all its claims are true", async () => {
  const words = "--user --map-root-user --net --mount --pid --fork --mount-proc sh -c".split(" ");
  const demo = `ip link set lo up; exec ${process.execPath} scripts/demo.ts`;
  const { stdout } = await promisify(execFile)("unshare", [...words, demo], { cwd: root });
  expect(stdout).toMatch(/\n[0-9]{2,} claims, all true, in /);
});
