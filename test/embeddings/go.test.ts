import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { goEnvironment, requireGo } from "../../scripts/setup/embeddings/go.mjs";
import { root } from "../../scripts/setup/paths.mjs";
import { describeConformance } from "./conformance.ts";

const FOLDER = join(root, "embeddings", "go");

describeConformance("Go", [join(root, "dist", "embeddings", "go", "conformance")]);

/** Runs a command in the embedding's folder with the modules that set-up has fetched; gives what it prints. */
function run(file: string, ...args: readonly string[]): string {
  const env = { ...process.env, ...goEnvironment(), GOPROXY: "off" };
  const { status, stdout, stderr } = spawnSync(file, args, { cwd: FOLDER, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${status}\n${stdout}${stderr}`);
  return stdout;
}

function read(name: string): string {
  return readFileSync(join(FOLDER, name), "utf8");
}

describe("the Go embedding", () => {
  const go = requireGo();
  const [, program = ""] = /^```go\n(.*?)^```$/ms.exec(read("README.md")) ?? [];
  const example = read("example_test.go");
  const [, wanted] = /^\t\/\/ Output: (.*)$/m.exec(example) ?? [];

  it("passes its own tests", () => {
    expect(run(go, "test", "./...")).toMatch(/^ok\s+vendor\.io\/berth\/core\s/m);
  });

  it("is as go vet and gofmt want it", () => {
    run(go, "vet", "./...");
    expect(run(join(dirname(go), "gofmt"), "-l", ".")).toBe("");
  });

  it("has a README whose program is the example", () => {
    const lines = example.split("\n").filter((line) => !line.includes("// Output:"));
    const asProgram = lines
      .join("\n")
      .replace("package core_test", "package main")
      .replace("func Example", "func main");
    expect(program).toBe(asProgram);
  });

  it("has a README whose program prints what it says", () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-go-"));
    try {
      writeFileSync(join(folder, "main.go"), program);
      expect(run(go, "run", join(folder, "main.go"))).toBe(`${wanted}\n`);
      expect(read("README.md")).toContain(`It prints \`${wanted}\``);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
