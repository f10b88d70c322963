/** Figures of ADD and DEL as a table, and the design's targets against them: of IPAM alone and of IPAM in a cluster. */

import { formatFigure, mean, type Table } from "../../test/lab/statistics.ts";
import { BERTH_AHEAD, BERTH_PLAIN } from "../cluster/berth.ts";
import { atMost, type Target } from "../harness/report.ts";
import { wallMs } from "../harness/runner.ts";
import type { Measured } from "./measure.ts";

/** The same contestants, one call at a time and many at once. */
export interface Series {
  readonly single: readonly Measured[];
  readonly atOnce: readonly Measured[];
}

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
export const CREATE_FLOOR = "shim + agent that only creates";

/** Of the rate of bare creates, which ADDs in a cluster should reach. */
const SHARE_OF_BARE = 0.8;

/** How much slower the fullest pool may be than the empty one and still count as flat. */
const FLAT = 1.2;

const ALONE: readonly Comparison[] = [
  { title: "ratio p50", base: HOST_LOCAL, share: 0.5 },
  { title: "ratio p99", base: HOST_LOCAL, share: 0.99 },
];
const IN_CLUSTER: readonly Comparison[] = [
  { title: "of host-local's", base: HOST_LOCAL, share: 0.5 },
  { title: "of a bare create", base: BARE_CREATE, share: 0.5 },
];

function columnsOf(title: string, comparisons: readonly Comparison[], daemon: string): string[] {
  const rates = ["40 at once: ADD/s", "DEL/s", `${daemon} MiB`];
  const ratios = comparisons.map((comparison) => comparison.title);
  return [title, "ADD p50", "p99", ...ratios, "DEL p50", "p99", `CPU per ADD: plugin + ${daemon}`, ...rates];
}

/** The rows of `quick` and those of `slow` that are not in `quick`, each with ratios within its own series. */
export function tabulate(quick: Series, slow: Series): Table {
  const names = new Set(quick.single.map(({ name }) => name));
  const isNew = (row: readonly string[]): boolean => !names.has(row[0] ?? "");
  const rows = [...rowsOf(quick, ALONE), ...rowsOf(slow, ALONE).filter(isNew)];
  return { title: "ADD and DEL", columns: columnsOf("IPAM alone", ALONE, "daemon"), rows };
}

export function tabulateCluster(series: Series): Table {
  const columns = columnsOf("IPAM in a cluster", IN_CLUSTER, "agent");
  return { title: "ADD and DEL", columns, rows: rowsOf(series, IN_CLUSTER) };
}

function rowsOf({ single, atOnce }: Series, comparisons: readonly Comparison[]): string[][] {
  return single.map(({ name, add, del, daemonAddMs }) => {
    const rates = atOnce.find((measured) => measured.name === name);
    const cpu = `${formatFigure(mean(add.map(({ cpuMs }) => cpuMs)))} + ${formatFigure(mean(daemonAddMs))}`;
    return [
      name,
      ...[0.5, 0.99].map((share) => formatFigure(wallMs(add, share))),
      ...comparisons.map(({ base, share }) => {
        const found = single.find((measured) => measured.name === base);
        return found === undefined ? "-" : formatFigure(wallMs(add, share) / wallMs(found.add, share));
      }),
      ...[0.5, 0.99].map((share) => formatFigure(wallMs(del, share))),
      name === BARE_CREATE ? "-" : cpu,
      formatFigure(overallRate(rates?.addRates ?? [])),
      formatFigure(overallRate(rates?.delRates ?? [])),
      rates?.rssMib === undefined ? "-" : formatFigure(rates.rssMib),
    ];
  });
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
        ...{ what: `ADD p${share * 100}, empty /24`, limit: share === 0.5 ? 0.4 : 0.6, base: "host-local's" },
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
  const floor = (name: string, share: number): string => `floor ${formatFigure(p(name, share))}`;
  return [0.5, 0.99].flatMap((share) => [
    atMost({
      ...{ what: `ADD p${share * 100}, claimed ahead`, limit: share === 0.5 ? 0.5 : 0.6, base: "host-local's" },
      ...{ valueMs: p(BERTH_AHEAD, share), baseMs: p(HOST_LOCAL, share), remark: floor(FLOOR, share) },
    }),
    atMost({
      ...{ what: `ADD p${share * 100}, nothing claimed ahead`, limit: 2, base: "one bare create" },
      ...{ valueMs: p(BERTH_PLAIN, share), baseMs: p(BARE_CREATE, share), remark: floor(CREATE_FLOOR, share) },
    }),
  ]);
}

/** ADDs in a second, of all rounds together. */
function addRateOf(all: readonly Measured[], name: string): number {
  return overallRate(all.find((measured) => measured.name === name)?.addRates ?? []);
}

/** Of rounds of as many calls each: all calls by all the time, for rounds may be of two kinds, as an API server with little of a processor has them. */
function overallRate(rates: readonly number[]): number {
  return 1 / mean(rates.map((rate) => 1 / rate));
}

/** The rates of contestants that call the API server, which has that share of one processor. */
export function tabulateApart(apart: readonly Measured[], share: number): Table {
  const bare = addRateOf(apart, BARE_CREATE);
  return {
    title: `40 at once, the API server and etcd with ${share} of a processor of their own`,
    columns: ["IPAM in a cluster", "ADD/s", "of bare creates"],
    rows: apart.map(({ name }) => {
      const rate = addRateOf(apart, name);
      return [name, formatFigure(rate), formatFigure(rate / bare)];
    }),
  };
}

export function rateTargetsOf(apart: readonly Measured[]): Target[] {
  const rate = (name: string): number => addRateOf(apart, name);
  const bare = rate(BARE_CREATE);
  return [BERTH_AHEAD, BERTH_PLAIN].map((name) => ({
    what: `ADDs, 40 at once, the API server apart: ${name}`,
    wanted: `≥ ${SHARE_OF_BARE} × the rate of bare creates`,
    measured: `${formatFigure(rate(name) / bare)} × (${formatFigure(rate(name))} and ${formatFigure(bare)} per second, floor ${formatFigure(rate(CREATE_FLOOR))})`,
    isMet: rate(name) >= SHARE_OF_BARE * bare,
  }));
}
