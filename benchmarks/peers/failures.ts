/** What calls that failed printed, as a reader of the tables needs it. */
import { homedir } from "node:os";
import { root } from "../../scripts/setup/paths.mjs";

/** Characters of a reason. */
const MOST = 260;

/** The message of a CNI error, or the whole text, without this machine's folders. */
export function reasonOf(text: string): string {
  const details = ["msg", "details"].flatMap((field) => stringField(text, field) ?? []);
  const words = (details.length > 0 ? details.join(": ") : text).replaceAll(root, "…").replaceAll(homedir(), "…");
  const line = words.replaceAll(/\s+/g, " ").trim();
  return line.length > MOST ? `${line.slice(0, MOST)}…` : line;
}

function stringField(text: string, field: string): string | undefined {
  const quoted = new RegExp(`"${field}":\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
  return quoted === undefined ? undefined : JSON.parse(quoted);
}

/**
 * Where something failed, and how often: a line for each reason, the most frequent first; numbers in a reason count
 * as equal.
 */
export function describeFailures(where: string, texts: readonly string[]): string[] {
  const groups = Map.groupBy(texts.map(reasonOf), (reason) => reason.replaceAll(/[\w-]*\d[\w.:-]*/g, "#"));
  return [...groups.values()]
    .toSorted((a, b) => b.length - a.length)
    .map((reasons) => `${where}: ${reasons.length} × "${reasons[0]}"`);
}
