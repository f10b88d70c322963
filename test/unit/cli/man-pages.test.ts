/** The man pages, formatted by groff, which warns of what it does not understand. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { manPages } from "../../../scripts/generate/pages/berthctl.ts";

const PAGES = manPages().filter(({ text }) => !text.startsWith(".so"));

it.each(PAGES.map(({ name, text }) => [name, text] as const))("%s has no warnings", (_, text) => {
  const format = ["-man", "-Tutf8", "-ww", "-rCHECKSTYLE=3", "-P-cbou"];
  const { stdout, stderr, status } = spawnSync("groff", format, { input: text, encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/NAME(?:.|\n)*SYNOPSIS(?:.|\n)*DESCRIPTION(?:.|\n)*OPTIONS(?:.|\n)*EXIT STATUS/);
});

it("there is one for each command", () => {
  const names = PAGES.map(({ name }) => name);
  for (const name of ["berthctl", "berthctl-pools", "berthctl-release", "berthctl-completion"])
    expect(names).toContain(`${name}.1`);
});
