/**
 * Figures of the scale runs as lines of text.
 * Effects: none; `printTable` prints.
 */

import type { ApiUse } from "../cluster/watched-api.ts";
import { formatFigure, formatTable, percentile } from "../statistics.ts";
import type { ServerUse } from "./server-use.ts";

export type Row = readonly [what: string, figure: string];

/** `p50 3.41, p99 12.0 ms of 5000` */
export function timesOf(samples: readonly number[]): string {
  const figures = [0.5, 0.99].map((share) => `p${share * 100} ${formatFigure(percentile(samples, share))}`);
  return `${figures.join(", ")} ms of ${samples.length}`;
}

/** `2.01 (1.00 POST ipallocations, 1.00 DELETE ipallocations)`; watches are not in it. */
export function callsPer(use: ApiUse, pods: number): string {
  const all = [...use.calls].sort(([, a], [, b]) => b - a);
  const total = all.reduce((sum, [, count]) => sum + count, 0);
  const parts = all.map(([key, count]) => `${formatFigure(count / pods)} ${key}`);
  return `${formatFigure(total / pods)} (${parts.join(", ")})`;
}

/** `1.00 POST ippools, 0.31 PUT subnets/status`: what the server was asked about these resources, by whomever. */
export function requestsPer(use: ServerUse, resources: readonly string[], count: number): string {
  const isOne = (key: string): boolean => resources.includes(key.split(" ")[1]?.split("/")[0] ?? "");
  const own = [...use].filter(([key]) => isOne(key)).sort(([, a], [, b]) => b - a);
  return own.map(([key, requests]) => `${formatFigure(requests / count)} ${key}`).join(", ") || "none";
}

export function mebibytes(bytes: number): string {
  return `${formatFigure(bytes / 2 ** 20)} MiB`;
}

export function printTable(title: string, rows: readonly Row[]): void {
  console.log(`\n${formatTable({ title, columns: ["what", "measured"], rows })}\n`);
}
