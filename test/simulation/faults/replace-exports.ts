/** Replaces exports of the product's modules while they are loaded. The product has no switches for faults. */
import { existsSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../unit/house/sources.ts";

/** Replacements by the name of the export. */
type Replacements = Readonly<Record<string, (original: never) => unknown>>;

export interface ReplacedModule {
  /** Relative to the project's root. */
  readonly file: string;
  readonly exports: Replacements;
}

/** `M` is the type of the module. Its own uses of its exports are not replaced. */
export function replace<M>(
  file: string,
  exports: { readonly [K in keyof M]?: (original: M[K]) => M[K] },
): ReplacedModule {
  return { file, exports: exports as Replacements };
}

const KEY = "berth.replaced";
const ORIGINAL = "?original.ts";

/** Modules that are loaded from now on have the replacements. Returns those that have been loaded, as that happens. */
export function replaceExports(modules: readonly ReplacedModule[]): ReadonlySet<ReplacedModule> {
  const byUrl = new Map(modules.map(({ file, exports }) => [pathToFileURL(join(root, file)).href, exports]));
  for (const { file } of modules) if (!existsSync(join(root, file))) throw new Error(`There is no module ${file}`);
  Object.assign(globalThis, { [Symbol.for(KEY)]: byUrl });
  const loaded = new Set<ReplacedModule>();
  registerHooks({
    load: (url, context, nextLoad) => {
      const exports = byUrl.get(url);
      if (exports === undefined) return nextLoad(url, context);
      for (const each of modules) if (each.exports === exports) loaded.add(each);
      return { format: "module", shortCircuit: true, source: moduleInPlaceOf(url, Object.keys(exports)) };
    },
  });
  return loaded;
}

function moduleInPlaceOf(url: string, names: readonly string[]): string {
  const original = JSON.stringify(url + ORIGINAL);
  return [
    `import * as original from ${original};`,
    `export * from ${original};`,
    `const replacements = globalThis[Symbol.for("${KEY}")].get("${url}");`,
    ...names.map((name) => `export const ${name} = replacements.${name}(original.${name});`),
  ].join("\n");
}
