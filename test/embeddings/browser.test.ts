/**
 * The package berth-core, as dist/embeddings/browser has it: in Node.js and in headless Chromium.
 * Effects: starts Node.js, the compiler and Chromium; servers on loopback; temporary folders.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Visit, visit } from "../../embeddings/browser/chromium.ts";
import { root } from "../../scripts/setup/paths.mjs";
import { describeConformance } from "./conformance.ts";

const site = join(root, "dist", "embeddings", "browser");
const library = join(site, "node_modules", "berth-core");
const core = join(root, "dist", "core", "berth-core.wasm");
const tsc = join(root, "node_modules", ".bin", "tsc");
const folder = mkdtempSync(join(tmpdir(), "berth-browser-"));
afterAll(() => rmSync(folder, { recursive: true }));

function run(
  file: string,
  args: readonly string[],
  cwd = site,
): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(file, args, { cwd, encoding: "utf8" });
}

describeConformance("Chromium", [process.execPath, join(site, "conformance.mjs")]);
describeConformance("Node.js", [process.execPath, join(site, "conformance.mjs"), "--node"]);

describe("the package berth-core", () => {
  it("has the core's bytes", () => {
    const sha256 = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");
    expect(sha256(join(library, "berth-core.wasm"))).toBe(sha256(core));
  });

  it("is well typed, with its programs, pages and tests", () => {
    const { status, stdout } = run(tsc, ["-p", join(root, "embeddings", "browser")]);
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });

  it("passes its own tests in Node.js", () => {
    const tests = readdirSync(join(site, "test")).map((name) => join("test", name));
    const { status, stdout } = run(process.execPath, ["--test", ...tests]);
    expect(stdout).toMatch(/^ℹ fail 0$/m);
    expect(stdout).toMatch(/^ℹ pass [1-9]\d*$/m);
    expect(stdout).toMatch(/^ℹ skipped 0$/m);
    expect(status).toBe(0);
  });

  it("runs the program of its README", () => {
    const program = /```js\n([\s\S]+?)```/.exec(readFileSync(join(library, "README.md"), "utf8"))?.[1] ?? "";
    const { stdout, stderr } = run(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stderr).toBe("");
    expect(stdout).toBe("10.0.0.2 claimed outside\n10.0.0.3 10.0.0.4 10.0.0.5 248n\n10.0.0.0/31\n");
  });

  it.each([
    ["bundler", "es2022"],
    ["nodenext", "nodenext"],
  ])("has types for a strict program of another project, found as %s does", (resolution, module) => {
    const project = join(folder, resolution);
    mkdirSync(join(project, "node_modules"), { recursive: true });
    symlinkSync(library, join(project, "node_modules", "berth-core"));
    writeFileSync(join(project, "package.json"), '{ "type": "module" }');
    const lines = [
      'import { Core, type CoreExports, type Pool } from "berth-core";',
      "const core = await Core.open();",
      'const pool: Pool = core.createPool(["10.0.0.0/24"]);',
      'const text: string | undefined = pool.allocate("HASHED", 7);',
      "const value: bigint | undefined = pool.values.findFree(0)?.value;",
      "const [duplicate, inDuplicate]: [Core, Pool] = core.copy(pool);",
      "const raw: CoreExports = duplicate.raw;",
      "console.log(text, value, inDuplicate.counts().free, raw.live_objects());",
      "// @ts-expect-error there is no such order",
      'pool.allocate("RANDOM");',
      "",
    ];
    writeFileSync(join(project, "main.ts"), lines.join("\n"));
    const options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom", "--types", ""];
    const how = ["--module", module, "--moduleResolution", resolution, "main.ts"];
    const { status, stdout } = run(tsc, [...options, ...how], project);
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });
});

/** Something done in the page of the demo, whose console must stay free of errors. */
function onDemo<T>(use: Visit<T>["use"]): Promise<T> {
  return visit({ site, given: folder, page: "demo.html", use });
}

describe("the package in Chromium", () => {
  it("makes an address map that allocates, releases and counts", async () => {
    const seen = await onDemo(async (page) => {
      const look = async () => [await page.textContent("#said"), await page.textContent("#counts")];
      const seen = [];
      await page.fill("#prefix", "fd00::/125");
      await page.click("text=Make the pool");
      seen.push(await look());
      await page.click("text=Allocate");
      await page.click("text=Allocate");
      seen.push(await look());
      await page.click('[title="fd00::"]');
      seen.push(await look());
      await page.click('[title="fd00::7"]');
      seen.push(await look());
      seen.push(await page.locator("[aria-pressed=true]").evaluateAll((squares) => squares.map(({ title }) => title)));
      await page.fill("#prefix", "fd00::/129");
      await page.click("text=Make the pool");
      seen.push(await look());
      return seen;
    });
    expect(seen).toEqual([
      ["", "0 used, 8 free"],
      ["fd00::1 is allocated", "2 used, 6 free"],
      ["fd00:: is released", "1 used, 7 free"],
      ["fd00::7 is claimed", "2 used, 6 free"],
      ["fd00::1", "fd00::7"],
      ['Not a prefix: "fd00::/129", wanted one like "10.0.0.0/24" or "fd00::/64"', "2 used, 6 free"],
    ]);
  });

  it("opens bytes, whatever type the server gives them, and copies, at once on the main thread", async () => {
    cpSync(core, join(folder, "core.bin"));
    const found = await onDemo((page) =>
      page.evaluate(`(async () => {
        const { Core } = await import("berth-core");
        const url = new URL("/given/core.bin", location.href);
        const core = await Core.open(url);
        const again = Core.openSync(await (await fetch(url)).arrayBuffer());
        const [duplicate, pool] = again.copy(again.createPool(["10.0.0.0/24"]));
        return [core.liveObjects(), duplicate.liveObjects(), pool.allocate("HASHED", 77)];
      })()`),
    );
    expect(found).toEqual([0, 1, "10.0.0.77"]);
  });

  it("fails a visit of a page that meets an error", async () => {
    const fail = `setTimeout(() => { throw new Error("met by the page") })`;
    const visited = onDemo(async (page) => {
      await page.evaluate(fail);
      await page.waitForSelector("#absent");
    });
    await expect(visited).rejects.toThrow("met by the page");
  });
});
