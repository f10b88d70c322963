/**
 * The reporter of all benchmarks: what each hands over, and where it goes: tables and targets to the terminal,
 * tables, drawings and missed targets to a section of a page, raw samples to benchmarks/results.
 * Effects: writes pages between their markers, drawings, and one results file.
 */
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { dirname, join, relative } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { formatFigure, formatTable, type Table } from "../../test/lab/statistics.ts";
import { type Plot, renderPlot } from "./plot.ts";
import { describeQuietness, type Quietness } from "./quiet.ts";

/** A promise of the design and what this run measured of it. */
export interface Target {
  readonly what: string;
  readonly wanted: string;
  readonly measured: string;
  readonly isMet: boolean;
}

export interface Limit {
  readonly what: string;
  readonly valueMs: number;
  /** Base of the comparison, and the multiple of its time that is allowed. */
  readonly base: string;
  readonly baseMs: number;
  readonly limit: number;
  /** Beside the figures. */
  readonly remark?: string;
}

/** The target that `valueMs` is at most `limit` times `baseMs`. */
export function atMost({ what, valueMs, base, baseMs, limit, remark }: Limit): Target {
  const figures = `${formatFigure(valueMs)} of ${formatFigure(baseMs)} ms${remark === undefined ? "" : `, ${remark}`}`;
  return {
    what,
    wanted: `≤ ${limit} × ${base}`,
    measured: `${formatFigure(valueMs / baseMs)} × (${figures})`,
    isMet: valueMs <= limit * baseMs,
  };
}

/** A drawing of a run. */
export interface Figure {
  readonly title: string;
  /** From the project's root: `docs/peers-chain.svg`. */
  readonly path: string;
  readonly svg: string;
}

export function drawFigure(path: string, plot: Plot): Figure {
  return { title: plot.title, path, svg: renderPlot(plot) };
}

/** Shows the drawing on the page of all benchmarks. */
function linkFigure({ title, path }: Figure): string {
  return `![${title}](${relative(dirname(PAGE), path)})`;
}

export interface BenchReport {
  readonly tables: readonly Table[];
  readonly targets: readonly Target[];
  /** Remarks that a reader of the tables needs, such as rows that are left out and why. */
  readonly notes: readonly string[];
  /** Versions of what was compared, by name. */
  readonly versions: Readonly<Record<string, string>>;
  /** Everything measured, for later questions. */
  readonly raw: unknown;
  readonly figures?: readonly Figure[];
  /** For readers who choose: a few sentences or tables, between the markers of the benchmark's name on these pages. */
  readonly headline?: { readonly pages: readonly string[]; readonly text: string };
}

/** Page of all sections, as a path from the project's root. */
const PAGE = "benchmarks/README.md";

export interface BenchOptions {
  /** Few samples: to see that it works, not to quote. */
  readonly quick: boolean;
  readonly quietness: Quietness;
}

export interface Bench {
  readonly name: string;
  run(options: BenchOptions): Promise<BenchReport>;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  readonly commit: string;
  readonly quietness: Quietness;
}

/** `quietness` is of the moment before the benchmark. */
export function readMachine(quietness: Quietness): Machine {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const changed = git("status", "--porcelain", "--untracked-files=no") !== "";
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    commit: `${git("rev-parse", "--short", "HEAD")}${changed ? " with changes" : ""}`,
    quietness,
  };
}

export function formatReport(report: BenchReport, machine: Machine, quick: boolean): string {
  const parts = [describeQuietness(machine.quietness), ...report.tables.map(formatTable)];
  if (report.targets.length > 0) {
    const rows = report.targets.map(({ what, wanted, measured, isMet }) => [
      what,
      wanted,
      measured,
      isMet ? "met" : "MISSED",
    ]);
    parts.push(formatTable({ title: "Targets", columns: ["what", "target", "measured", ""], rows }));
  }
  parts.push(report.headline?.text ?? "");
  parts.push(report.notes.map((note) => `* ${note}`).join("\n"));
  parts.push(describeMachine(report, machine, quick));
  return parts.filter((part) => part !== "").join("\n\n");
}

function describeMachine({ versions }: BenchReport, machine: Machine, quick: boolean): string {
  const { cpu, cores, memoryGib, kernel, node, commit } = machine;
  const compared = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return (
    `Measured on ${cpu}, ${cores} cores, ${memoryGib} GiB, Linux ${kernel}, Node.js ${node}, ${[...compared, `commit ${commit}`].join(", ")}` +
    `${quick ? "; a quick run: too few samples to quote" : ""}.`
  );
}

/** Returns how many targets are met, and those that were missed. */
function describeTargets(targets: readonly Target[]): string {
  const missed = targets.filter(({ isMet }) => !isMet);
  if (missed.length === 0) return `All ${targets.length} targets are met.`;
  const lines = missed.map(({ what, wanted, measured }) => `- ${what}: ${measured}; wanted: ${wanted}`);
  return [`${missed.length} of ${targets.length} targets missed:`, "", ...lines].join("\n");
}

/** Returns what a page says of a run: of the targets those that were missed. */
export function formatSection({ figures = [], ...report }: BenchReport, machine: Machine): string {
  const { tables, targets, notes } = report;
  const text = [
    describeQuietness(machine.quietness),
    ...tables.map(formatTable),
    ...figures.map(linkFigure),
    targets.length === 0 ? "" : describeTargets(targets),
    notes.map((note) => `* ${note}`).join("\n"),
    describeMachine(report, machine, false),
  ];
  return text.filter((part) => part !== "").join("\n\n");
}

/** Writes the section between the markers of the benchmark's name on the page, the headline, and the drawings. */
export async function writePages(name: string, report: BenchReport, machine: Machine): Promise<void> {
  await writeSection(PAGE, name, formatSection(report, machine));
  for (const page of report.headline?.pages ?? []) await writeSection(page, name, report.headline?.text ?? "");
  for (const { path, svg } of report.figures ?? []) await writeFile(join(root, path), svg);
}

/** Replaces what is between the markers of `name` in a page. Throws when they are not there. */
async function writeSection(page: string, name: string, text: string): Promise<void> {
  const path = join(root, page);
  const before = await readFile(path, "utf8");
  const [start, end] = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`];
  const [from, to] = [before.indexOf(start), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} lacks the markers ${start} and ${end}`);
  await writeFile(path, `${before.slice(0, from + start.length)}\n${text}\n${before.slice(to)}`);
}

/** Keeps the raw figures; gives the file's path. */
export async function writeResults(name: string, machine: Machine, report: BenchReport): Promise<string> {
  const directory = join(root, "benchmarks", "results");
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${name}-${new Date().toISOString().slice(0, 10)}.json`);
  const { targets, notes, versions, raw } = report;
  await writeFile(path, `${JSON.stringify({ name, machine, versions, targets, notes, raw })}\n`);
  return path;
}
