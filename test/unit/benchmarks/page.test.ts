import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { benches } from "../../../benchmarks/benches.ts";
import { root } from "../../../scripts/setup/paths.mjs";

const page = readFileSync(join(root, "benchmarks", "README.md"), "utf8");
const sections = [...page.matchAll(/^<!-- begin (\w+) -->\n((?:.*\n)*?)<!-- end \1 -->$/gm)];

test("each benchmark has a section, and each section a benchmark", () => {
  expect(sections.map(([, name]) => name)).toEqual(benches.map(({ name }) => name));
});

test.each(sections.map(([, name, text]) => [name, text]))("the tables of %s are of a commit and a day", (_, text) => {
  expect(text).toMatch(/^\|/m);
  expect(text).toMatch(/^Measured on .*, commit [0-9a-f]{7,}(?: with changes)?, \d{4}-\d\d-\d\d\.$/m);
});
