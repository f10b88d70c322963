/** The man pages, formatted by groff, which warns of what it does not understand. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { manPages } from "../../../scripts/generate/pages/man-pages.ts";
import { roffOf } from "../../../scripts/generate/pages/roff.ts";

const PAGES = manPages().filter(({ text }) => !text.startsWith(".so"));

const PROGRAM = /NAME(?:.|\n)*SYNOPSIS(?:.|\n)*DESCRIPTION(?:.|\n)*OPTIONS(?:.|\n)*EXIT STATUS/;
const OTHER = /NAME(?:.|\n)*DESCRIPTION(?:.|\n)*SEE ALSO/;

it.each(PAGES.map(({ name, text }) => [name, text] as const))("%s has no warnings", (name, text) => {
  const format = ["-man", "-Tutf8", "-ww", "-rCHECKSTYLE=3", "-P-cbou"];
  const { stdout, stderr, status } = spawnSync("groff", format, { input: text, encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  const wanted = name.endsWith(".1") || name.endsWith(".8") ? PROGRAM : OTHER;
  expect(stdout).toMatch(wanted);
});

it("there is one for each program, each command of berthctl and each format of files", () => {
  const names = PAGES.map(({ name }) => name);
  const programs = ["man1/berthctl.1", "man8/berth-agent.8", "man8/berth-controller.8", "man7/berth.7"];
  const commands = ["pools", "release", "completion"].map((name) => `man1/berthctl-${name}.1`);
  const formats = ["resources", "annotations", "audit"].map((name) => `man5/berth-${name}.5`);
  expect(names).toEqual(expect.arrayContaining([...programs, ...commands, ...formats]));
});

it("a page of the repository keeps its tables, lists and examples", () => {
  expect(
    roffOf(
      "# Title\n\nSee [it](it.md) and `x-y`\n\n| A | B | C |\n|---|---|---|\n| `a\\|b` | 1 | one |\n\n* first\n  of all\n\n```sh\nls\n.x\n```\n### More\n",
    ),
  ).toEqual([
    ...[".PP", "See it and x\\-y", ".TP", ".B a|b", "B: 1. one", ".IP \\(bu 2", "first of all"],
    ...[".PP", ".nf", "ls", "\\&.x", ".fi", '.SS "More"'],
  ]);
});
