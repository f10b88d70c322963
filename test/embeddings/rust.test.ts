import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { requireRust } from "../../scripts/setup/embeddings/rust.mjs";
import { root } from "../../scripts/setup/paths.mjs";
import { CORE, describeConformance } from "./conformance.ts";

const FOLDER = join(root, "embeddings", "rust");
const BUILT = join(root, "dist", "embeddings", "rust");

describeConformance("Rust", [join(BUILT, "conformance")]);

/** Runs a command in the crate's folder, offline; gives what it prints. */
function run(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const { status, stdout, stderr } = spawnSync(file, args, {
    cwd: FOLDER,
    env: { ...process.env, ...env },
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${status}\n${stdout}${stderr}`);
  return stdout;
}

function read(name: string): string {
  return readFileSync(join(FOLDER, name), "utf8");
}

describe("the Rust embedding", () => {
  const { cargo, env } = requireRust();

  it("has the core as it is built in its programs, and its sum", () => {
    expect(readFileSync(join(BUILT, "first")).includes(CORE)).toBe(true);
    expect(read("src/raw/berth-core.sha256")).toBe(createHash("sha256").update(CORE).digest("hex"));
  });

  it("passes its own tests, those of its documentation too", () => {
    const results = run(cargo, ["test", "--release", "--offline", "--locked"], env).match(/^test result: .*$/gm) ?? [];
    const counts = results.map((result) => Number(/ok\. (\d+) passed; 0 failed; 0 ignored/.exec(result)?.[1]));
    expect(counts.every((count) => count >= 0)).toBe(true);
    const tests = ["pools", "batches", "sets", "prefixes", "snapshots", "cores", "hostile"]
      .map((name) => read(`tests/api/${name}.rs`).match(/^#\[test\]$/gm)?.length ?? 0)
      .reduce((a, b) => a + b);
    expect(counts).toContain(tests);
    // The last result is that of the documentation.
    expect(counts.at(-1)).toBeGreaterThan(5);
  });

  it("is as rustfmt wants it", () => {
    run(cargo, ["fmt", "--check"], env);
  });

  it("has a README whose program is the example", () => {
    const [, program] = /^```rust\n(.*?)^```$/ms.exec(read("README.md")) ?? [];
    expect(program).toBe(read("examples/first.rs"));
  });

  it("has a README whose program prints what it says", () => {
    const [, wanted] = /^It prints `(.*?)`/m.exec(read("README.md")) ?? [];
    expect(run(join(BUILT, "first"), [])).toBe(`${wanted}\n`);
  });
});
