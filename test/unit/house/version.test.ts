import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { VERSION } from "../../../host/bin/version.ts";
import manifest from "../../../package.json" with { type: "json" };
import lock from "../../../package-lock.json" with { type: "json" };

const HEADING = /^## (\d+\.\d+\.\d+), (\d{4}-\d{2}-\d{2})$/;

/** The headings of releases, the newest first. */
const headings = readFileSync("CHANGELOG.md", "utf8")
  .split("\n")
  .filter((line) => line.startsWith("## "));

it("each section of the changelog is a release with its date, the newest first", () => {
  for (const heading of headings) expect(heading).toMatch(HEADING);
  const dates = headings.map((heading) => HEADING.exec(heading)?.[2] ?? "");
  expect(dates).toEqual(dates.toSorted().reverse());
});

it("the newest release of the changelog is the version that every program prints", () => {
  const newest = HEADING.exec(headings[0] ?? "")?.[1];
  const shim = /^#define BERTH_VERSION "(.+)"$/m.exec(readFileSync("native/version.h", "utf8"))?.[1];
  const stated = { "package.json": manifest.version, VERSION, "native/version.h": shim };
  const locked = { "package-lock.json": lock.version, "package-lock.json, packages": lock.packages[""].version };
  for (const [where, version] of Object.entries({ ...stated, ...locked })) expect(version, where).toBe(newest);
});
