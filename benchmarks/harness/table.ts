/** Tables of a run: a row for each thing measured, a column for each question about it. */
import { formatFigure, mean, percentile, type Table } from "../../test/lab/statistics.ts";
import type { Sample } from "./runner.ts";

/** A title, and the cell of a row: a figure, a text, or undefined for "-". */
export type Column<Row> = readonly [title: string, cellOf: (row: Row) => string | number | undefined];

export function tableOf<Row>(title: string, columns: readonly Column<Row>[], rows: readonly Row[]): Table {
  return {
    title,
    columns: columns.map(([name]) => name),
    rows: rows.map((row) => columns.map(([, cellOf]) => formatCell(cellOf(row)))),
  };
}

function formatCell(cell: string | number | undefined): string {
  return typeof cell === "string" ? cell : formatFigure(cell ?? Number.NaN);
}

/** `ADD p50`, `p99`, `max`: shares of a row's samples, in milliseconds. */
export function times<Row>(
  title: string,
  samplesOf: (row: Row) => readonly Sample[] | undefined,
  shares: readonly number[] = [0.5, 0.99],
): Column<Row>[] {
  return percentiles(title, (row) => samplesOf(row)?.map(({ wallMs }) => wallMs), shares);
}

export function percentiles<Row>(
  title: string,
  valuesOf: (row: Row) => readonly number[] | undefined,
  shares: readonly number[],
): Column<Row>[] {
  return shares.map((share, index) => [
    [index === 0 ? title : "", share === 1 ? "max" : `p${share * 100}`].filter(Boolean).join(" "),
    (row) => percentile(valuesOf(row) ?? [], share),
  ]);
}

/** `0.243 + 0.515`: processor milliseconds of a plugin and of its daemon for one call. */
export function cpuOf(samples: readonly Sample[], daemonMs: readonly number[]): string {
  return `${formatFigure(mean(samples.map(({ cpuMs }) => cpuMs)))} + ${formatFigure(mean(daemonMs))}`;
}
