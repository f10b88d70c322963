/**
 * The core in every language: each vector through its binding, and the program in its README, which uses its whole
 * library and prints the same in all languages.
 * Effects: starts the programs in dist/embeddings; temporary folders.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";
import { parseVector } from "../vectors/core/record.ts";
import { SCENARIOS } from "../vectors/core/scenarios.ts";
import { temporaryDirectory } from "../world/temporary-directory.ts";

const VECTORS = join(root, "dist", "core", "vectors");
const FILES = SCENARIOS.map(({ name }) => join(VECTORS, `${name}.txt`)).sort();

function run(language: string, program: string, ...args: string[]) {
  const file = join(root, "dist", "embeddings", language, program);
  const { error, status, stdout, stderr } = spawnSync(file, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  return { status, stdout, stderr };
}

/** A runner's output for a file: the number of steps, and the state as the file has it. */
function summaryOf(file: string): string {
  const { steps, state } = parseVector(readFileSync(file, "utf8"));
  return `${file}: ${steps.length} steps, state - - ${state.bytes} ${state.fnv1a64}\n`;
}

/** Lines that a runner must not accept: a name, the text to replace, its replacement. */
const DAMAGES: readonly (readonly [string, RegExp, string])[] = [
  ["another result", /^(set_count \S+ \S+) (\d+)/, "$1 77"],
  ["another output", /^(set_ranges .*)[0-9a-f]$/, "$1x"],
  ["another length of the state", /^(state - -) \d+/, "$1 1"],
  ["another memory", /^(state .*)..$/, "$1zz"],
];

describe.each(["browser", "c", "go", "java", "python", "rust"])("the embedding for %s", (language) => {
  it("replays every vector to the same results and the same memory, byte for byte", () => {
    expect(FILES.map((file) => file.slice(VECTORS.length + 1))).toEqual(
      readdirSync(VECTORS)
        .filter((name) => name.endsWith(".txt"))
        .sort(),
    );
    expect(run(language, "conformance", ...FILES)).toEqual({
      status: 0,
      stdout: FILES.map(summaryOf).join(""),
      stderr: "",
    });
  });

  it.each(DAMAGES)("refuses a vector that wants %s, and says where", (_what, pattern, wanted) => {
    const folder = temporaryDirectory("berth-vectors-", onTestFinished);
    const lines = readFileSync(join(VECTORS, "sets.txt"), "utf8").split("\n");
    const at = lines.findIndex((line) => pattern.test(line));
    const file = join(folder, "sets.txt");
    writeFileSync(file, lines.with(at, (lines[at] ?? "").replace(pattern, wanted)).join("\n"));
    const { status, stderr } = run(language, "conformance", file);
    expect(stderr.split("\n")[0]).toBe(`${file}:${at + 1}: ${lines[at]}`);
    expect(status).toBe(1);
  });

  it("has a README whose program prints its steps in every language", () => {
    const stdout = readFileSync(join(root, "test", "embeddings", "story.txt"), "utf8");
    expect(run(language, "readme")).toEqual({ status: 0, stdout, stderr: "" });
  });
});

it("the embedding for browsers replays every vector in Chromium, too", () => {
  const stdout = FILES.map(summaryOf).join("");
  expect(run("browser", "chromium", ...FILES)).toEqual({ status: 0, stdout, stderr: "" });
});
