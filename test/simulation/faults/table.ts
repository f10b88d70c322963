/** The table of faults in docs/simulation-faults.md, as detect.ts prints and writes it. */
import type { Fault } from "./fault.ts";

export const PAGE = "docs/simulation-faults.md";

export interface Detection {
  readonly fault: Fault;
  /** Undefined: not noticed within the limit. */
  readonly seed: number | undefined;
  /** Of all seeds up to the violation. */
  readonly steps: number;
  readonly violation: string | undefined;
}

export const TABLE_HEAD =
  "| Fault | Breaks | Profile | Seed | Steps | Limit | Violation |\n|---|---|---|---|---|---|---|";

export const TESTED_HEAD = "| Fault | Breaks | Test |\n|---|---|---|";

/** Of a fault that a test notices. `test`: the first that fails; undefined if none does. */
export function testedRowOf({ name, breaks }: Pick<Fault, "name" | "breaks">, test: string | undefined): string {
  return `| ${name} | ${linkRules(breaks)} | ${test?.replaceAll("|", "/") ?? "none fails"} |`;
}

function linkRules(breaks: string): string {
  const link = (each: string): string => (/^[a-z-]+$/.test(each) ? `[${each}](allocation.md#${each})` : each);
  return breaks.split("; ").map(link).join("; ");
}

/** Of one fault; the names of pods and addresses of one run say nothing to a reader. */
export function rowOf({ fault, seed, steps, violation }: Detection): string {
  const { name, breaks, profile, limit } = fault;
  const cells = [
    name,
    linkRules(breaks),
    `\`${profile}\``,
    seed === undefined ? "–" : String(seed),
    seed === undefined ? `not within ${count(steps)}` : count(steps),
    count(limit),
    violation === undefined ? "–" : shorten(violation),
  ];
  return `| ${cells.join(" | ")} |`;
}

function count(steps: number): string {
  return steps.toLocaleString("en-US");
}

function shorten(violation: string): string {
  return violation
    .replace(/\s*\((?:p|set-)[0-9a-z-]+\)/g, "")
    .replace(/\b(?:10\.6\.[0-9.]+|fd00::[0-9a-f]+)/g, "an address")
    .replace(/ \[.*\]/, "")
    .replaceAll("|", "/")
    .slice(0, 110);
}

/** Replaces the table of the page that has this head. */
export function replaceTable(page: string, head: string, rows: readonly string[]): string {
  const start = page.indexOf(head);
  if (start < 0) throw new Error(`${PAGE} has no table ${head}`);
  const rest = page.slice(start);
  const end = rest.search(/\n(?!\|)/);
  return `${page.slice(0, start)}${head}\n${rows.join("\n")}${end < 0 ? "\n" : rest.slice(end)}`;
}

/** Returns the rows of the page's tables by the names of their faults. */
export function rowsByName(page: string): ReadonlyMap<string, string> {
  const rows = page.split("\n").filter((row) => row.startsWith("| ") && !row.startsWith("| Fault |"));
  return new Map(rows.map((row) => [row.slice(2, row.indexOf(" | ")), row]));
}

/** Returns the names of the faults that the page's tables show. */
export function rowNamesOf(page: string): string[] {
  return [...rowsByName(page).keys()];
}
