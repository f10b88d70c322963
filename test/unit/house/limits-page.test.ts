import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { expectCommitted } from "./committed-page.ts";

const INTRODUCTION = `# Limits

Every limit is a named constant in \`host/<folder>/limits.ts\`, the shim's in \`native/limits.h\`; this page is written from them
(\`UPDATE_VECTORS=1 vitest run --project unit test/unit/house\`).
`;

/** A doc comment of one or more lines right above an exported constant. */
const LIMIT = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport const (\w+)/g;

async function sectionOf(path: string): Promise<string> {
  const values: Record<string, unknown> = await import(resolve(path));
  const explained = new Map<string, string>();
  for (const [, comment = "", name = ""] of readFileSync(path, "utf8").matchAll(LIMIT)) {
    explained.set(name, comment.replace(/\n \*/g, "").trim());
  }
  const rows = Object.entries(values).map(([name, value]) => {
    expect(explained.get(name), `${path}: explain ${name} in a doc comment right above it`).toBeDefined();
    expect(typeof value, `${path}: ${name}`).toBe("number");
    return {
      name,
      order: [...explained.keys()].indexOf(name),
      text: `| \`${name}\` | ${Number(value).toLocaleString("en-US")} | ${explained.get(name)} |`,
    };
  });
  const sorted = rows.sort((a, b) => a.order - b.order).map(({ text }) => text);
  return [`\n## ${path.split("/")[1]}\n`, "| Constant | Value | Meaning |", "|---|---|---|", ...sorted, ""].join("\n");
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
  const paths = globSync("host/*/limits.ts").sort();
  expect(paths).toContain("host/config/limits.ts");
  const sections = await Promise.all(paths.map(sectionOf));
  expectCommitted("docs/limits.md", INTRODUCTION + sections.join("") + shimSection());
});
