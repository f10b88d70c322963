import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Build, readCore } from "../../property/core/raw-core.ts";

const root = join(import.meta.dirname, "../../..");

/** The module that the sources give now, by the given target of asconfig.json. */
function compile(target: string): Uint8Array {
  const directory = mkdtempSync(join(tmpdir(), "berth-core-"));
  try {
    const outFile = join(directory, "out.wasm");
    // The compiler as a program: its types, once imported, would change what `console` is in the whole project.
    execFileSync(
      join(root, "node_modules/.bin/asc"),
      ["--target", target, "--outFile", outFile, "--textFile", `${outFile}.wat`],
      { cwd: root },
    );
    return readFileSync(outFile);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

it.each<Build>(["release", "debug"])("two builds of the %s core are the same, byte for byte", (target) => {
  // One of the two is the set-up's.
  const [first, second] = [readCore(target), compile(target)];
  expect(first.length).toBeGreaterThan(1000);
  expect(Buffer.compare(first, second), "dist/core is not what the sources give: npm run build").toBe(0);
});
