/**
 * `npm run mutate`: mutation testing of the modules that decide (docs/mutation.md), group by group, with the unit tests. `--only TEXT`, once or
 * more: only modules whose path has such a text. `--property`: the property tests run instead, for what survived the unit tests. `--page`: writes the page
 * from what both have found.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { GROUPS, type Group } from "./modules.ts";
import { mergeReports, pageWith, type Report, survivorRanges, withoutSurvivedTests } from "./report.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [""] },
    property: { type: "boolean" },
    page: { type: "boolean" },
  },
});

const level = values.property ? "property" : "unit";
const pathOf = (level: "unit" | "property"): string => `node_modules/.cache/mutation-${level}.json`;

function read(level: "unit" | "property"): Report {
  const path = pathOf(level);
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { files: {} };
}

function wantedModules({ modules }: Group): string[] {
  return globSync([...modules]).filter((file) => values.only.some((text) => file.includes(text)));
}

/** Returns false if StrykerJS failed. */
function measure(group: Group): boolean {
  const { unit, property } = group;
  const files = wantedModules(group);
  const mutate = values.property ? survivorRanges(read("unit"), new Set(files)) : files;
  if (mutate.length === 0) return true;
  if (existsSync(pathOf(level))) writeFileSync(pathOf(level), JSON.stringify(withoutSurvivedTests(read(level))));
  const { status } = spawnSync(
    "node_modules/.bin/stryker",
    ["run", "test/mutation/stryker.config.mjs", "--mutate", mutate.join(",")],
    {
      stdio: "inherit",
      env: {
        ...process.env,
        BERTH_MUTATE: level,
        BERTH_MUTATE_TESTS: globSync([...(values.property ? property : unit)]).join(","),
      },
    },
  );
  return status === 0;
}

if (values.page) {
  const path = "docs/mutation.md";
  writeFileSync(path, pageWith(readFileSync(path, "utf8"), mergeReports(read("unit"), read("property"))));
} else {
  const groups = GROUPS.filter((group) => wantedModules(group).length > 0);
  const failed = groups.filter((group) => !measure(group));
  if (groups.length === 0 || failed.length > 0) process.exitCode = 1;
}
