/** The page docs/limits.md, from the constants marked `@limit` in host/, packages/ and native/shim-limits.h. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../setup/paths.mjs";

const INTRODUCTION = `# Limits

What a user or an operator can reach, as constants of the code. \`_MS\` stands for milliseconds, \`_BYTES\` for bytes. Those of the core:
[wasm-abi.md](develop/wasm-abi.md#ceilings).
`;

/** A doc comment of one or more lines that ends in the tag, right above a constant. */
const LIMIT = /\/\*\*((?:(?!\*\/)[\s\S])*?)\s*(?:\* )?@limit\s*\*\/\n(export )?const (\w+)(?:: number)? = ([^;]+);/g;

const ARITHMETIC = /^[\d_\s*+()-]+$/;

interface Limit {
  readonly name: string;
  readonly value: number;
  readonly doc: string;
}

/**
 * Returns the limits of one file, in its order. A value that refers to other constants is read from the imported
 * module.
 */
async function limitsOf(path: string): Promise<Limit[]> {
  const limits: Limit[] = [];
  for (const [, comment = "", exported, name = "", expression = ""] of readFileSync(path, "utf8").matchAll(LIMIT)) {
    const isArithmetic = ARITHMETIC.test(expression);
    if (!isArithmetic && exported === undefined)
      throw new Error(`${path}: export ${name}, or write its value in digits`);
    const value = isArithmetic
      ? new Function(`return ${expression}`)()
      : (await import(pathToFileURL(path).href))[name];
    if (typeof value !== "number") throw new Error(`${path}: ${name} is not a number`);
    limits.push({ name, value, doc: comment.replace(/\n \*/g, "").trim() });
  }
  return limits;
}

/** Returns the limited thing, with the unit unless the name has it; further reasons are for readers of the code. */
function meaningOf({ name, doc }: Limit): string {
  const firstSentence = /^.*?\.(?=\s|$)/s.exec(doc)?.[0] ?? doc;
  if (name.endsWith("_MS")) return firstSentence.replace(/: milliseconds(?=[.,])/, "");
  return name.endsWith("_BYTES") ? firstSentence.replace(/: bytes(?=[.,])/, "") : firstSentence;
}

function section(title: string, limits: readonly Limit[]): string {
  if (limits.length === 0) return "";
  const rows = limits.map(
    (limit) => `| \`${limit.name}\` | ${limit.value.toLocaleString("en-US")} | ${meaningOf(limit)} |`,
  );
  return [`| **${title}** | | |`, ...rows, ""].join("\n");
}

async function folderSection(path: string): Promise<string> {
  const paths = globSync(join(root, path, "**/*.ts")).sort();
  return section(basename(path), (await Promise.all(paths.map(limitsOf))).flat());
}

/** A comment that ends in the tag, then the definition as a plain number. */
const DEFINITION = /\/\*\s((?:(?!\*\/)[\s\S])*?)\s*(?:\* )?@limit\s*\*\/\n#define (\w+) (\d+)\n/g;

function shimSection(): string {
  const text = readFileSync(join(root, "native", "shim-limits.h"), "utf8");
  const limits = [...text.matchAll(DEFINITION)].map(([, doc = "", name = "", value]) => {
    return { name, value: Number(value), doc: doc.replace(/^ \* /gm, "") };
  });
  if (limits.length !== text.match(/@limit/g)?.length)
    throw new Error("native/shim-limits.h: each @limit needs a plain number below its comment");
  return section("shim (C)", limits);
}

export async function limitsPage(): Promise<string> {
  const sections = await Promise.all(globSync(["host/*", "packages/*"], { cwd: root }).sort().map(folderSection));
  return `${INTRODUCTION}\n| Constant | Value | Meaning |\n|---|---|---|\n${sections.join("")}${shimSection()}`;
}
