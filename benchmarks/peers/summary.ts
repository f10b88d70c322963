/** The figures of peers in short, for readers who choose an IPAM: a row for each. */
import { formatFigure, formatTable, type Table } from "../../test/lab/statistics.ts";
import { linkFigure } from "../harness/report.ts";
import { type Sample, wallMs } from "../harness/runner.ts";
import { succeeded } from "../ipam/measure.ts";
import type { Series } from "./alone.ts";
import { BERTH_CHAIN, type ChainRow } from "./chain.ts";
import { tabulateRequests } from "./requests.ts";
import type { StormFigures } from "./storm.ts";
import { type PeerFigures, plotsOf } from "./tabulate.ts";

/** Markdown: tables and plots. */
export function summarize(figures: PeerFigures): string[] {
  const { series, requests, chains, storms } = figures;
  const tables = [
    summarizeTimes("ADD of IPAM alone, p50 / p99, milliseconds", series, "add"),
    summarizeTimes("DEL of IPAM alone, p50 / p99, milliseconds", series, "del"),
    summarizeChains(chains),
    ...storms.map(summarizeStorm),
    tabulateRequests(requests),
  ];
  return [...tables.map(formatTable), ...plotsOf(figures).map(linkFigure)];
}

/** `2.31 / 4.02` */
function pair(samples: readonly Sample[]): string {
  return samples.length === 0
    ? "all fail"
    : [0.5, 0.99].map((share) => formatFigure(wallMs(samples, share))).join(" / ");
}

function summarizeTimes(title: string, series: readonly Series[], verb: "add" | "del"): Table {
  // A contestant has its pool's shape in its name where it has one of its own for each.
  const nameOf = (name: string): string =>
    name.replace(/^(berth|host-local), .*$/, "$1").replace(/^berth in/, "berth, in");
  const names = [...new Set(series.flatMap(({ all, unable }) => [...all, ...unable].map(({ name }) => nameOf(name))))];
  const cell = (name: string, { all }: Series): string => {
    const found = all.find((each) => nameOf(each.name) === name);
    if (found === undefined) return "no such pool";
    const failed = found.failures.length;
    return `${pair(found[verb])}${failed > 0 ? ` (${failed} failed)` : ""}`;
  };
  return {
    title,
    columns: [
      "IPAM",
      ...series.map(({ shape, atOnce }) => `${shape.name}${atOnce === 1 ? "" : `, ${atOnce} at once`}`),
    ],
    rows: names.map((name) => [name, ...series.map((one) => cell(name, one))]),
  };
}

function summarizeChains(all: readonly ChainRow[]): Table {
  const own = wallMs(all.find(({ name }) => name === BERTH_CHAIN)?.adds ?? [], 0.5);
  return {
    title: "The chain of a NIC until the first ping is answered, p50 / p99, milliseconds",
    columns: ["chain", "ADD", "times Berth's", "DEL"],
    rows: all.map(({ name, adds, dels }) => [name, pair(adds), formatFigure(wallMs(adds, 0.5) / own), pair(dels)]),
  };
}

function summarizeStorm({ name, nodes, pods, rows }: StormFigures): Table {
  return {
    title: `${name === "storm" ? "A storm" : "An exact fit"}: ${pods} pods on ${nodes} nodes at once, and back`,
    columns: ["IPAM", "pods with an address", "pods/s", "ADD", "failed ADDs", "duplicates", "leaked", "daemons MiB"],
    rows: rows.map(({ name: ipam, live, upMs, add, duplicates, leaked, daemonsMib }) => [
      ipam,
      `${live} of ${pods} after ${formatFigure(upMs / 1000)} s`,
      formatFigure((live * 1000) / upMs),
      pair(succeeded(add)),
      String(add.length - succeeded(add).length),
      String(duplicates),
      String(leaked),
      daemonsMib === 0 ? "-" : formatFigure(daemonsMib),
    ]),
  };
}
