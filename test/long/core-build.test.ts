import { execFileSync } from "node:child_process";
import { mkdtempDisposableSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { type Build, readCore } from "../property/core/raw-core.ts";

/** The module that the sources give now, by the given target of asconfig.json. */
function compile(target: string): Uint8Array {
  using directory = mkdtempDisposableSync(join(tmpdir(), "berth-core-"));
  const outFile = join(directory.path, "out.wasm");
  // The compiler as a program: its types, once imported, would change `console` in the whole project.
  const args = ["--target", target, "--outFile", outFile, "--textFile", `${outFile}.wat`];
  execFileSync(join(root, "node_modules/.bin/asc"), args, { cwd: root });
  return readFileSync(outFile);
}

it.each<Build>(["release", "debug"])("two builds of the %s core are the same, byte for byte", (target) => {
  // One of the two is the set-up's.
  const [first, second] = [readCore(target), compile(target)];
  expect(first.length).toBeGreaterThan(1000);
  expect(Buffer.compare(first, second), "dist/core is not what the sources give: npm run build").toBe(0);
});
