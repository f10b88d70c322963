/** Each symptom of docs/troubleshooting.md is produced by one test, and each such test has its symptom. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";
import { readSymptoms } from "../../e2e/symptoms/page.ts";

const FOLDER = "test/e2e/symptoms";

it("every symptom has one test", () => {
  const names = readdirSync(join(root, FOLDER)).map((name) => `${FOLDER}/${name}`);
  const files = [...names.filter((name) => name.endsWith(".test.ts")), "test/cluster/symptoms.test.ts"];
  const titles = files.flatMap((file) =>
    [...readFileSync(join(root, file), "utf8").matchAll(/^(?:symptom|refused)\(\s*"(.+?)",/gm)].map(
      ([, title]) => title,
    ),
  );
  expect(titles.sort()).toEqual([...readSymptoms().keys()].sort());
});

it("every symptom names its cause and a fix", () => {
  const page = readFileSync(join(root, "docs", "troubleshooting.md"), "utf8");
  const sections = page.split(/^### /m).slice(1);
  const poor = sections.filter((section) => !/^\*\*Cause\.\*\* .+^\*\*Fix\.\*\* .+/ms.test(section));
  expect(poor).toEqual([]);
  expect(sections.length).toBeGreaterThanOrEqual(30);
});
