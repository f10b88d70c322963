import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ABI } from "../../../scripts/generate/abi-description.ts";
import { expectRecorded } from "../../fakes/recorded.ts";
import { CORE_BUILDS } from "./core-build.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";

interface Step {
  readonly call: string;
  readonly args: readonly number[];
  readonly input?: string;
  readonly result: number;
  readonly output?: string;
}

interface Vector {
  readonly doc: string;
  readonly steps: readonly Step[];
  readonly state: { readonly bytes: number; readonly fnv1a64: string };
}

/** The raw ABI as test/vectors/core/README.md tells an embedding to drive it. */
class Player {
  readonly #exports: Record<string, (...args: number[]) => number>;
  readonly #memory: WebAssembly.Memory;

  constructor(wasm: Uint8Array) {
    const exports = new WebAssembly.Instance(new WebAssembly.Module(wasm), {}).exports;
    this.#exports = exports as Record<string, (...args: number[]) => number>;
    this.#memory = (exports as { memory: WebAssembly.Memory }).memory;
  }

  call(name: string, args: readonly number[], input: string | undefined): number {
    if (input !== undefined) {
      const bytes = Buffer.from(input, "hex");
      const at = this.#exports.exchange?.(bytes.length) ?? -1;
      new Uint8Array(this.#memory.buffer).set(bytes, at);
    }
    return this.#exports[name]?.(...args) ?? Number.NaN;
  }

  output(length: number): string {
    const at = this.#exports.exchange?.(0) ?? -1;
    return Buffer.from(this.#memory.buffer, at, length).toString("hex");
  }

  state(): Vector["state"] {
    const bytes = this.#exports.state_bytes?.() ?? 0;
    let hash = 0xcbf29ce484222325n;
    for (const byte of new Uint8Array(this.#memory.buffer, 0, bytes)) {
      hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
    }
    return { bytes, fnv1a64: hash.toString(16).padStart(16, "0") };
  }
}

function record(scenario: Scenario, wasm: Uint8Array): Vector {
  const player = new Player(wasm);
  const steps: Step[] = [];
  scenario.run((call, args, { input, keep = 0, keepEach = 0, atMost = Number.POSITIVE_INFINITY } = {}) => {
    const result = player.call(call, args, input);
    const length = result < 0 ? 0 : Math.min(keep + keepEach * result, atMost);
    const output = length > 0 ? { output: player.output(length) } : {};
    steps.push({ call, args, ...(input === undefined || input === "" ? {} : { input }), result, ...output });
    return result;
  });
  return { doc: scenario.doc, steps, state: player.state() };
}

/** One step per line, so that a change is a line. */
function format({ doc, steps, state }: Vector): string {
  const lines = steps.map((step) => `    ${JSON.stringify(step)}`).join(",\n");
  return `{\n  "doc": ${JSON.stringify(doc)},\n  "steps": [\n${lines}\n  ],\n  "state": ${JSON.stringify(state)}\n}\n`;
}

function pathOf(name: string): string {
  return `test/vectors/core/${name}.json`;
}

function readVector(name: string): Vector {
  return JSON.parse(readFileSync(pathOf(name), "utf8")) as Vector;
}

describe("the conformance vectors", () => {
  const release = CORE_BUILDS[0]?.wasm ?? new Uint8Array();

  it.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    "%s is what the core does",
    async (name, scenario) => {
      await expectRecorded(pathOf(name), format(record(scenario, release)));
    },
  );

  it("call every export", () => {
    const called = new Set(SCENARIOS.flatMap(({ name }) => readVector(name).steps.map(({ call }) => call)));
    const played = "exchange"; // by every step with input
    expect(ABI.exports.map(({ name }) => name).filter((name) => name !== played && !called.has(name))).toEqual([]);
  });
});

describe.each(CORE_BUILDS)("the $build build", ({ wasm }) => {
  it.each(SCENARIOS.map(({ name }) => name))("replays %s to the same memory", (name) => {
    const player = new Player(wasm);
    const { steps, state } = readVector(name);
    for (const [index, step] of steps.entries()) {
      const result = player.call(step.call, step.args, step.input);
      const output = step.output === undefined ? {} : { output: player.output(step.output.length / 2) };
      expect({ index, result, ...output }).toEqual({
        index,
        result: step.result,
        ...(step.output === undefined ? {} : { output: step.output }),
      });
    }
    expect(player.state()).toEqual(state);
  });
});
