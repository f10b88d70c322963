/** The reports of StrykerJS (mutation-testing-report-schema) as tables. */
import { NOTES } from "./notes.ts";

interface Place {
  readonly line: number;
  readonly column: number;
}

interface Location {
  readonly start: Place;
  readonly end: Place;
}

interface Mutant {
  readonly location: Location;
  readonly mutatorName: string;
  readonly replacement?: string;
  readonly status: string;
  readonly coveredBy?: readonly string[];
}

export interface Report {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly Mutant[] }>>;
}

type Merged = ReadonlyMap<
  string,
  { readonly source: string; readonly mutants: readonly (Mutant & { readonly isKilled: boolean })[] }
>;

const DETECTED = new Set(["Killed", "Timeout"]);
const VALID = new Set([...DETECTED, "Survived", "NoCoverage"]);

function keyOf({ location: { start, end }, mutatorName, replacement }: Mutant): string {
  return `${start.line}:${start.column}-${end.line}:${end.column} ${mutatorName} ${replacement}`;
}

/** A mutant that the property tests kill is killed. */
export function mergeReports(unit: Report, property: Report): Merged {
  const merged = new Map<string, { source: string; mutants: (Mutant & { isKilled: boolean })[] }>();
  for (const [file, { source, mutants }] of Object.entries(unit.files)) {
    const killed = new Set(
      (property.files[file]?.mutants ?? []).filter(({ status }) => DETECTED.has(status)).map(keyOf),
    );
    const all = mutants
      .filter(({ status }) => VALID.has(status))
      .map((mutant) => ({ ...mutant, isKilled: DETECTED.has(mutant.status) || killed.has(keyOf(mutant)) }));
    if (all.length > 0) merged.set(file, { source, mutants: all });
  }
  return new Map([...merged].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** What survived in these files, as Stryker's option `mutate` takes it. */
export function survivorRanges(report: Report, wanted: ReadonlySet<string>): string[] {
  return Object.entries(report.files).flatMap(([file, { mutants }]) =>
    (wanted.has(file) ? mutants : [])
      .filter(({ status }) => status === "Survived" || status === "NoCoverage")
      .map(({ location: { start, end } }) => `${file}:${start.line}:${start.column - 1}-${end.line}:${end.column}`),
  );
}

/** StrykerJS repeats a mutant that survived only for a test of a new name. Returns the report without the names of the tests that did not kill it. */
export function withoutSurvivedTests({ files, ...rest }: Report): Report {
  const reset = (mutant: Mutant): Mutant => (mutant.status === "Killed" ? mutant : { ...mutant, coveredBy: [] });
  const entries = Object.entries(files).map(
    ([file, { mutants, ...other }]) => [file, { ...other, mutants: mutants.map(reset) }] as const,
  );
  return { ...rest, files: Object.fromEntries(entries) };
}

function textAt(source: string, { start, end }: Location): string {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  lines.push((lines.pop() ?? "").slice(0, end.column - 1));
  const [first = "", ...others] = lines;
  return [first.slice(start.column - 1), ...others].join(" ");
}

function cell(text: string): string {
  return `\`${text.replace(/\s+/g, " ").replaceAll("|", "\\|").replaceAll("`", "'").slice(0, 60)}\``;
}

function percent(killed: number, all: number): string {
  return `${((100 * killed) / Math.max(1, all)).toFixed(1)} %`;
}

/** The rows of a table that are about files which were not measured again: the results of other runs may be gone. */
function keptRows(page: string, head: string, merged: Merged): string[] {
  const [, table = ""] = page.split(head);
  const rows = table.slice(0, Math.max(0, table.search(/\n(?!\|)/))).split("\n");
  const fileOf = (row: string): string => /^\| (host\/[^ :|]+)/.exec(row)?.[1] ?? "";
  return rows.filter((row) => fileOf(row) !== "" && !merged.has(fileOf(row)));
}

function noteOf(file: string, before: string, after: string): string {
  const found = NOTES.find(
    ({ text, to = "", ...note }) => note.file === file && before.includes(text) && after.includes(to),
  );
  return found?.note ?? "open";
}

const SCORES = "| File | Mutants |";
const SURVIVORS = "| Where | Text |";

/** Returns the page with both tables brought up to date. */
export function pageWith(page: string, merged: Merged): string {
  const scores = keptRows(page, SCORES, merged);
  const survivors = keptRows(page, SURVIVORS, merged);
  const numbers = scores.map((row) => row.split("|").slice(2, 4).map(Number));
  let all = numbers.reduce((sum, [mutants = 0]) => sum + mutants, 0);
  let allKilled = all - numbers.reduce((sum, [, survived = 0]) => sum + survived, 0);
  for (const [file, { source, mutants }] of merged) {
    const killed = mutants.filter(({ isKilled }) => isKilled).length;
    allKilled += killed;
    all += mutants.length;
    scores.push(`| ${file} | ${mutants.length} | ${mutants.length - killed} | ${percent(killed, mutants.length)} |`);
    for (const mutant of mutants.filter(({ isKilled }) => !isKilled)) {
      const before = textAt(source, mutant.location);
      const after = mutant.replacement ?? "";
      survivors.push(
        `| ${file}:${mutant.location.start.line} | ${cell(before)} | ${cell(after)} | ${noteOf(file, before, after)} |`,
      );
    }
  }
  scores.sort();
  survivors.sort();
  scores.push(`| all | ${all} | ${all - allKilled} | ${percent(allKilled, all)} |`);
  return replaceTable(replaceTable(page, SCORES, scores), SURVIVORS, survivors);
}

function replaceTable(page: string, head: string, rows: readonly string[]): string {
  const start = page.indexOf(head);
  if (start < 0) throw new Error(`docs/mutation.md has no table ${head}`);
  const rest = page.slice(start);
  const [title, line] = rest.split("\n");
  const end = rest.search(/\n(?!\|)/);
  return `${page.slice(0, start)}${[title, line, ...rows].join("\n")}${end < 0 ? "\n" : rest.slice(end)}`;
}
