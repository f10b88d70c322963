/**
 * Suites that the gate leaves out when their subjects have not changed since it was last green: `uml`, and the
 * packages' beyond the specification. The long run has all of them, and so has the first run in a clone.
 */
import { globSync } from "node:fs";
import { basename } from "node:path";
import { readSources, resolveImport, root } from "../test/unit/house/sources.ts";

/** Beginnings of paths. */
export interface Suite {
  readonly name: string;
  readonly tests: readonly string[];
  /** The judged files. The suite depends on these, on its tests, and on their imports. */
  readonly judges: readonly string[];
}

/** Its unit tests are quick, and run always. */
const suiteOf = (folder: string): Suite => ({
  name: basename(folder),
  tests: globSync(`${folder}/test/{cluster,e2e,property}`, { cwd: root }).map((path) => `${path}/`),
  judges: [`${folder}/`],
});

export const SUITES: readonly Suite[] = [
  {
    name: "uml",
    tests: ["test/uml/"],
    judges: ["host/kernel/", "host/plan/", "host/ifacer/", "host/coordinator/", "native/", "scripts/uml"],
  },
  ...globSync("packages/*", { cwd: root }).sort().map(suiteOf),
  {
    name: "embeddings",
    tests: ["test/embeddings/"],
    judges: ["assembly/", "embeddings/", "host/core/", "test/vectors/core/"],
  },
];

/** The basis of all tests, which no import shows. */
const ALWAYS = ["package.json", "package-lock.json", "vitest.config.ts", "scripts/setup", "scripts/reference/"];

/** Files by their imports. */
export type Imports = ReadonlyMap<string, readonly string[]>;

export function readImports(): Imports {
  const sources = ["host", "packages", "scripts", "test"].flatMap((folder) => readSources(folder, ".ts"));
  return new Map(sources.map((each) => [each.path, each.imports.flatMap((name) => resolveImport(each, name) ?? [])]));
}

/**
 * The environments of the tests import the whole product, to run it: there the imports of tests end. A suite names the
 * files that it judges.
 */
const isFollowed = (from: string, to: string): boolean => !(/(?:^|\/)test\//.test(from) && to.startsWith("host/"));

const isBelow = (path: string, beginnings: readonly string[]): boolean =>
  beginnings.some((each) => path.startsWith(each));

function looksAt({ tests, judges }: Suite, changed: readonly string[], imports: Imports): boolean {
  const own = [...tests, ...judges];
  const seen = new Set([...imports.keys()].filter((path) => isBelow(path, own)));
  for (const path of seen) for (const next of imports.get(path) ?? []) if (isFollowed(path, next)) seen.add(next);
  return changed.some((path) => seen.has(path) || isBelow(path, [...own, ...ALWAYS]));
}

/** Returns the suites that look at none of the changed files; none if those are not known. */
export function findIdle(changed: readonly string[] | undefined, imports: Imports): Suite[] {
  return changed === undefined ? [] : SUITES.filter((suite) => !looksAt(suite, changed, imports));
}
