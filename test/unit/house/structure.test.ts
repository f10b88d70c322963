/** Rules about files, folders and imports that the linter does not know. Each message says what to do. */
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { ALLOWED_IMPORTS, ALLOWED_IN_AGENT, ALLOWED_IN_CONTROLLER } from "./allowed-imports.ts";
import { exportsOf, isAlone, readSources, resolveImport, root, type Source, sourceOf, usesOf } from "./sources.ts";

const host = readSources("host", ".ts");
const beside = readSources("packages", ".ts");
const isTest = ({ path }: Source): boolean => path.includes("/test/");
/** The sources of the bundles, and the page. */
const built = [...host, ...beside.filter((each) => !isTest(each))];
const product = [
  ...built,
  ...["scripts", "benchmarks", "embeddings"].flatMap((folder) => [
    ...readSources(folder, ".ts"),
    ...readSources(folder, ".mjs"),
  ]),
];
const tests = [...readSources("test", ".ts"), ...beside.filter(isTest)];

type Table = Readonly<Record<string, string>>;

/** The row of a file: its own, else that of the longest folder with one. */
function rowOf(path: string, table: Table): string | undefined {
  const inner = path.replace(/^host\//, "");
  return Object.keys(table)
    .filter((row) => inner === row || inner.startsWith(`${row}/`))
    .sort((a, b) => b.length - a.length)[0];
}

function importFaults(source: Source, table: Table): string[] {
  const own = rowOf(source.path, table);
  if (own === undefined) return [`${source.path}: its folder has no row in allowed-imports.ts`];
  return source.imports.flatMap((specifier) => {
    const target = resolveImport(source, specifier);
    if (target === undefined || !target.startsWith("host/")) return [];
    const row = rowOf(target, table);
    if (row === undefined || row === own || table[own]?.split(" ").includes(row)) return [];
    return [`${own} -> ${row}: ${source.path} imports ${target}; pass what is needed as an argument, or move the code`];
  });
}

/** Rows that name themselves, a row below or no row. */
function tableFaults(table: Table): string[] {
  const rows = Object.keys(table);
  return rows.flatMap((row, index) =>
    (table[row] ?? "")
      .split(" ")
      .filter((name) => name !== "" && !rows.slice(0, index).includes(name))
      .map((name) => `${row} may import ${name}, which is not above it in the table`),
  );
}

/** Allowed imports that no file uses. */
function unusedRights(table: Table, sources: readonly Source[]): string[] {
  const used = new Set(
    sources.flatMap((source) =>
      source.imports.map(
        (specifier) => `${rowOf(source.path, table)} ${rowOf(resolveImport(source, specifier) ?? "", table)}`,
      ),
    ),
  );
  return Object.entries(table).flatMap(([row, names]) =>
    names
      .split(" ")
      .filter((name) => name !== "" && !used.has(`${row} ${name}`))
      .map((name) => `${row} no longer imports ${name}: remove it from its row`),
  );
}

describe.each<[folder: string, table: Table]>([
  ["host", ALLOWED_IMPORTS],
  ["host/agent", ALLOWED_IN_AGENT],
  ["host/controller", ALLOWED_IN_CONTROLLER],
])("imports inside %s", (folder, table) => {
  const sources = host.filter(({ path }) => path.startsWith(`${folder}/`));

  it("are declared in allowed-imports.ts", () => {
    expect(sources.length).toBeGreaterThan(30);
    expect(sources.flatMap((source) => importFaults(source, table))).toEqual([]);
  });

  it("are declared from the bottom up", () => expect(tableFaults(table)).toEqual([]));

  it("are declared only if there are any", () => expect(unusedRights(table, sources)).toEqual([]));
});

it("the house stands without the packages beside it", () => {
  const own = [...product, ...tests].filter(({ path }) => !path.startsWith("packages/"));
  const all = own.flatMap((source) => source.imports.map((name) => [source.path, resolveImport(source, name) ?? ""]));
  expect(all.filter(([, target]) => target?.startsWith("packages/"))).toEqual([]);
});

const MAX_COLUMNS = 120;

/** Lines of comments that are longer than a line of code may be. The formatter holds code to that, and no prose. */
function longComments({ path, text }: Source): string[] {
  const isLong = (line: string) => [...line].length > MAX_COLUMNS && /^\s*(?:\/?\*|\/\/)/.test(line);
  return text.split("\n").flatMap((line, index) => (isLong(line) ? [`${path}:${index + 1}: break this line`] : []));
}

it("comments fit 120 columns", () => {
  const sources = [...product, ...tests, ...readSources("assembly", ".ts"), ...readSources("native", ".c")];
  expect(sources.flatMap(longComments)).toEqual([]);
});

/** Groups of files each of which imports all others of its group, directly or not. */
function circles(sources: readonly Source[]): string[][] {
  const importsOf = new Map(
    sources.map((source) => [source.path, source.imports.flatMap((name) => resolveImport(source, name) ?? [])]),
  );
  const reached = new Map<string, ReadonlySet<string>>();
  for (const path of importsOf.keys()) {
    const seen = new Set<string>(importsOf.get(path));
    for (const each of seen) for (const next of importsOf.get(each) ?? []) seen.add(next);
    reached.set(path, seen);
  }
  const groups = Map.groupBy(
    [...reached].filter(([path, seen]) => seen.has(path)),
    ([path, seen]) =>
      [...seen]
        .filter((other) => reached.get(other)?.has(path))
        .sort()
        .join(" "),
  );
  return [...groups.values()].map((group) => group.map(([path]) => path));
}

describe("files that import one another", () => {
  it("there are none: join them, or move their common part into a third", () => expect(circles(built)).toEqual([]));

  it("are found", () => {
    const sources = [
      sourceOf("host/net/a.ts", 'import { b } from "./b.ts";'),
      sourceOf("host/net/b.ts", 'import type { c } from "./c.ts";'),
      sourceOf("host/net/c.ts", 'import { a } from "./a.ts";'),
      sourceOf("host/net/d.ts", 'import { a } from "./a.ts";'),
    ];
    expect(circles(sources)).toEqual([["host/net/a.ts", "host/net/b.ts", "host/net/c.ts"]]);
  });
});

const PURE = [/^host\/(?:net|config|plan|ipam)\//, /\/(?:plan[a-z-]*|mode|probe)\.ts$/];
const IMPURE_CODE = /\b(?:Date\.now|new Date\(\)|Math\.random|performance\.now|process\.(?:env|hrtime|pid))\b/;

function purityFaults(source: Source): string[] {
  if (!PURE.some((pattern) => pattern.test(source.path))) return [];
  const imports = source.imports.filter((specifier) => specifier.startsWith("node:"));
  const faults = imports.map((name) => `${source.path} imports ${name}: pass what it gives as an argument`);
  const found = IMPURE_CODE.exec(source.text)?.[0];
  if (found !== undefined)
    faults.push(`${source.path} uses ${found}: pass time, randomness and environment as arguments`);
  return faults;
}

it("pure folders have no I/O, no clock, no randomness", () => expect(built.flatMap(purityFaults)).toEqual([]));

it("only native.ts opens the addon", () => {
  const importers = host.filter(({ text }) => /dlopen|berth\.node/.test(text)).map(({ path }) => path);
  expect(importers).toEqual(["host/kernel/native.ts"]);
});

/** `export … from`, also over several lines, and index files. */
function reexportFaults({ path, text }: Source): string[] {
  const isBarrel = /(?:^|\/)index\.ts$/.test(path) || /^export (?:type )?(?:\*|\{)/m.test(text);
  return isBarrel ? [`${basename(path)}: ${path} exports what another file declares; import it from there`] : [];
}

/** An import of zod that makes the bundler keep all of it: error texts in 60 languages, evaluated at each start. */
const WHOLE_ZOD = /import \{[^}]*\} from "zod"/;

it("imports of zod name the namespace, so that a bundle has only used parts", () => {
  const faults = built.filter(({ text }) => WHOLE_ZOD.test(text)).map(({ path }) => path);
  expect(faults.map((path) => `${path}: write import * as z from "zod"`)).toEqual([]);
});

/** The file, and all that it loads; imports of types alone load nothing. */
function loadedWith(path: string): Set<string> {
  const loaded = new Set([path]);
  for (const each of loaded) {
    const source = host.find((file) => file.path === each);
    if (source === undefined) continue;
    const { imports } = sourceOf(each, source.text.replace(/^import type [^;]*;/gm, ""));
    for (const specifier of imports) loaded.add(resolveImport(source, specifier) ?? specifier);
  }
  return loaded;
}

it("the registry's thread loads no schemas, which would take a third of its start and of its memory", () => {
  const loaded = loadedWith("host/registry/sqlite/sqlite-worker.ts");
  expect(loaded).toContain("host/registry/sqlite/schema.ts");
  expect(loaded).not.toContain("zod");
});

describe("exports", () => {
  it("are not passed on by other files", () => expect(built.flatMap(reexportFaults)).toEqual([]));

  it("a re-export is found", () => {
    expect(reexportFaults(sourceOf("host/x/y.ts", 'export {\n  a,\n} from "./z.ts";'))).toHaveLength(1);
    expect(reexportFaults(sourceOf("host/x/y.ts", 'export * from "./z.ts";'))).toHaveLength(1);
  });

  it("have an importer in the product, or are used in their own file and in a test", () => {
    const inProduct = new Set(product.flatMap(usesOf));
    const inTests = new Set(tests.flatMap(usesOf));
    const faults = isAlone ? [] : built.flatMap((source) => exportFaults(source, inProduct, inTests));
    expect(faults).toEqual([]);
  });

  it("one without an importer is found", () => {
    const source = sourceOf(
      "host/x/y.ts",
      "export const MOST = 1;\nexport const LEAST = MOST;\nexport const a = LEAST;\nexport const b = 1;\nexport interface C {}\n",
    );
    const inTests = new Set(["MOST", "a", "C"].map((name) => `host/x/y.ts#${name}`));
    const faults = exportFaults(source, new Set(["host/x/y.ts#b"]), inTests);
    expect(faults.map((fault) => fault.split(":")[0])).toEqual(["LEAST", "a"]);
  });
});

/**
 * A type, which may describe a test's argument, or an export that its own file uses as well: a file is not divided for
 * its tests.
 */
function mayServeTests(text: string, name: string): boolean {
  const isType = new RegExp(`^export (?:interface|type) ${name}\\b`, "m").test(text);
  return isType || (text.match(new RegExp(`(?<![.\\w])${name}\\b`, "g")) ?? []).length > 1;
}

/** Generated files have all that their source has. */
function exportFaults(source: Source, inProduct: ReadonlySet<string>, inTests: ReadonlySet<string>): string[] {
  const { path, text } = source;
  const isUsed = (names: ReadonlySet<string>, name: string) => names.has(`${path}#${name}`) || names.has(`${path}#*`);
  if (text.startsWith("// Code generated by")) return [];
  return exportsOf(source)
    .filter((name) => !isUsed(inProduct, name))
    .filter((name) => !(isUsed(inTests, name) && mayServeTests(text, name)))
    .map((name) => `${name}: nothing in the product imports it from ${path}; remove it, or its export`);
}

const HEADER = /^(?:import[^;]*;\s*)*\/\*\*([\s\S]*?)\*\//;
const BY = /\bby ((?:[^.;:]|\.(?=ts\b))*)/g;

/** Files that a header names after "by" and that do not import the file. */
function callerFaults(source: Source, importers: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const header = HEADER.exec(source.text)?.[1] ?? "";
  const named = [...header.matchAll(BY)].flatMap(([, list = ""]) => list.match(/[\w-]+\.ts\b/g) ?? []);
  return named
    .filter((name) => !importers.get(source.path)?.has(name))
    .map(
      (name) =>
        `${basename(source.path)} by ${name}: ${name} does not import ${source.path}; drop callers from its header`,
    );
}

function importersOf(sources: readonly Source[]): Map<string, Set<string>> {
  const importers = new Map<string, Set<string>>();
  for (const source of sources) {
    for (const specifier of source.imports) {
      const target = resolveImport(source, specifier) ?? "";
      importers.set(target, (importers.get(target) ?? new Set()).add(basename(source.path)));
    }
  }
  return importers;
}

describe("files", () => {
  it("have no header that names a caller which does not import them", () => {
    const importers = importersOf(product);
    expect(built.flatMap((source) => callerFaults(source, importers))).toEqual([]);
  });

  it("are formatted by the formatter alone", () => {
    const found = built.filter(({ text }) => text.includes("biome-ignore format"));
    const faults = found.map(({ path }) => `${basename(path)}: ${path} suppresses the formatter; let it break lines`);
    expect(faults).toEqual([]);
  });

  it("do not stand beside a folder of their name", () => {
    const beside = built.filter(({ path }) => existsSync(join(root, path.replace(/\.ts$/, ""))));
    const faults = beside.map(({ path }) => `${path}: move it into the folder of its name, or join the two`);
    expect(faults).toEqual([]);
  });

  it("are not alone in their folder", () => {
    const folders = [...new Set(host.map(({ path }) => path.slice(0, path.lastIndexOf("/"))))];
    const alone = folders.filter((folder) => readdirSync(join(root, folder)).length === 1);
    expect(alone.map((folder) => `${folder}: a folder of one file; move the file up`)).toEqual([]);
  });

  it("have no loose ends", () => {
    const marks = new RegExp(["TO", "DO|FIX", "ME|XX", "X"].join(""));
    const others = [...readSources("assembly", ".ts"), ...readSources("native", ".c")];
    const loose = [...product, ...tests, ...others].filter(({ text }) => marks.test(text)).map(({ path }) => path);
    expect(loose).toEqual([]);
  });
});

/** From here on a file is worth a question, but not a failure: code is divided by idea, not by count. */
const LONG_FILE_LINES = 400;

for (const { path, lines } of [...product, ...tests])
  if (lines > LONG_FILE_LINES && !path.includes("/abi."))
    console.warn(`${path} has ${lines} lines: does it hold one idea?`);

/** Reads of a whole file, but for open ones and files of this release. */
const BARE_READ =
  /\breadFileSync\((?!fd\b|0,|SHIMS\b|fileURLToPath\()|\bimport \{.*\breadFile\b|\.promises\.readFile\b/;

/** Lines that read a file without a look at its kind and size. */
function bareReads({ path, text }: Source): string[] {
  return text
    .split("\n")
    .flatMap((line, index) => (BARE_READ.test(line) ? [`${path}:${index + 1}: use lib/regular-file.ts`] : []));
}

describe("files from outside", () => {
  it("are read where a pipe, a device or an endless file is refused", () => {
    expect(built.flatMap(bareReads)).toEqual([]);
  });

  it("are found where they are not", () => {
    const text =
      'readFileSync(path, "utf8");\nimport { readFile } from "node:fs/promises";\nreadFileSync(0);\nreadFileSync(fd, "utf8")';
    expect(bareReads(sourceOf("host/a.ts", text)).length).toBe(3);
  });
});
