/** The page docs/develop/oracles.md says what was measured, of every fault. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Measured, oraclesPage } from "../../oracles/page.ts";
import { FAULTS } from "../../simulation/faults/faults.ts";
import { FINDING_NAMES } from "../../simulation/open-findings.ts";
import { root } from "./sources.ts";

const read = (name: string): Measured => JSON.parse(readFileSync(join(root, "test/oracles", name), "utf8"));
const measured = read("measured.json");

it("is what `npm run oracles` has written", () => {
  expect(readFileSync(join(root, "docs/develop/oracles.md"), "utf8")).toBe(oraclesPage(measured, read("fixed.json")));
});

it("has each fault with an oracle that notices it", () => {
  const names = [...FINDING_NAMES, ...Object.keys(FAULTS)];
  const unnoticed = names.filter((name) => !Object.values(measured[name] ?? {}).some((notice) => notice !== null));
  expect(unnoticed).toEqual([]);
  expect(Object.keys(measured)).toEqual(names);
});
