import { expect, it } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { linkOf, pageOf, readGroups } from "../../../scripts/docs/site-pages.ts";

it.each([
  ["docs/README.md", "index.md"],
  ["docs/decisions/README.md", "decisions/index.md"],
  ["SECURITY.md", "project/security.md"],
  ["test/lab/README.md", "test/lab/index.md"],
])("%s is the page %s", (file, page) => expect(pageOf(file)).toBe(page));

const HOME = manifest.homepage;

it.each([
  ["docs/chart.md", "host.md#firewalld", "/host.md#firewalld"],
  ["docs/chart.md", "../README.md", "/project/readme.md"],
  ["docs/README.md", "decisions/README.md", "/decisions/index.md"],
  ["README.md", "deploy/examples", "/deploy/examples/index.md"],
  ["docs/chart.md", "../deploy/chart/berth/values.yaml", `${HOME}/deploy/chart/berth/values.yaml`],
  ["docs/chart.md", "../scripts/chart/chart.md", `${HOME}/scripts/chart/chart.md`],
  ["docs/chart.md", "#values", "#values"],
  ["docs/chart.md", "https://example.com/a.md", "https://example.com/a.md"],
])("in %s the link %s leads to %s", (from, href, wanted) => expect(linkOf(href, from)).toBe(wanted));

it("groups are those of docs/README.md, with the titles of their pages", () => {
  const groups = readGroups();
  expect(groups.map(({ text }) => text)).toEqual(["Start", "Do", "Look up", "Understand", "For developers"]);
  expect(groups[0]?.items[0]).toEqual({ text: "Getting started", link: "/getting-started.md" });
  for (const { text, link } of groups.flatMap(({ items }) => items)) expect(text, link).not.toBe("");
});
