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

/** Of one fault; the names of pods and addresses of one run say nothing to a reader. */
export function rowOf({ fault, seed, steps, violation }: Detection): string {
  const { name, breaks, profile, limit } = fault;
  const cells = [
    name,
    /^[a-z-]+$/.test(breaks) ? `[${breaks}](allocation.md#${breaks})` : breaks,
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

/** Replaces the table of the page. */
export function replaceTable(page: string, rows: readonly string[]): string {
  const start = page.indexOf("| Fault |");
  if (start < 0) throw new Error(`${PAGE} has no table of faults`);
  const rest = page.slice(start);
  const end = rest.search(/\n(?!\|)/);
  return `${page.slice(0, start)}${TABLE_HEAD}\n${rows.join("\n")}${end < 0 ? "\n" : rest.slice(end)}`;
}

/** Returns the names of the faults that the page's table shows. */
export function rowNamesOf(page: string): string[] {
  const rows = page.slice(page.indexOf("| Fault |")).split("\n").slice(2);
  return rows.filter((row) => row.startsWith("| ")).map((row) => row.slice(2, row.indexOf(" | ")));
}
