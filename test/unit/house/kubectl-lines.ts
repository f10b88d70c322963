/**
 * The kubectl commands that documents, messages and scripts name.
 * Effects: reads the names of the project's files.
 */
import { CUSTOM_KINDS } from "../../../scripts/generate/crds/custom-kinds.ts";
import { listTracked } from "./sources.ts";

const FOLDERS = ["docs", "deploy", "host", "packages", "native", "scripts", "benchmarks", "embeddings", ".ci"];
const TEXTS = /\.(?:md|yaml|ts|mts|mjs|c|h|sh|conflist)$/;

/** Files of these folders, and those at the root, that people read or that print text for people. */
export function listTexts(): string[] {
  const isRead = (path: string) => !path.includes("/") || FOLDERS.includes(path.split("/")[0] ?? "");
  return listTracked().filter((path) => TEXTS.test(path) && isRead(path));
}

const GROUP = "ipam.vendor.io";

/** All names of Berth's kinds that kubectl takes: `ippools`, `ippool`, `ipp`. */
const NAMES = new Set(
  CUSTOM_KINDS.flatMap(({ plural, kind, shortNames }) => [plural, kind.toLowerCase(), ...shortNames]),
);

/** Text after `kubectl` to the end of the line or the code; a line that is broken inside backticks is one. */
const COMMAND = /\bkubectl(?=((?:[ \t]|\n[ \t/#*]*)[^`\n]*(?:\n[ \t/#*]*[^`\n]+`)?))/g;

/**
 * Words that name one of Berth's kinds without its group: with another project's kind of that name present, the
 * command is about that one.
 */
export function ambiguousNames(text: string): string[] {
  return [...text.matchAll(COMMAND)].flatMap(([, rest = ""]) => wordsOf(rest).filter(isAmbiguous));
}

function wordsOf(command: string): string[] {
  // A further command of the same line is found by itself; a comment is none.
  const own = command.split(/[|;]|&&| #/)[0] ?? "";
  return own.split(/[\s,]+/).map((word) => word.replace(/^["'(]+|["'`.:;)]+$/g, ""));
}

/** `ippools`, `ippool/blue`, `ippool.spec`, and not `ippools.ipam.vendor.io`. */
function isAmbiguous(word: string): boolean {
  const [name = ""] = word.split(/[./]/);
  return NAMES.has(name.toLowerCase()) && !word.slice(name.length).startsWith(`.${GROUP}`);
}

const RIGHTS_ROW = /^\| (?:[a-z]+, )*(?:create|delete|get|list|patch|update|watch)\b.*$/gm;

/** The same in tables of verbs and resources, which people copy into roles. */
export function ambiguousRights(text: string): string[] {
  return [...text.matchAll(RIGHTS_ROW)].flatMap(([row]) =>
    [...row.matchAll(/`([a-z]+)(?:\/status)?`/g)].flatMap(([, name = ""]) => (NAMES.has(name) ? [name] : [])),
  );
}

/** Verbs by which a text speaks of kubectl without a command to type. */
const MENTION = /^kubectl (?:explain|describe|apply(?: --server-side)?|get -o yaml|create job --from)$/;

/**
 * The commands of a page that a reader may type, in its order: those in blocks of code, without a prompt, and those
 * in the text.
 */
export function commandsOf(page: string): string[] {
  const blocks = /^(```|~~~)[^\n]*\n([\s\S]*?)^\1/gm;
  const found: string[] = [];
  let at = 0;
  const inText = (text: string) => {
    for (const [, code = ""] of text.matchAll(/`([^`]*)`/g)) {
      const line = code.replace(/\s+/g, " ");
      if (line.startsWith("kubectl ") && !MENTION.test(line)) found.push(line);
    }
  };
  for (const match of page.matchAll(blocks)) {
    inText(page.slice(at, match.index));
    const lines = (match[2] ?? "").replace(/\\\n\s*/g, "").split("\n");
    const typed = lines.map((line) => line.replace(/^\$ /, "").replace(/\s+#.*$/, ""));
    found.push(...typed.filter((line) => line.startsWith("kubectl ")));
    at = match.index + match[0].length;
  }
  inText(page.slice(at));
  return found;
}
