import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CoreError } from "../../../host/core/core-error.ts";
import { ABI } from "../../../scripts/generate/abi-description.ts";
import { CORE_BUILDS } from "./core-build.ts";
import { readSections } from "./wasm-sections.ts";

const SECTION = { table: 4, start: 8, element: 9, data: 11 };
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

describe.each(CORE_BUILDS)("the built module ($build)", ({ wasm }) => {
  const sections = readSections(wasm);

  it("exports the memory and what the ABI describes, all on i32", () => {
    const typeOf = (params: number, results: number) =>
      `(${Array(params).fill("i32").join(",")})->(${Array(results).fill("i32").join(",")})`;
    const described = ABI.exports.map(({ name, params }) => ({
      name,
      kind: "function",
      type: typeOf(params.length, 1),
    }));
    const wanted = [...described, { name: "memory", kind: "memory", type: undefined }];
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect([...sections.exports].sort(byName)).toEqual(wanted.sort(byName));
  });

  it("imports nothing, starts nothing, and keeps no state outside its memory", () => {
    expect(sections.imports).toBe(0);
    expect(sections.mutableGlobals).toBe(0);
    expect(sections.ids).not.toContain(SECTION.start);
    expect(sections.ids).not.toContain(SECTION.data);
    expect(sections.memories).toEqual([{ initial: 1, maximum: 32768 }]);
  });
});

it("the release build is at most 16 KiB and has no table", () => {
  const wasm = CORE_BUILDS.find(({ build }) => build === "release")?.wasm ?? new Uint8Array();
  const { ids } = readSections(wasm);
  expect(wasm.length).toBeGreaterThan(0);
  expect(wasm.length).toBeLessThanOrEqual(MAX_MODULE_BYTES);
  expect(ids).not.toContain(SECTION.table);
  expect(ids).not.toContain(SECTION.element);
});
