/**
 * The project's own sources as the house rules see them: paths, lines, imports.
 * Called by the tests beside this file.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");

export interface Source {
  /** Relative to the project's root. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** As written, in the order of the file; type imports too. */
  readonly imports: readonly string[];
}

const IMPORT = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|\bimport\("([^"]+)"\)|(?:^|\n)import\s+"([^"]+)"/g;

function importsOf(text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}

/** All files below `folder` whose name ends so. */
export function readSources(folder: string, ending: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(root, folder, name))
    .filter((path) => path.endsWith(ending) && statSync(path).isFile())
    .sort()
    .map((path) => {
      const text = readFileSync(path, "utf8");
      return { path: relative(root, path), text, lines: text.split("\n").length - 1, imports: importsOf(text) };
    });
}

/** The path, relative to the root, that a relative import of `source` names; undefined for packages. */
export function resolveImport(source: Source, specifier: string): string | undefined {
  return specifier.startsWith(".") ? join(dirname(source.path), specifier) : undefined;
}
