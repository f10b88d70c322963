/**
 * The reporter of all benchmarks: writes tables, targets and drawings of each to a section of a page, and sentences for
 * readers who choose to other pages.
 * Effects: writes pages between their markers, and drawings.
 */
import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { dirname, join, relative } from "node:path";
import { root } from "../../scripts/setup/paths.mjs";
import { formatFigure, formatTable, type Table } from "../../test/lab/statistics.ts";
import { type Plot, renderPlot } from "./plot.ts";
import { describeQuietness, type Quietness } from "./quiet.ts";

/** A promise of the design and its measurement in this run. */
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
  /** Versions of the compared programs, by name. */
  readonly versions: Readonly<Record<string, string>>;
  readonly figures?: readonly Figure[];
  /** For readers who choose: a few sentences or a table, by page, between the markers of the benchmark's name there. */
  readonly headlines?: Readonly<Record<string, string>>;
}

/** Page of all sections, as a path from the project's root. */
const PAGE = "benchmarks/README.md";

export interface BenchOptions {
  /** Few samples: to see that it works, not to quote. */
  readonly quick: boolean;
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
  /** `2026-01-31` */
  readonly day: string;
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
    day: new Date().toISOString().slice(0, 10),
    quietness,
  };
}

function describeMachine(versions: BenchReport["versions"], machine: Machine): string {
  const { cpu, cores, memoryGib, kernel, node, commit, day } = machine;
  const compared = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const things = [...compared, `commit ${commit}`, day].join(", ");
  return `Measured on ${cpu}, ${cores} cores, ${memoryGib} GiB, Linux ${kernel}, Node.js ${node}, ${things}.`;
}

/** Returns each target with its figure, those that were missed first. */
function describeTargets(targets: readonly Target[]): string {
  const missed = targets.filter(({ isMet }) => !isMet);
  const title = missed.length === 0 ? "All targets are met:" : `${missed.length} of ${targets.length} targets missed:`;
  const lines = [...missed, ...targets.filter(({ isMet }) => isMet)].map(
    ({ what, wanted, measured, isMet }) => `- ${isMet ? "" : "missed: "}${what}: ${measured}; wanted: ${wanted}`,
  );
  return [title, "", ...lines].join("\n");
}

/** Returns the text about a run for the page and the terminal. */
export function formatSection({ figures = [], ...report }: BenchReport, machine: Machine): string {
  const { tables, targets, notes, versions } = report;
  const text = [
    describeQuietness(machine.quietness),
    ...tables.map(formatTable),
    ...figures.map(linkFigure),
    targets.length === 0 ? "" : describeTargets(targets),
    notes.map((note) => `* ${note}`).join("\n"),
    describeMachine(versions, machine),
  ];
  return text.filter((part) => part !== "").join("\n\n");
}

/** Writes the section between the markers of the benchmark's name on the page, the headlines, and the drawings. */
export async function writePages(name: string, report: BenchReport, machine: Machine): Promise<void> {
  const { headlines = {}, figures = [] } = report;
  await writeSection(PAGE, name, formatSection(report, machine));
  for (const [page, text] of Object.entries(headlines))
    await writeSection(page, name, `${text}\n\n${describeMachine({}, machine)}`);
  for (const { path, svg } of figures) await writeFile(join(root, path), svg);
}

/** Replaces the text between the markers of `name` in a page. Throws without the markers. */
async function writeSection(page: string, name: string, text: string): Promise<void> {
  const path = join(root, page);
  const before = await readFile(path, "utf8");
  const [start, end] = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`];
  const [from, to] = [before.indexOf(start), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} lacks the markers ${start} and ${end}`);
  await writeFile(path, `${before.slice(0, from + start.length)}\n${text}\n${before.slice(to)}`);
}
