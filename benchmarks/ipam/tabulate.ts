/** Figures of ADD and DEL as a table, and the design's targets against them: of IPAM alone and of IPAM in a cluster. */

import { formatFigure, mean, type Table } from "../../test/lab/statistics.ts";
import { BERTH_AHEAD, BERTH_PLAIN } from "../cluster/berth.ts";
import { atMost, type Target } from "../harness/report.ts";
import { wallMs } from "../harness/runner.ts";
import { type Column, cpuOf, tableOf, times } from "../harness/table.ts";
import type { Measured, Series } from "./measure.ts";

/** A column that compares a contestant's ADD with another contestant's of the same series. */
interface Comparison {
  readonly title: string;
  readonly base: string;
  readonly share: number;
}

const HOST_LOCAL = "host-local, empty /24";
const SUBJECT = "berth, empty /24";
const FULLEST = "berth, /12 at 99 %";
const FLOOR = "shim + trivial agent in C";
export const BARE_CREATE = "one bare create, one delete";

/** Highest ratio of the fullest pool's time to the empty one's that still counts as flat. */
const FLAT = 1.2;

const ALONE: readonly Comparison[] = [
  { title: "ratio p50", base: HOST_LOCAL, share: 0.5 },
  { title: "ratio p99", base: HOST_LOCAL, share: 0.99 },
];
const IN_CLUSTER: readonly Comparison[] = [
  { title: "of host-local's", base: HOST_LOCAL, share: 0.5 },
  { title: "of a bare create", base: BARE_CREATE, share: 0.5 },
];

function columnsOf(
  title: string,
  { single, atOnce }: Series,
  { comparisons, daemon }: { readonly comparisons: readonly Comparison[]; readonly daemon: string },
): Column<Measured>[] {
  const many = ({ name }: Measured) => atOnce.find((measured) => measured.name === name);
  return [
    [title, ({ name }) => name],
    ...times<Measured>("ADD", ({ add }) => add),
    ...comparisons.map(({ title: ratio, base, share }): Column<Measured> => {
      const found = single.find(({ name }) => name === base);
      return [ratio, ({ add }) => found && wallMs(add, share) / wallMs(found.add, share)];
    }),
    ...times<Measured>("DEL", ({ del }) => del),
    [
      `CPU per ADD: plugin + ${daemon}`,
      ({ name, add, daemonAddMs }) => (name === BARE_CREATE ? "-" : cpuOf(add, daemonAddMs)),
    ],
    ["40 at once: ADD/s", (row) => overallRate(many(row)?.addRates ?? [])],
    ["DEL/s", (row) => overallRate(many(row)?.delRates ?? [])],
    [`${daemon} MiB`, (row) => many(row)?.rssMib],
  ];
}

export function tabulate(series: Series): Table {
  const columns = columnsOf("IPAM alone", series, { comparisons: ALONE, daemon: "daemon" });
  return tableOf("ADD and DEL", columns, series.single);
}

export function tabulateCluster(series: Series): Table {
  const columns = columnsOf("IPAM in a cluster", series, { comparisons: IN_CLUSTER, daemon: "agent" });
  return tableOf("ADD and DEL", columns, series.single);
}

/** Empty unless Berth took part. */
export function targetsOf({ single, atOnce }: Series): Target[] {
  const p = (name: string, share: number): number =>
    wallMs(single.find((measured) => measured.name === name)?.add ?? [], share);
  const hasRun = (name: string): boolean => single.some((measured) => measured.name === name);
  const rate = (name: string): number => addRateOf(atOnce, name);
  if (!hasRun(SUBJECT) || !hasRun(HOST_LOCAL)) return [];
  const floor = (share: number): string => `floor ${formatFigure(p(FLOOR, share))}`;
  const [berth, hostLocal] = [rate(SUBJECT), rate(HOST_LOCAL)];
  const flat = {
    ...{ what: "ADD p50 is flat: /12 at 99 %", limit: FLAT, base: "that of the empty /24" },
    ...{ valueMs: p(FULLEST, 0.5), baseMs: p(SUBJECT, 0.5), remark: floor(0.5) },
  };
  return [
    ...[0.5, 0.99].map((share) =>
      atMost({
        ...{ what: `ADD p${share * 100}, empty /24`, limit: share === 0.5 ? 0.5 : 0.9, base: "host-local's" },
        ...{ valueMs: p(SUBJECT, share), baseMs: p(HOST_LOCAL, share), remark: floor(share) },
      }),
    ),
    ...(hasRun(FULLEST) ? [atMost(flat)] : []),
    {
      what: "ADDs, 40 at once",
      wanted: "≥ 2 × host-local's rate",
      measured: `${formatFigure(berth / hostLocal)} × (${formatFigure(berth)} and ${formatFigure(hostLocal)} per second, floor ${formatFigure(rate(FLOOR))})`,
      isMet: berth >= 2 * hostLocal,
    },
  ];
}

export function clusterTargetsOf(single: readonly Measured[]): Target[] {
  const p = (name: string, share: number): number =>
    wallMs(single.find((measured) => measured.name === name)?.add ?? [], share);
  const floor = (share: number): string => `floor ${formatFigure(p(FLOOR, share))}`;
  return [0.5, 0.99].flatMap((share) => [
    atMost({
      ...{ what: `ADD p${share * 100}, claimed ahead`, limit: 0.6, base: "host-local's" },
      ...{ valueMs: p(BERTH_AHEAD, share), baseMs: p(HOST_LOCAL, share), remark: floor(share) },
    }),
    atMost({
      ...{ what: `ADD p${share * 100}, nothing claimed ahead`, limit: 2, base: "one bare create" },
      ...{ valueMs: p(BERTH_PLAIN, share), baseMs: p(BARE_CREATE, share) },
    }),
  ]);
}

/** ADDs in a second, of all rounds together. */
function addRateOf(all: readonly Measured[], name: string): number {
  return overallRate(all.find((measured) => measured.name === name)?.addRates ?? []);
}

/**
 * Returns the rate over rounds of as many calls each: all calls by all the time, because an API server with little of
 * a processor has rounds of two kinds.
 */
function overallRate(rates: readonly number[]): number {
  return 1 / mean(rates.map((rate) => 1 / rate));
}
