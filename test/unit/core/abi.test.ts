import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CoreError } from "../../../host/core/core-error.ts";
import { ABI } from "../../../scripts/generate/abi-description.ts";
import { CORE_BUILDS } from "./core-build.ts";

const SECTION = { type: 1, function: 3, memory: 5, export: 7, start: 8, code: 10, data: 11 };
const MAX_MODULE_BYTES = 16 * 1024;

/** The constants that the sources declare, by name. */
function readConstants(pattern: string): Map<string, number> {
  const text = globSync(pattern)
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
  const found = text.matchAll(/^(?:export )?const (\w+): \w+ = ([^;]+);/gm);
  return new Map([...found].map(([, name = "", value = ""]) => [name, new Function(`return ${value}`)() as number]));
}

/** The exported functions of the ABI's source files, with the names of their parameters. */
function readSignatures(): Map<string, string[]> {
  const text = globSync("assembly/exports/*.ts", { exclude: ["assembly/exports/arguments.ts"] })
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
  const found = text.matchAll(/export function (\w+)\(([^)]*)\): i32/g);
  return new Map(
    [...found].map(([, name = "", list = ""]) => [
      name,
      list.split(", ").flatMap((param) => param.split(":")[0] || []),
    ]),
  );
}

describe("the ABI's description", () => {
  it("names every export of the source, with its parameters", () => {
    const described = new Map(ABI.exports.map(({ name, params }) => [name, params.map((param) => param.name)]));
    expect([...described].sort()).toEqual([...readSignatures()].sort());
  });

  it("has the source's statuses, ceilings and version", () => {
    const constants = readConstants("assembly/abi.ts");
    for (const { name, code } of ABI.statuses) expect(constants.get(name), name).toBe(code);
    for (const { name, value } of ABI.ceilings) expect(constants.get(name), name).toBe(value);
    expect(constants.get("ABI_VERSION")).toBe((ABI.version.major << 16) | ABI.version.minor);
    const policies = readConstants("assembly/**/allocate.ts");
    for (const { name, value } of ABI.policies) expect(policies.get(name), name).toBe(value);
  });

  it("knows every status that an export names", () => {
    const names = new Set(ABI.statuses.map(({ name }) => name));
    expect(ABI.exports.flatMap(({ statuses }) => statuses).filter((name) => !names.has(name))).toEqual([]);
  });

  it("agrees with the host's error texts", () => {
    const isKnown = (code: number) => !new CoreError("x", code).message.endsWith("an unknown status");
    const known = Array.from({ length: 100 }, (_, index) => -index).filter(isKnown);
    const codes = ABI.statuses.map(({ code }) => Number(code)).filter((code) => code !== 0);
    expect(known).toEqual(codes.toSorted((a, b) => b - a));
  });
});

/** The sections of a Wasm binary by their identifiers (WebAssembly 1.0 §5.5.2). */
function readSections(bytes: Uint8Array): Map<number, Uint8Array> {
  const sections = new Map<number, Uint8Array>();
  let at = 8;
  while (at < bytes.length) {
    const id = bytes[at++] ?? 0;
    let [length, shift, byte] = [0, 0, 128];
    for (; byte >= 128; shift += 7) {
      byte = bytes[at++] ?? 0;
      length |= (byte & 127) << shift;
    }
    sections.set(id, bytes.subarray(at, at + length));
    at += length;
  }
  return sections;
}

describe.each(CORE_BUILDS)("the built module ($build)", ({ build, wasm }) => {
  // That parameters and results are i32 shows each call of vectors.test.ts.
  it("exports the memory and the ABI, and imports nothing", () => {
    const module = new WebAssembly.Module(new Uint8Array(wasm));
    expect(WebAssembly.Module.imports(module)).toEqual([]);
    const exports = Object.entries(new WebAssembly.Instance(module, {}).exports);
    const found = exports.map(([name, each]) => [name, typeof each === "function" ? each.length : "memory"]);
    const described = ABI.exports.map(({ name, params }) => [name, params.length]);
    expect(found.sort()).toEqual([...described, ["memory", "memory"]].sort());
  });

  it("starts nothing, keeps no state outside its memory, and that from one page to 32768", () => {
    const sections = readSections(wasm);
    const { type, function: own, memory, export: shown, code, start, data } = SECTION;
    for (const absent of [start, data]) expect([...sections.keys()]).not.toContain(absent);
    expect([...(sections.get(memory) ?? [])]).toEqual([1, 1, 1, 0x80, 0x80, 2]);
    // The debug build has constants among its globals, and a table.
    if (build === "release") expect([...sections.keys()]).toEqual([type, own, memory, shown, code]);
  });
});

it("the release build is at most 16 KiB", () => {
  const wasm = CORE_BUILDS.find(({ build }) => build === "release")?.wasm ?? new Uint8Array();
  expect(wasm.length).toBeGreaterThan(0);
  expect(wasm.length).toBeLessThanOrEqual(MAX_MODULE_BYTES);
});
