/** The house without the packages beside it (docs/decisions/0063): a feature is taken away with its folder. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { startAgent } from "../lab/agent.ts";
import { itLong } from "../world/long-cases.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const run = promisify(execFile);
const { BERTH_LONG: _, ...env } = process.env;
const built = (name: string) => join("dist", name);
const place = temporaryDirectory("berth-alone-");
const inPlace = (...[file = "", ...args]: readonly string[]) =>
  run(file, args, { cwd: place, env, maxBuffer: 2 ** 26 });

beforeAll(async () => {
  await inPlace("git", "clone", "--quiet", "--no-checkout", root, ".");
  const { stdout } = await run("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root });
  const files = stdout.split("\n").filter((path) => !path.startsWith("packages/") && existsSync(join(root, path)));
  // Of the build, the parts that take long and stand on no package.
  for (const path of [
    ...files.filter((path) => path !== ""),
    ...["bin", "core", "core-debug", "native", ".stamps"].map(built),
  ])
    cpSync(join(root, path), join(place, path), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(place, "node_modules"));
  await inPlace("git", "add", "--all");
  await inPlace(..."git -c user.name=Berth -c user.email=berth@localhost commit --quiet -m alone".split(" "));
});

it("is built, and its agent serves", { timeout: 300_000 }, async () => {
  await inPlace("npm", "run", "build");
  const agent = await startAgent({ dist: join(place, "dist") });
  expect((await agent.get("/v1/health")).status).toBe("ready");
  await agent.delete();
});

itLong("its demo comes to its end", { timeout: 300_000 }, async () => {
  const { stdout } = await inPlace("npm", "run", "demo");
  expect(stdout).toMatch(/\n[0-9]{2,} claims, all true, in /);
});

itLong("its check passes", { timeout: 600_000 }, async () => {
  const { stdout } = await inPlace("npm", "run", "check");
  expect(stdout).toMatch(/ 0 failed, 0 unsteady\n/);
});
