import { globSync } from "node:fs";
import { expect, it } from "vitest";
import { root } from "../../../scripts/setup/paths.mjs";
import { findIdle, type Imports, readImports, SUITES } from "../../../scripts/suites.ts";

const names = SUITES.map(({ name }) => name);
const imports: Imports = new Map([
  ["packages/map/test/e2e/map.test.ts", ["test/lab/browser.ts"]],
  ["test/lab/browser.ts", ["host/agent/agent.ts", "scripts/chart/helm.ts"]],
  ["packages/map/server/server.ts", ["host/metrics/port.ts"]],
  ["host/metrics/port.ts", ["host/lib/address.ts"]],
  ["host/kernel/links.ts", ["host/lib/address.ts"]],
]);

it.each<[when: string, changed: string[] | undefined, runs: string[]]>([
  ["it is not known what has changed", undefined, names],
  ["nothing has changed", [], []],
  ["a page has changed", ["docs/map.md", "test/long/last-run.json"], []],
  ["a test of the suite has changed", ["packages/map/test/e2e/map-page.test.ts"], ["map"]],
  ["a file beside its tests has changed", ["test/uml/notes.md"], ["uml"]],
  ["a file that its test imports has changed", ["test/lab/browser.ts"], ["map"]],
  ["a script that an import of its test imports has changed", ["scripts/chart/helm.ts"], ["map"]],
  ["the product that its environment imports has changed", ["host/agent/agent.ts"], []],
  ["what it judges has changed", ["packages/map/page/map.css"], ["map"]],
  ["a deleted or new file is among what it judges", ["native/gone.c"], ["uml"]],
  ["what it judges imports a changed file", ["host/metrics/port.ts"], ["map"]],
  ["what two suites judge imports it", ["host/lib/address.ts"], ["uml", "map"]],
  ["a package or the set-up has changed", ["scripts/setup/go.mjs"], names],
])("when %s", (_, changed, runs) => {
  const idle = findIdle(changed, imports).map(({ name }) => name);
  expect(names.filter((name) => !idle.includes(name))).toEqual(runs.filter((name) => names.includes(name)));
});

it("every beginning of a path is one of files", () => {
  const beginnings = SUITES.flatMap(({ tests, judges }) => [...tests, ...judges]);
  expect(beginnings.filter((each) => globSync(`${each}*`, { cwd: root }).length === 0)).toEqual([]);
});

it("imports are found: blocks stand on this file", () =>
  expect(findIdle(["host/net/prefix.ts"], readImports()).map(({ name }) => name)).not.toContain("blocks"));
