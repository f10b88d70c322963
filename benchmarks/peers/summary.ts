/** The figures of peers in short, for readers who choose an IPAM: a row for each. */
import { formatFigure, type Table } from "../../test/lab/statistics.ts";
import { type Sample, wallMs } from "../harness/runner.ts";
import { tableOf } from "../harness/table.ts";
import { succeeded } from "../ipam/measure.ts";
import type { Series } from "./alone.ts";
import { BERTH_CHAIN, type ChainRow } from "./chain.ts";
import { tabulateRequests } from "./requests.ts";
import type { StormFigures } from "./storm.ts";
import type { PeerFigures } from "./targets.ts";

export function summarize({ series, requests, chains, storms }: PeerFigures): Table[] {
  return [
    summarizeTimes("ADD of IPAM alone, p50 / p99, milliseconds", series, "add"),
    summarizeTimes("DEL of IPAM alone, p50 / p99, milliseconds", series, "del"),
    summarizeChains(chains),
    ...storms.map(summarizeStorm),
    tabulateRequests(requests),
  ];
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
  return tableOf<ChainRow>(
    "The chain of a NIC until the first ping is answered, p50 / p99, milliseconds",
    [
      ["chain", ({ name }) => name],
      ["ADD", ({ adds }) => pair(adds)],
      ["times Berth's", ({ adds }) => wallMs(adds, 0.5) / own],
      ["DEL", ({ dels }) => pair(dels)],
    ],
    all,
  );
}

function summarizeStorm({ name: storm, nodes, pods, rows }: StormFigures): Table {
  return tableOf(
    `${storm === "storm" ? "A storm" : "An exact fit"}: ${pods} pods on ${nodes} nodes at once, and back`,
    [
      ["IPAM", ({ name }) => name],
      ["pods with an address", ({ live, upMs }) => `${live} of ${pods} after ${formatFigure(upMs / 1000)} s`],
      ["pods/s", ({ live, upMs }) => (live * 1000) / upMs],
      ["ADD", ({ add }) => pair(succeeded(add))],
      ["failed ADDs", ({ add }) => String(add.length - succeeded(add).length)],
      ["duplicates", ({ duplicates }) => String(duplicates)],
      ["leaked", ({ leaked }) => String(leaked)],
      ["daemons MiB", ({ daemonsMib }) => (daemonsMib === 0 ? undefined : daemonsMib)],
    ],
    rows,
  );
}
