/**
 * A page as a shell script: its blocks ```sh, each command on its own line of the page, so that a failure names the
 * line. The first command that fails ends the script, unless the table says that it is refused.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { parseAllDocuments } from "yaml";
import { referenceTool, root } from "../../../scripts/setup/paths.mjs";
import type { CommandOutcome } from "../../lab/command.ts";
import { type ExecutedPart, isExecuted, PARTS, type Place } from "./table.ts";

interface Block {
  /** The heading above it. */
  readonly section: string;
  /** Line of its first command, from 1. */
  readonly line: number;
  readonly lines: readonly string[];
}

/** README and all pages of docs and docs/develop. */
export function listPages(): string[] {
  const pages = ["docs", "docs/develop"].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
  );
  return ["README.md", ...pages.filter((path) => path.endsWith(".md"))];
}

/** Texts by path that a section (level 2) of a page says to write: blocks that begin with a comment of their path. */
export function readFilesOfPage(page: string, heading: string): Record<string, string> {
  const sections = readFileSync(join(root, page), "utf8").split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const blocks = [...section.matchAll(/^```\w*\n# (\/\S+)\n(.*?)^```$/gms)];
  return Object.fromEntries(blocks.map(([, path = "", text = ""]) => [path, text]));
}

export function readBlocks(page: string): Block[] {
  return findBlocks(readFileSync(join(root, page), "utf8"));
}

/** Blocks marked with a language, which may be none. */
export function findBlocks(text: string, language = "sh"): Block[] {
  const blocks: Block[] = [];
  let section = "";
  let fence: { language: string; lines: string[] } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (fence === undefined) {
      section = /^#+ (.*)$/.exec(line)?.[1] ?? section;
      const found = /^```(.*)$/.exec(line)?.[1];
      if (found !== undefined) fence = { language: found, lines: [] };
    } else if (line === "```") {
      if (fence.language === language)
        blocks.push({ section, line: index + 1 - fence.lines.length, lines: fence.lines });
      fence = undefined;
    } else {
      fence.lines.push(line);
    }
  }
  return blocks;
}

/** The YAML documents of the page, in its order. */
export function readDocumentsOf(page: string) {
  const blocks = findBlocks(readFileSync(join(root, page), "utf8"), "yaml");
  return blocks.flatMap(({ lines }) => parseAllDocuments(lines.join("\n")).map((document) => document.toJS()));
}

/** The texts that the page says its commands print: blocks without a language. */
export function outputsOf(page: string): string[] {
  return findBlocks(readFileSync(join(root, page), "utf8"), "").map(({ lines }) => `${lines.join("\n")}\n`);
}

/** The row for a block: that of its section before that of its page. */
export function findPart(page: string, section: string) {
  const parts = PARTS.filter((part) => part.page === page);
  return parts.find((part) => part.section === section) ?? parts.find((part) => part.section === undefined);
}

export function partsAt(place: Place): [name: string, part: ExecutedPart][] {
  return PARTS.filter(isExecuted)
    .filter((part) => part.place === place)
    .map((part) => [part.section === undefined ? part.page : `${part.page}, ${part.section}`, part]);
}

/**
 * Prints each failed command to stderr; `$refused` are those that may fail. It stands on line 1, where pages have
 * their title.
 */
const PROLOGUE = [
  "set -E -o pipefail",
  `trap 'code=$?; echo "FAILED line $LINENO, exit code $code: $BASH_COMMAND" >&2; case "$refused" in *"<$BASH_COMMAND>"*) ;; *) exit $code ;; esac' ERR`,
].join("; ");

/** The blocks of the part, as they are on the page. */
export function blocksOf(part: ExecutedPart): Block[] {
  return readBlocks(part.page).filter(({ section }) => findPart(part.page, section) === part);
}

function scriptOf(part: ExecutedPart, words: Readonly<Record<string, string>>): string {
  const script: string[] = [];
  for (const { line, lines } of blocksOf(part)) {
    for (const [index, text] of lines.entries())
      script[line - 1 + index] = replaceWords(text, { ...part.words, ...words });
  }
  if (script.length === 0) throw new Error(`${part.page} has no commands of this part`);
  const refused = (part.refused ?? []).map((command) => `<${command}>`).join("");
  script[0] = `refused='${refused}'; ${PROLOGUE}`;
  return `${Array.from(script, (line) => line ?? "").join("\n")}\n`;
}

function replaceWords(text: string, words: Readonly<Record<string, string>>): string {
  return Object.entries(words).reduce((replaced, [word, value]) => replaced.replaceAll(word, value), text);
}

/**
 * Executes a part of a page by `run`, which gets a command line; `words` are replaced like the part's own. Throws
 * unless every command has the page's outcome.
 */
export async function executePart(
  part: ExecutedPart,
  run: (argv: readonly string[]) => Promise<CommandOutcome>,
  words: Readonly<Record<string, string>> = {},
): Promise<CommandOutcome> {
  const outcome = await run(["bash", "-c", scriptOf(part, words)]);
  const failures = [...outcome.stderr.matchAll(/^FAILED .*?: (.*)$/gm)].map(([, command]) => command);
  const report = `${part.page}:\n${outcome.stdout}${outcome.stderr}`;
  expect(failures, report).toEqual(part.refused ?? []);
  expect(outcome.exitCode, report).toBe(0);
  return outcome;
}

/** A folder with `berthctl`, and the environment of a reader who works there, with kubectl for that cluster. */
export class Workstation implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), "berth-pages-"));
  readonly env: Readonly<Record<string, string>>;

  constructor(kubeconfig: string) {
    symlinkSync(join(root, "dist", "berthctl.mjs"), join(this.home, "berthctl"));
    const folders = [this.home, referenceTool("kubectl").directory, join(root, "node_modules", ".bin")];
    this.env = { HOME: this.home, KUBECONFIG: kubeconfig, PATH: [...folders, process.env.PATH].join(":") };
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true });
  }
}
