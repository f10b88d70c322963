/**
 * Required output and refusals of every embedding's conformance runner. The expectation is made here, by V8's
 * WebAssembly and nothing of the embeddings; test/vectors/core/README.md tells a runner what to do.
 * Effects: reads the vectors and the built core; starts the runner; temporary folders.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../scripts/setup/paths.mjs";

const VECTORS = join(root, "dist", "core", "vectors");

interface Step {
  readonly call: string;
  readonly args: readonly number[];
  readonly input?: string;
  result: number;
  output?: string;
}

interface Vector {
  readonly steps: readonly Step[];
  readonly state: { bytes: number; fnv1a64: string };
}

export const CORE = readFileSync(join(root, "dist", "core", "berth-core.wasm"));

export const VECTOR_NAMES = readdirSync(VECTORS)
  .filter((name) => name.endsWith(".json"))
  .map((name) => name.replace(/\.json$/, ""))
  .sort();

function readVector(name: string): Vector {
  return JSON.parse(readFileSync(join(VECTORS, `${name}.json`), "utf8")) as Vector;
}

/** `sets: 41 steps, 4864 bytes, sha256 …`: the hash is of the memory from address 0 to state_bytes(). */
export function replay(name: string, wasm: Uint8Array = CORE): string {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(wasm)), {});
  const { memory, ...calls } = exports as { memory: WebAssembly.Memory } & Record<
    string,
    (...args: number[]) => number
  >;
  const call = (operation: string, ...args: number[]) => calls[operation]?.(...args) ?? Number.NaN;
  const { steps } = readVector(name);
  for (const { call: operation, args, input } of steps) {
    if (input !== undefined) {
      const bytes = Buffer.from(input, "hex");
      new Uint8Array(memory.buffer).set(bytes, call("exchange", bytes.length));
    }
    call(operation, ...args);
  }
  const length = call("state_bytes");
  const sha256 = createHash("sha256")
    .update(new Uint8Array(memory.buffer, 0, length))
    .digest("hex");
  return `${name}: ${steps.length} steps, ${length} bytes, sha256 ${sha256}`;
}

/** Changes one thing that a runner must notice; gives how its refusal must begin. */
const DAMAGES: readonly (readonly [string, (name: string, vector: Vector) => string])[] = [
  [
    "another result",
    (name, { steps }) => {
      const step = steps[7];
      if (step === undefined) throw new Error("too short");
      step.result += 1;
      return `${name}: step 7, ${step.call}(${step.args.join(", ")}): result ${step.result - 1}, wanted ${step.result}`;
    },
  ],
  [
    "another output",
    (name, { steps }) => {
      const index = steps.findIndex(({ output }) => output !== undefined);
      const step = steps[index];
      if (step?.output === undefined) throw new Error("no output");
      const found = step.output;
      step.output = `${found.slice(0, -1)}${found.endsWith("0") ? "1" : "0"}`;
      return `${name}: step ${index}, ${step.call}(${step.args.join(", ")}): output ${found}, wanted ${step.output}`;
    },
  ],
  [
    "another length of the state",
    (name, { state }) => {
      state.bytes += 1;
      return `${name}: state: ${state.bytes - 1} bytes, wanted ${state.bytes}`;
    },
  ],
  [
    "another memory",
    (name, { state }) => {
      const found = state.fnv1a64;
      state.fnv1a64 = `${found.slice(0, -1)}${found.endsWith("0") ? "1" : "0"}`;
      return `${name}: state: fnv1a64 ${found}, wanted ${state.fnv1a64}`;
    },
  ],
];

/** The tests of one runtime's runner: `command` is called with the folder of the vectors as its last argument. */
export function describeConformance(
  runtime: string,
  command: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv = {},
): void {
  const [file, ...args] = command;
  const run = (folder: string) => {
    const result = spawnSync(file, [...args, folder], { encoding: "utf8", env: { ...process.env, ...env }, cwd: root });
    if (result.error !== undefined) throw result.error;
    return result;
  };

  describe(`the conformance runner of ${runtime}`, () => {
    it("replays every vector to the same results and the same memory, byte for byte", () => {
      const { status, stdout, stderr } = run(VECTORS);
      expect(stderr).toBe("");
      expect(stdout.trimEnd().split("\n")).toEqual(VECTOR_NAMES.map((name) => replay(name)));
      expect(status).toBe(0);
    });

    it.each(DAMAGES)("refuses a vector that wants %s, and says where", (_what, damage) => {
      const folder = mkdtempSync(join(tmpdir(), "berth-vectors-"));
      try {
        cpSync(VECTORS, folder, { recursive: true });
        const vector = readVector("sets");
        const complaint = damage("sets", vector);
        writeFileSync(join(folder, "sets.json"), JSON.stringify(vector));
        const { status, stderr } = run(folder);
        expect(stderr.trim().split("\n")[0]).toBe(complaint);
        expect(status).toBe(1);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    it("refuses a folder without vectors", () => {
      const folder = mkdtempSync(join(tmpdir(), "berth-vectors-"));
      try {
        const { status, stderr } = run(folder);
        expect(stderr.trim()).toBe(`No vectors in ${folder}`);
        expect(status).toBe(1);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });
}
