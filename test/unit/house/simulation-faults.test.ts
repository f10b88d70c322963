/** The faults of `npm run simulate:faults` fit the sources: each edit's text occurs exactly once, and the page has a row for each fault. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { applyEdit } from "../../simulation/faults/fault.ts";
import { FAULTS, TESTED_FAULTS } from "../../simulation/faults/faults.ts";
import { PAGE, rowNamesOf } from "../../simulation/faults/table.ts";
import { root } from "./sources.ts";

const ALL = [...FAULTS, ...TESTED_FAULTS];

it.for(ALL.map((fault) => [fault.name, fault] as const))("%s", ([, { edits }]) => {
  const texts = new Map<string, string>();
  for (const edit of edits) {
    const before = texts.get(edit.file) ?? readFileSync(join(root, edit.file), "utf8");
    const after = applyEdit(before, edit);
    expect(after).not.toBe(before);
    texts.set(edit.file, after);
  }
});

it("the page has a row for each", () => {
  expect(rowNamesOf(readFileSync(join(root, PAGE), "utf8"))).toEqual(ALL.map(({ name }) => name));
});
