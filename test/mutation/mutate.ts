/**
 * `npm run mutate`: mutation testing of the modules that decide (docs/mutation.md), with the unit tests. `--mutate FILES`: only these, as patterns with
 * commas; `--tests FILES`: with these tests. `--property`: the property tests run instead, for what survived the unit tests. `--page`: writes the page from what both have found.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { mergeReports, pageWith, type Report, survivorRanges } from "./report.ts";

const { values } = parseArgs({
  options: {
    mutate: { type: "string" },
    tests: { type: "string" },
    property: { type: "boolean" },
    page: { type: "boolean" },
  },
});

function read(level: "unit" | "property"): Report {
  const path = `node_modules/.cache/mutation-${level}.json`;
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { files: {} };
}

if (values.page) {
  const path = "docs/mutation.md";
  writeFileSync(path, pageWith(readFileSync(path, "utf8"), mergeReports(read("unit"), read("property"))));
} else {
  const files = values.mutate ?? (values.property ? survivorRanges(read("unit")).join(",") : undefined);
  const environment = {
    ...(values.property ? { BERTH_MUTATE: "property" } : {}),
    ...(values.tests === undefined ? {} : { BERTH_MUTATE_TESTS: values.tests }),
  };
  const { status } = spawnSync(
    "node_modules/.bin/stryker",
    ["run", "test/mutation/stryker.config.mjs", ...(files === undefined ? [] : ["--mutate", files])],
    { stdio: "inherit", env: { ...process.env, ...environment } },
  );
  process.exitCode = status ?? 1;
}
