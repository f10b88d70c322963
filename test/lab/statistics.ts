/** Measuring: a daemon's cost, samples to figures, figures to tables. Shared by the benchmarks and the scale tests. */
import { readdirSync, readFileSync } from "node:fs";

/** The smallest sample that `share` (0 to 1) of all samples do not exceed; NaN of none. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export function mean(samples: readonly number[]): number {
  return samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
}

/** Three significant digits, never an exponent: 0.123, 4.56, 78.9, 1234. */
export function formatFigure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const decimals = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(decimals, 4));
}

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Markdown, with the columns padded so that it is a table in a terminal too. */
export function formatTable({ title, columns, rows }: Table): string {
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...rows.map((row) => (row[index] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, index) => (index === 0 ? (cells[index] ?? "").padEnd(width) : (cells[index] ?? "").padStart(width))).join(" | ")} |`;
  const rule = `|${widths.map((width, index) => (index === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [`${title}`, "", line(columns), rule, ...rows.map(line)].join("\n");
}

/** Milliseconds on a CPU of the threads that live now (proc(5), schedstat: the first number, in nanoseconds). */
export function daemonCpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, value) => sum + value, 0) / 1e6;
}

/** VmRSS in MiB. */
export function daemonRssMib(pid: number): number {
  return readStatusMib(pid, "VmRSS");
}

/** RssAnon in MiB: resident memory that no file backs. */
export function daemonAnonymousMib(pid: number): number {
  return readStatusMib(pid, "RssAnon");
}

function readStatusMib(pid: number, field: string): number {
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}
