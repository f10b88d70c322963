import { readFileSync } from "node:fs";
import { join, matchesGlob } from "node:path";
import { describe, expect, it } from "vitest";
import { ABI } from "../../../scripts/generate/abi-description.ts";
import { builtBindings } from "../../../scripts/generate/built-bindings.ts";
import { generatedJson, generatedSections, generatedTexts } from "../../../scripts/generate/generated-files.ts";
import { HEADER } from "../../../scripts/generate/generated-text.ts";
import { packageVersions } from "../../../scripts/generate/package-versions.ts";
import { isAlone, listTracked, root } from "./sources.ts";

const texts = await generatedTexts();
const json = generatedJson();
const sections = generatedSections();

const PARTS = ["addressranges", "rangemembers"].map((name) => `deploy/crds/${name}.yaml`);
const tracked = listTracked().filter((path) => !(isAlone && PARTS.includes(path)));

const attributed = readFileSync(join(root, ".gitattributes"), "utf8")
  .split("\n")
  .filter((line) => line.includes(" linguist-generated"))
  .flatMap((line) => {
    const pattern = line.split(" ")[0] ?? "";
    return tracked.filter((path) => matchesGlob(path, pattern));
  });

describe("generated files", () => {
  it.each([...texts, ...json, ...sections, ...packageVersions()].map(({ path, text }) => [path, text] as const))(
    "%s is what npm run generate writes",
    (path, text) => {
      const committed = readFileSync(join(root, path), "utf8");
      const differs = `${path} differs from its source: run npm run generate, and review the difference`;
      if (!isAlone) return expect(committed, differs).toBe(text);
      // Without packages their additions are unknown, such as their options of `check`.
      const added = text.split("\n").filter((line) => !committed.includes(line) && !line.startsWith("| `check`"));
      expect(added, differs).toEqual([]);
    },
  );

  it("are those, and only those, with the header", () => {
    const withHeader = tracked
      .filter((path) => /\.(?:c|go|h|java|md|py|rs|ts|yaml)$/.test(path))
      .filter((path) => HEADER.test(readFileSync(join(root, path), "utf8")));
    expect(withHeader.sort()).toEqual([...texts, ...sections].map(({ path }) => path).sort());
  });

  it("begin with the header", () => {
    const late = texts.filter(({ text }) => !HEADER.test(text.split("\n")[0] ?? ""));
    expect(late.map(({ path }) => path)).toEqual([]);
  });

  it("are listed in .gitattributes, and nothing else is", () => {
    expect(attributed.sort()).toEqual([...texts, ...json].map(({ path }) => path).sort());
  });

  it("of the embeddings name every export and every status", () => {
    const bindings = [...texts.filter(({ path }) => /^(?:embeddings|host)\//.test(path)), ...builtBindings()];
    expect(bindings).toHaveLength(7);
    const missing = bindings.flatMap(({ path, text }) => [
      ...ABI.exports.filter(({ name }) => !text.includes(name)).map(({ name }) => `${path}: ${name}`),
      ...ABI.statuses.filter(({ code }) => !text.includes(String(code))).map(({ code }) => `${path}: ${code}`),
    ]);
    expect(missing).toEqual([]);
  });
});
