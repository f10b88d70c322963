import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { createMarkdownRenderer } from "vitepress";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { VERSION } from "../../../host/bin/version.ts";
import { runCommands } from "../../../host/cli/berthctl.ts";
import { ErrorCode } from "../../../host/cni/error.ts";
import { DOCUMENTATION } from "../../../host/lib/documentation.ts";
import manifest from "../../../package.json" with { type: "json" };
import lock from "../../../package-lock.json" with { type: "json" };
import { anchorOf } from "../../../scripts/docs/anchor.ts";
import { developmentVersion, lastRelease } from "../../../scripts/setup/version.mjs";
import { ambiguousNames, ambiguousRights, commandsOf, listTexts } from "./kubectl-lines.ts";
import { isAlone, readSources, root } from "./sources.ts";

/** Folders that git ignores, those of the embeddings' tools too. */
const NOT_OURS = new Set(["node_modules", "dist", ".git", ".scratch", "target", "build", "__pycache__"]);
const MAX_ARCHITECTURE_LINES = 210;

/** All files of the project, relative to its root. */
function listFiles(folder = ""): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    // Of a working tree beside the clone, .git is a file.
    if (NOT_OURS.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return listFiles(path);
    return entry.isFile() ? [path] : [];
  });
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

interface Page {
  readonly path: string;
  readonly text: string;
}

/** The text outside of code, where brackets mean links. */
function prose(text: string): string {
  return text.replace(/^(```|~~~)[\s\S]*?^\1/gm, "").replace(/`[^`\n]*`/g, "");
}

function anchorsOf(text: string): string[] {
  const plain = text.replace(/^(```|~~~)[\s\S]*?^\1/gm, "").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return [...plain.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
}

/** Links that lead nowhere; `fileOf` finds the text behind a path relative to the root, null for a folder. */
function brokenLinks({ path, text }: Page, fileOf: (path: string) => string | null | undefined): string[] {
  const links = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return links.flatMap((target) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [file = "", anchor] = target.split("#");
    const wanted = file === "" ? path : join(dirname(path), file);
    const found = file === "" ? text : fileOf(wanted);
    if (found === undefined && isAlone && wanted.startsWith("packages/")) return [];
    if (found === undefined) return [`${path} links ${target}, but there is no ${wanted}`];
    if (anchor === undefined || (found !== null && anchorsOf(found).includes(anchor))) return [];
    return [`${path} links ${target}, but ${wanted} has no heading #${anchor}`];
  });
}

function findText(path: string): string | null | undefined {
  const full = join(root, path);
  if (!existsSync(full)) return undefined;
  return statSync(full).isDirectory() ? null : readFileSync(full, "utf8");
}

const files = listFiles();
const pages = files.filter((path) => path.endsWith(".md")).map((path) => ({ path, text: read(path) }));

describe("links", () => {
  it("there are pages to check", () => expect(pages.length).toBeGreaterThan(15));

  it("every relative link leads to a file and, with #, to a heading of it", () =>
    expect(pages.flatMap((page) => brokenLinks(page, findText))).toEqual([]));

  it.each<[what: string, text: string, wanted: number]>([
    ["to nothing", "[a](gone.md)", 1],
    ["to no heading", "[a](there.md#gone)", 1],
    ["to no heading of the page itself", "# Here\n[a](#gone)", 1],
    ["to a heading", "[a](there.md#one-two-3), [b](#here)\n# Here", 0],
    ["elsewhere, and code", "[a](https://example.com/x) `[b](gone.md)`\n```\n[c](gone.md)\n```\n", 0],
  ])("finds a link %s", (_what, text, wanted) => {
    const there = (path: string) => (path === join("docs", "there.md") ? "## One, two: 3" : undefined);
    expect(brokenLinks({ path: join("docs", "x.md"), text }, there)).toHaveLength(wanted);
  });

  it("links that programs print lead to pages and their headings", () => {
    const LINK = /\bdocumentation\("([^"]+)"\)/g;
    const printed = ["host", "packages"]
      .flatMap((each) => readSources(each, ".ts"))
      .flatMap(({ text }) => [...text.matchAll(LINK)]);
    expect(printed.length).toBeGreaterThan(10);
    const links = printed.map(([, url = ""]) => `[](${url.replace(".html", ".md")})`);
    expect(brokenLinks({ path: "docs/README.md", text: links.join("\n") }, findText)).toEqual([]);
    expect(DOCUMENTATION).toBe(`${manifest.homepage}/docs`);
  });

  it("every page of docs is in its index", () => {
    const index = read("docs/README.md");
    const names = files.filter((path) => /^docs\/(?:develop\/)?[^/]+\.md$/.test(path)).map((path) => path.slice(5));
    expect(names.filter((name) => name !== "README.md" && !index.includes(`(${name})`))).toEqual([]);
  });

  it("docs/sizing.md requests for an agent the same as the chart", () => {
    const { requests } = parse(read("deploy/chart/berth/values.yaml")).agent.resources;
    const wanted = `Request ${requests.memory.replace("Mi", " MiB")} and ${requests.cpu.replace("m", " m")} of CPU`;
    expect(read("docs/sizing.md")).toContain(wanted);
  });

  it("every decision is in their index", () => {
    const index = read("docs/decisions/README.md");
    const names = readdirSync(join(root, "docs", "decisions")).filter((name) => /^\d{4}-/.test(name));
    expect(names.length).toBeGreaterThan(2);
    expect(names.filter((name) => !index.includes(`(${name})`))).toEqual([]);
  });
});

/** The parser of the site. */
const markdown = await createMarkdownRenderer(root, { highlight: (code) => code });
const isTable = (text: string) => markdown.parse(text, {})[0]?.type === "table_open";

/** Tables without rows, rows with another number of cells than their head, and rows that are in no table. */
function brokenRows({ path, text }: Page): string[] {
  const lines = text.split("\n").map((line) => line.trim());
  let delimiters = "";
  return markdown.parse(text, {}).flatMap(({ type, map, content }) => {
    const [start, end] = map ?? [0, 0];
    if (type === "table_open") delimiters = lines[start + 1] ?? "";
    const isBroken =
      (type === "table_open" && end - start === 2) ||
      // A renderer cuts or fills such a row; as a head it would be none.
      (type === "tr_open" && !isTable(`${lines[start]}\n${delimiters}`)) ||
      (type === "inline" && map && /^\s*\|/m.test(content));
    return isBroken ? [`${path}:${start + 1} is not shown as a row: ${lines[start]}`] : [];
  });
}

describe("tables", () => {
  it("have as many cells in each row as in their head", () => expect(pages.flatMap(brokenRows)).toEqual([]));

  it.each<[what: string, row: string, wanted: number]>([
    ["is as wide as its head, with a pipe in code", "| 1 | `a\\|b` |", 0],
    ["has an unescaped pipe", "| 1 | `a|b` |", 1],
    ["lacks a cell", "| 1 |", 1],
    ["stands behind a blank line", "| 1 | 2 |\n\n| 3 | 4 |", 1],
    ["is text below the table", "| 1 | 2 |\nText", 1],
    ["is not there", "", 1],
  ])("whose row %s", (_what, row, wanted) =>
    expect(brokenRows({ path: "x.md", text: `# X\n\n| a | b |\n|---|---|\n${row}` })).toHaveLength(wanted),
  );
});

describe("ARCHITECTURE.md", () => {
  const architecture = read("ARCHITECTURE.md");

  it(`has fewer than ${MAX_ARCHITECTURE_LINES} lines`, () =>
    expect(architecture.split("\n").length).toBeLessThan(MAX_ARCHITECTURE_LINES));

  /** Folders that have a heading or a row of the code map. */
  const mapped = [...architecture.matchAll(/^(?:### |\| )(`[-a-z/]+`(?:, `[-a-z/]+`)*)(?: \||$)/gm)].flatMap(
    ([, names = ""]) => names.replaceAll("`", "").split(", "),
  );

  it("has every folder of host in its code map", () => {
    const folders = readdirSync(join(root, "host"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const missing = folders.filter(({ name }) => !mapped.includes(`host/${name}`));
    expect(missing.map(({ name }) => `add host/${name} to the code map`)).toEqual([]);
  });

  it("maps no folder that is gone", () => {
    expect(mapped).toContain("host/lib");
    const here = mapped.filter((folder) => !(isAlone && /^packages\b/.test(folder)));
    expect(here.filter((folder) => !existsSync(join(root, folder)))).toEqual([]);
  });
});

const { dependencies, devDependencies, optionalDependencies } = manifest;
const versions = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
it.each(versions)("docs/develop/dependencies.md has a row for %s %s", (name, version) => {
  expect(read("docs/develop/dependencies.md")).toContain(`\n| \`${name}\` | ${version} |`);
});

describe("attacks of docs/develop/security.md", () => {
  const [, section = ""] = read("docs/develop/security.md").split("\n## Attacks that are tests\n");
  const [table = ""] = section.split("\n## ");
  const rows = [...table.matchAll(/\]\(\.\.\/\.\.\/(\S+)\) \| (?:`(.+)` )?\|$/gm)].map(([, path = "", title = ""]) => [
    path,
    title,
  ]);

  it("are many", () => expect(rows.length).toBeGreaterThan(30));

  const here = rows.filter(([path = ""]) => !(isAlone && path.startsWith("packages/")));
  it.each(here)("%s has the test %s", (path, title) => expect(read(path)).toContain(title));
});

/** The rules of docs/develop/allocation.md; code and tests cite them by these names. */
const RULES = `
  late-del node-lost sandbox-restart undo recreate known-stays promises older-record own-things what-follows
  registry-epoch node-rights
  prefetch retention static-pods cooling-visibility exhaustion conflict
  clocks-and-boots single-agent pool-changes leak unattached unknown-container full-disk`
  .trim()
  .split(/\s+/);

const [, rules = ""] = read("docs/develop/allocation.md").split("\n## Rules\n");
const ruleHeadings = [...rules.matchAll(/^### (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));

it("docs/develop/allocation.md has a heading for each rule, and no others", () => expect(ruleHeadings).toEqual(RULES));

/** Put together here, so that this file is none that holds them. */
const FOREIGN = "/wo_rk/ /ho_me/ /ro_ot/ registry.npm_js.org proxy.go_lang.org deb.deb_ian.org files.python_hosted.org"
  .replaceAll("_", "")
  .split(" ");

it("no file names a place of one machine or a package registry", () => {
  const texts = files.filter((path) => !/\.(?:wasm|png|gz)$/.test(path)).map((path) => ({ path, text: read(path) }));
  expect(texts.length).toBeGreaterThan(200);
  const found = texts.flatMap(({ path, text }) =>
    FOREIGN.filter((word) => text.includes(word)).map((word) => `${path} has ${word}`),
  );
  expect(found).toEqual([]);
});

const rows = readFileSync("docs/errors.md", "utf8")
  .split("\n")
  .filter((line) => /^\| \d/.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()));

describe("docs/errors.md", () => {
  it.each(Object.entries(ErrorCode))("explains %s", (name, code) => {
    const [row] = rows.filter((cells) => cells[1] === String(code));
    expect(row?.[2]).toBe(name);
    expect(row?.[3]).toMatch(/.{20}/);
    expect(row?.[4]).toMatch(/.{20}/);
  });

  it("explains nothing else", () => expect(rows.map((cells) => Number(cells[1]))).toEqual(Object.values(ErrorCode)));
});

const HEADING = /^## (\d+\.\d+\.\d+(?:-rc\.\d+)?), (\d{4}-\d{2}-\d{2})$/;

const UNRELEASED = /^## \d+\.\d+\.\d+(?:-rc\.\d+)?, unreleased$/;

const changelog = readFileSync("CHANGELOG.md", "utf8");

const sections = changelog.split("\n").filter((line) => line.startsWith("## "));

/** The headings of releases, the newest first; unreleased changes may stand above them. */
const headings = sections.filter((line, index) => index > 0 || !UNRELEASED.test(line));

it("each section of the changelog is a release with its date, the newest first", () => {
  for (const heading of headings) expect(heading).toMatch(HEADING);
  const dates = headings.map((heading) => HEADING.exec(heading)?.[2] ?? "");
  expect(dates).toEqual(dates.toSorted().reverse());
});

describe("a section of the changelog", () => {
  const versions = changelog.split(/^## /m).slice(1);

  it.each(versions.map((text) => [text.split(",")[0], text] as const))(
    "%s has at most ten lines for operators and sixty entries, each with its kind",
    (_version, text) => {
      const [, forYou = ""] = /\n### For you\n\n([\s\S]*?)\n(?=\n)/.exec(text) ?? [];
      expect(forYou.split("\n").length).toBeLessThanOrEqual(10);
      const entries = text.replace(forYou, "").match(/^\* .*/gm) ?? [];
      expect(entries.filter((entry) => !/^\* \[(?:New|Change|Fix|Break)\] \S/.test(entry))).toEqual([]);
      expect(entries.length).toBeGreaterThan(0);
      expect(entries.length).toBeLessThanOrEqual(60);
    },
  );
});

describe("the version", () => {
  const [head = ""] = sections;
  const [, next = "", date = ""] = /^## (\S+), (.*)$/.exec(head) ?? [];
  const isReleased = date !== "unreleased";

  it("of CHANGELOG's head is the one that package.json and the chart have, and that every program prints", async () => {
    const chart = parse(readFileSync("deploy/chart/berth/Chart.yaml", "utf8"));
    let printed = "";
    const write = (text: string): void => {
      printed += text;
    };
    const terminal = { write, writeError: () => {}, isColored: false };
    const words = ["version", "--client", "--no-headers"];
    await runCommands({ program: "berthctl", version: VERSION, words, terminal, more: [] });
    const stated = {
      "package.json": manifest.version,
      "package-lock.json": lock.version,
      "package-lock.json, packages": lock.packages[""].version,
      "Chart.yaml, version": chart.version,
      "Chart.yaml, appVersion": chart.appVersion,
      "berthctl version": printed.split(/\s+/)[1],
    };
    for (const [where, version] of Object.entries(stated))
      expect(version, where).toBe(isReleased ? next : developmentVersion(next));
  });

  it("of the last release is the newest in CHANGELOG below the head, and its commit has it", () => {
    const last = HEADING.exec(sections[1] ?? "")?.[1];
    const manifestOf = (commit: string) =>
      execFileSync("git", ["show", `${commit}:package.json`], { encoding: "utf8" });
    const found = [lastRelease.version, JSON.parse(manifestOf(lastRelease.commit)).version];
    const why = "scripts/last-release.json; a shallow clone lacks the commit: git fetch --unshallow";
    expect(found, why).toEqual([last, last]);
  });
});

describe("commands that call kubectl", () => {
  const files = listTexts();

  describe("no command of kubectl names a kind of Berth without its group", () => {
    it(`in documents, messages and scripts`, () => {
      expect(files.length).toBeGreaterThan(500);
      const found = files.flatMap((path) => {
        const text = readFileSync(join(root, path), "utf8");
        return [...ambiguousNames(text), ...(path.endsWith(".md") ? ambiguousRights(text) : [])].map(
          (name) => `${path}: write the group behind "${name}"`,
        );
      });
      expect(found).toEqual([]);
    });

    it.each<[text: string, found: string[]]>([
      ["kubectl delete ippools --all", ["ippools"]],
      ["see `kubectl -n x get subnet blue -o yaml`", ["subnet"]],
      ["`kubectl get\nipallocations` shows", ["ipallocations"]],
      ["kubectl get pods,ippools", ["ippools"]],
      ["kubectl delete ippool/blue", ["ippool/blue"]],
      ["kubectl explain ippool.spec", ["ippool.spec"]],
      ["kubectl get IPPool", ["IPPool"]],
      ["kubectl get rip", ["rip"]],
      ["'first run: kubectl annotate ipallocation ' + name", ["ipallocation"]],
      ["kubectl get ippools -o name | xargs kubectl delete coordinators", ["ippools", "coordinators"]],
      ["kubectl get ippools.projectcalico.org", ["ippools.projectcalico.org"]],
      ["kubectl get ippools.ipam.vendor.io -l ipam.vendor.io/subnet=blue", []],
      ["kubectl delete ippool.ipam.vendor.io/blue", []],
      ["kubectl explain ippools.ipam.vendor.io.spec", []],
      ["kubectl get berth", []],
      ["kubectl apply -f deploy/crds/ippools.yaml", []],
    ])("%j", (text, found) => expect(ambiguousNames(text)).toEqual(found));

    it("finds them in tables of rights", () => {
      const table = "| get, list | `ippools`, `subnets/status` | why |\n| `subnets` | part |";
      expect(ambiguousRights(table)).toEqual(["ippools", "subnets"]);
    });
  });

  it("commandsOf gives the commands that a reader may type", () => {
    const page =
      "Run `kubectl get\nberth` or `kubectl explain`.\n```sh\nkubectl get pods   # all\n$ kubectl get \\\n  nodes\nls\n```\n`kubectl get ns`";
    expect(commandsOf(page)).toEqual(["kubectl get berth", "kubectl get pods", "kubectl get nodes", "kubectl get ns"]);
  });
});
