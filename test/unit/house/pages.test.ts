/** Each block of commands on a page for users is executed, or the table says why not. */
import { expect, it } from "vitest";
import { findBlocks, findPart, listPages, readBlocks } from "../../e2e/pages/script.ts";
import { PARTS } from "../../e2e/pages/table.ts";

const BLOCKS = listPages().flatMap((page) => readBlocks(page).map((block) => ({ page, ...block })));

it("every block of commands has a row", () => {
  const unlisted = BLOCKS.filter(({ page, section }) => findPart(page, section) === undefined);
  expect(unlisted.map(({ page, line }) => `${page}:${line} needs a row in test/e2e/pages/table.ts`)).toEqual([]);
});

it("every row has a block", () => {
  const used = new Set(BLOCKS.map(({ page, section }) => findPart(page, section)));
  expect(PARTS.filter((part) => !used.has(part))).toEqual([]);
});

it("blocks are found with their sections and lines", () => {
  const text = "# Page\n```\nno\n```\n## One\n```sh\na\n# b\n```\n```json\n{}\n```\ntext\n```sh\nc\n```\n";
  expect(findBlocks(text)).toEqual([
    { section: "One", line: 7, lines: ["a", "# b"] },
    { section: "One", line: 15, lines: ["c"] },
  ]);
});
