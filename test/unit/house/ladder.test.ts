import { join, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { readSources, resolveImport, type Source } from "./sources.ts";

/** A folder imports from itself and from rows above; folders of one row may know each other only in the row's order. */
const LADDER: readonly (readonly string[])[] = [
  ["lib"],
  ["net"],
  ["core"],
  ["cni"],
  ["config", "resources"],
  ["plan"],
  ["ipam"],
  ["kubernetes"],
  ["registry"],
  ["kernel"],
  ["coordinator", "ifacer"],
  ["agent", "controller"],
  ["web", "cli"],
  ["bin"],
];

function rungOf(path: string): number {
  const folder = path.split(sep)[1] ?? "";
  return LADDER.findIndex((row) => row.includes(folder));
}

function ladderFaults(source: Source): string[] {
  const own = rungOf(source.path);
  if (own < 0) return [`${source.path}: its folder has no rung; put it into a folder of the ladder in ARCHITECTURE.md`];
  return source.imports.flatMap((specifier) => {
    const target = resolveImport(source, specifier);
    if (target === undefined || !target.startsWith(`host${sep}`)) return [];
    if (rungOf(target) <= own) return [];
    return [
      `${source.path} imports ${target}, which stands lower in the ladder: move the code down to where it is used, ` +
        "or pass what is needed as an argument",
    ];
  });
}

const PURE = [/^host\/(?:net|config|plan|ipam)\//, /\/(?:plan[a-z-]*|mode|probe)\.ts$/];
const IMPURE_CODE = /\b(?:Date\.now|new Date\(\)|Math\.random|performance\.now|process\.(?:env|hrtime|pid))\b/;

function purityFaults(source: Source): string[] {
  if (!PURE.some((pattern) => pattern.test(source.path.split(sep).join("/")))) return [];
  const imports = source.imports.filter((specifier) => specifier.startsWith("node:"));
  const faults = imports.map((name) => `${source.path} imports ${name}: pass what it gives as an argument`);
  const found = IMPURE_CODE.exec(source.text)?.[0];
  if (found !== undefined)
    faults.push(`${source.path} uses ${found}: pass time, randomness and environment as arguments`);
  return faults;
}

const host = readSources("host", ".ts");

describe("the house", () => {
  it("has sources to look at", () => expect(host.length).toBeGreaterThan(40));

  it("imports go down the ladder", () => expect(host.flatMap(ladderFaults)).toEqual([]));

  it("finds an import that goes up the ladder", () => {
    const source = { path: join("host", "net", "x.ts"), text: "", lines: 1, imports: ["../agent/agent.ts"] };
    expect(ladderFaults(source)).toHaveLength(1);
  });

  it("pure folders have no I/O, no clock, no randomness", () => expect(host.flatMap(purityFaults)).toEqual([]));

  it("finds a clock in a pure folder", () => {
    const source = { path: join("host", "ipam", "x.ts"), text: "Date.now()", lines: 1, imports: ["node:fs"] };
    expect(purityFaults(source)).toHaveLength(2);
  });

  it("only native.ts opens the addon", () => {
    const importers = host.filter(({ text }) => /dlopen|berth\.node/.test(text)).map(({ path }) => path);
    expect(importers).toEqual([join("host", "kernel", "native.ts")]);
  });

  it("has no barrels", () => {
    const barrels = host.filter(({ path, text }) => /index\.ts$/.test(path) || /export \* from/.test(text));
    expect(barrels.map(({ path }) => `${path}: import from the file that has it`)).toEqual([]);
  });
});
