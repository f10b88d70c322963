/** The project's own sources as the structure tests read them: paths, lines, imports, exports. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");

/** Whether the house stands alone, without the packages beside it. */
export const isAlone = !existsSync(join(root, "packages"));

/** Returns all files of the project that git does not ignore, and that are there. */
export function listTracked(): string[] {
  const listing = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  return listing.split("\n").filter((path) => path !== "" && existsSync(join(root, path)));
}

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

export function sourceOf(path: string, text: string): Source {
  return { path, text, lines: text.split("\n").length - 1, imports: importsOf(text) };
}

/** Folders of installed or built files. */
const FOREIGN = /(?:^|\/)(?:node_modules|dist|target|build)\//;

/** Returns all files below `folder` whose name ends so; none if it is not there. */
export function readSources(folder: string, ending: string): Source[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending) && !FOREIGN.test(name))
    .map((name) => join(root, folder, name))
    .filter((path) => statSync(path).isFile())
    .sort()
    .map((path) => sourceOf(relative(root, path), readFileSync(path, "utf8")));
}

/** Returns the path, relative to the root, that a relative import of `source` names; undefined for packages. */
export function resolveImport(source: Source, specifier: string): string | undefined {
  return specifier.startsWith(".") ? normalize(join(dirname(source.path), specifier)) : undefined;
}

const EXPORT =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;

/** Returns the names that the file declares and exports, in its order. */
export function exportsOf({ text }: Source): string[] {
  return [...text.matchAll(EXPORT)].map(([, name = ""]) => name);
}

const NAMED_IMPORT = /(?:^|\n)\s*(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s+from\s+"([^"]+)"/g;

/** Every name that a file takes from another, as `path#name`; `path#*` for all of them. */
export function usesOf(source: Source): string[] {
  const named = [...source.text.matchAll(NAMED_IMPORT)].flatMap(([, list = "", specifier = ""]) => {
    const target = resolveImport(source, specifier);
    if (target === undefined) return [];
    if (list.startsWith("*")) return [`${target}#*`];
    const words = list.slice(1, -1).split(",");
    const names = words.map((each) => /^(?:type )?([^ ]*)/.exec(each.trim())?.[1] ?? "");
    return names.filter((name) => name !== "").map((name) => `${target}#${name}`);
  });
  const dynamic = [...source.text.matchAll(/\bimport\("([^"]+)"\)/g)].flatMap(([, specifier = ""]) => {
    const target = resolveImport(source, specifier);
    return target === undefined ? [] : [`${target}#*`];
  });
  return [...named, ...dynamic];
}
