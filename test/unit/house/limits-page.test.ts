import { globSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { expectCommitted } from "./committed-page.ts";

const INTRODUCTION = `# Limits

Every limit is a constant that stands in the file that uses it, marked with \`@limit\` in its doc comment; the shim's are in \`native/limits.h\`. This page is
generated from them.
`;

/** A doc comment of one or more lines that ends in the tag, right above an exported constant. */
const LIMIT = /\/\*\*((?:(?!\*\/)[\s\S])*?)\s*(?:\* )?@limit\s*\*\/\nexport const (\w+)(?:: number)? = ([^;]+);/g;

const ARITHMETIC = /^[\d_\s*+()-]+$/;

/** The rows of one file, in its order. A value that refers to others is had from the module. */
async function rowsOf(path: string): Promise<string[]> {
  const rows: string[] = [];
  for (const [, comment = "", name = "", expression = ""] of readFileSync(path, "utf8").matchAll(LIMIT)) {
    const value = ARITHMETIC.test(expression)
      ? new Function(`return ${expression}`)()
      : (await import(resolve(path)))[name];
    expect(typeof value, `${path}: ${name}`).toBe("number");
    rows.push(`| \`${name}\` | ${value.toLocaleString("en-US")} | ${comment.replace(/\n \*/g, "").trim()} |`);
  }
  return rows;
}

async function sectionOf(folder: string): Promise<string> {
  const paths = globSync(`host/${folder}/**/*.ts`).sort();
  const rows = (await Promise.all(paths.map(rowsOf))).flat();
  return rows.length === 0
    ? ""
    : [`\n## ${folder}\n`, "| Constant | Value | Meaning |", "|---|---|---|", ...rows, ""].join("\n");
}

/** The shim's: a comment, then the definition as a plain number. */
const DEFINITION = /\/\* ((?:(?!\*\/)[\s\S])*) \*\/\n#define (\w+) (\d+)\n/g;

function shimSection(): string {
  const text = readFileSync("native/limits.h", "utf8");
  const rows = [...text.matchAll(DEFINITION)].map(
    ([, comment, name, value]) => `| \`${name}\` | ${Number(value).toLocaleString("en-US")} | ${comment} |`,
  );
  expect(rows, "native/limits.h: a comment and a plain number for each").toHaveLength(
    text.match(/#define \w+ /g)?.length ?? 0,
  );
  return ["\n## shim (C)\n", "| Constant | Value | Meaning |", "|---|---|---|", ...rows, ""].join("\n");
}

it("docs/limits.md has every limit with its value and its meaning", async () => {
  const sections = await Promise.all(readdirSync("host").sort().map(sectionOf));
  expect(sections.join("")).toContain("MAX_POD_NICS");
  expectCommitted("docs/limits.md", INTRODUCTION + sections.join("") + shimSection());
});
