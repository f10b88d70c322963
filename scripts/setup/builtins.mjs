/**
 * Bundles take functions of Node.js from `process.getBuiltinModule` instead of importing them: an import reads all properties of the module, and some of
 * these load others, such as the whole of WebCrypto, or the line editor of the REPL behind the promises of node:fs.
 */

/** An import of a module of Node.js as esbuild writes it without blanks. */
const IMPORT = /(?<=^|[;}\n])import(\{[^}]*\}|\*as [\w$]+ | [\w$]+ )from"(node:[\w/]+)";/gm;

/** They load no others, and are imported before the version of Node.js is known, which may lack `getBuiltinModule`. */
const STAY = ["node:module", "node:path", "node:url"];

/** Returns the bundle with such imports as constants at its begin, behind the line that names its interpreter: they are there before anything runs. */
export function bindBuiltins(text) {
  const constants = [];
  const rest = text.replace(IMPORT, (whole, names, name) => {
    if (STAY.includes(name)) return whole;
    const target = names.startsWith("{") ? names.replace(/([\w$]+) as ([\w$]+)/g, "$1:$2") : names.replace("*as", "");
    constants.push(`const${target}=globalThis.process.getBuiltinModule("${name}");`);
    return "";
  });
  const start = rest.startsWith("#!") ? rest.indexOf("\n") + 1 : 0;
  return `${rest.slice(0, start)}${constants.join("")}${rest.slice(start)}`;
}
