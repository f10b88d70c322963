import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { vectorText } from "../vectors/core/record.ts";
import { SCENARIOS } from "../vectors/core/scenarios.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const directory = join(root, "dist", "core");

/** Assembles the text, by an assembler that did not write it. */
function assemble(text: string): Uint8Array {
  const folder = temporaryDirectory("berth-wat-", onTestFinished);
  const output = join(folder, "core.wasm");
  execFileSync("wat2wasm", [text, "-o", output]);
  return readFileSync(output);
}

describe("dist/core", () => {
  it("has the module, its text, its description and the vectors, each with its sum", () => {
    const listed = readFileSync(join(directory, "SHA256SUMS"), "utf8").trimEnd().split("\n");
    const files = readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== "SHA256SUMS")
      .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1));
    expect(listed.map((line) => line.split("  ")[1])).toEqual(files.sort());
    expect(files).toEqual(
      expect.arrayContaining(["abi.json", "berth-core.wasm", "berth-core.wat", "vectors/sets.txt"]),
    );
    const checked = execFileSync("sha256sum", ["--check", "--strict", "SHA256SUMS"], {
      cwd: directory,
      encoding: "utf8",
    });
    expect(checked.trimEnd().split("\n")).toEqual(files.map((name) => `${name}: OK`));
  });

  it("has the repository's description", () => {
    expect(readFileSync(join(directory, "abi.json"))).toEqual(readFileSync(join(root, "assembly", "abi.json")));
  });

  it.each(SCENARIOS)("has a text that another assembler turns into a module that does the same: $name", (scenario) => {
    const wasm = assemble(join(directory, "berth-core.wat"));
    expect(vectorText(scenario, wasm)).toBe(readFileSync(join(directory, "vectors", `${scenario.name}.txt`), "utf8"));
  });
});
