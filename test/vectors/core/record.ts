/**
 * Drives the raw ABI as README.md tells an embedding to do, and records the core's answers. Run as a program by the
 * build, it writes the vectors of a built core: record.ts CORE FOLDER.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SCENARIOS, type Scenario } from "./scenarios.ts";

export interface Step {
  readonly call: string;
  readonly args: readonly number[];
  readonly input?: string;
  readonly result: number;
  readonly output?: string;
}

export interface Vector {
  readonly doc: string;
  readonly steps: readonly Step[];
  readonly state: { readonly bytes: number; readonly fnv1a64: string };
}

/** One instance of the core. */
export class Player {
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

/** Returns a vector's file, one step per line. */
export function vectorText(scenario: Scenario, wasm: Uint8Array): string {
  const { doc, steps, state } = record(scenario, wasm);
  const lines = steps.map(({ call, args, input = "-", result, output = "-" }) =>
    [call, args.map((arg) => arg | 0).join() || "-", input, result, output].join(" "),
  );
  return `# ${doc}\n${lines.join("\n")}\nstate - - ${state.bytes} ${state.fnv1a64}\n`;
}

/** Returns the vector of the file's text. */
export function parseVector(text: string): Vector {
  const [doc = "", ...lines] = text.trimEnd().split("\n");
  const steps = lines.map((line): Step => {
    const [call = "", args = "", input = "", result, output = ""] = line.split(" ");
    const numbers = args === "-" ? [] : args.split(",").map(Number);
    const bytes = { ...(input === "-" ? {} : { input }), ...(output === "-" ? {} : { output }) };
    return { call, args: numbers, result: Number(result), ...bytes };
  });
  const { result = 0, output = "" } = steps.pop() ?? {};
  return { doc, steps, state: { bytes: result, fnv1a64: output } };
}

if (import.meta.main) {
  const [core = "", folder = ""] = process.argv.slice(2);
  const wasm = readFileSync(core);
  mkdirSync(folder, { recursive: true });
  for (const scenario of SCENARIOS) writeFileSync(join(folder, `${scenario.name}.txt`), vectorText(scenario, wasm));
}
