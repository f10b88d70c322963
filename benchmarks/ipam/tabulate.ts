/** The IPAM benchmark's figures as a table, and the design's targets against them. */
import type { Table, Target } from "../harness/report.ts";
import type { Sample } from "../harness/runner.ts";
import { formatFigure, mean, percentile } from "../harness/statistics.ts";
import type { Measured } from "./measure.ts";

/** The same contestants, one call at a time and many at once. */
export interface Series {
  readonly single: readonly Measured[];
  readonly atOnce: readonly Measured[];
}

const REFERENCE = "host-local, empty /24";
const SUBJECT = "berth, empty /24";
const FULLEST = "berth, /12 at 99 %";
const FLOOR = "shim + trivial agent in C";

/** How much slower the fullest pool may be than the empty one and still count as flat. */
const FLAT = 1.2;

const COLUMNS = [
  "IPAM alone",
  "ADD p50",
  "p99",
  "ratio p50",
  "ratio p99",
  "DEL p50",
  "p99",
  "CPU per ADD: plugin + daemon",
  "40 at once: ADD/s",
  "DEL/s",
  "daemon MiB",
];

/** The rows of `quick` and those of `slow` that are not in `quick`, each with ratios within its own series. */
export function tabulate(quick: Series, slow: Series): Table {
  const names = new Set(quick.single.map(({ name }) => name));
  const isNew = (row: readonly string[]): boolean => !names.has(row[0] ?? "");
  return { title: "ADD and DEL", columns: COLUMNS, rows: [...rowsOf(quick), ...rowsOf(slow).filter(isNew)] };
}

function rowsOf({ single, atOnce }: Series): string[][] {
  const reference = single.find(({ name }) => name === REFERENCE);
  return single.map((measured) => {
    const [p50, p99] = [wall(measured.add, 0.5), wall(measured.add, 0.99)];
    const ratio = (value: number, share: number): string =>
      reference === undefined ? "-" : formatFigure(value / wall(reference.add, share));
    const rates = atOnce.find(({ name }) => name === measured.name);
    const plugin = mean(measured.add.map(({ cpuMs }) => cpuMs));
    return [
      measured.name,
      formatFigure(p50),
      formatFigure(p99),
      ratio(p50, 0.5),
      ratio(p99, 0.99),
      formatFigure(wall(measured.del, 0.5)),
      formatFigure(wall(measured.del, 0.99)),
      `${formatFigure(plugin)} + ${formatFigure(mean(measured.daemonAddMs))}`,
      formatFigure(percentile(rates?.addRates ?? [], 0.5)),
      formatFigure(percentile(rates?.delRates ?? [], 0.5)),
      rates?.rssMib === undefined ? "-" : formatFigure(rates.rssMib),
    ];
  });
}

/** Empty unless Berth took part. */
export function targetsOf(series: Series): Target[] {
  const of = (name: string): Measured | undefined => series.single.find((measured) => measured.name === name);
  const [berth, hostLocal, fullest, floor] = [of(SUBJECT), of(REFERENCE), of(FULLEST), of(FLOOR)];
  if (berth === undefined || hostLocal === undefined) return [];
  const targets = [0.5, 0.99].map((share) =>
    atMost(`ADD p${share * 100}, empty /24`, 0.5, "host-local's", {
      value: wall(berth.add, share),
      base: wall(hostLocal.add, share),
      floor: wall(floor?.add ?? [], share),
    }),
  );
  if (fullest !== undefined) {
    const [value, base] = [wall(fullest.add, 0.5), wall(berth.add, 0.5)];
    const compared = { value, base, floor: wall(floor?.add ?? [], 0.5) };
    targets.push(atMost("ADD p50 is flat: /12 at 99 %", FLAT, "that of the empty /24", compared));
  }
  return [...targets, ratesTarget(series)];
}

interface Compared {
  readonly value: number;
  readonly base: number;
  readonly floor: number;
}

function atMost(what: string, limit: number, of: string, { value, base, floor }: Compared): Target {
  const figures = `${formatFigure(value)} of ${formatFigure(base)} ms, floor ${formatFigure(floor)}`;
  return {
    what,
    wanted: `≤ ${limit} × ${of}`,
    measured: `${formatFigure(value / base)} × (${figures})`,
    isMet: value <= limit * base,
  };
}

function ratesTarget({ atOnce }: Series): Target {
  const rate = (name: string): number =>
    percentile(atOnce.find((measured) => measured.name === name)?.addRates ?? [], 0.5);
  const [berth, hostLocal, floor] = [rate(SUBJECT), rate(REFERENCE), rate(FLOOR)];
  const figures = `${formatFigure(berth)} and ${formatFigure(hostLocal)} per second, floor ${formatFigure(floor)}`;
  return {
    what: "ADDs, 40 at once",
    wanted: "≥ 2 × host-local's rate",
    measured: `${formatFigure(berth / hostLocal)} × (${figures})`,
    isMet: berth >= 2 * hostLocal,
  };
}

function wall(samples: readonly Sample[], share: number): number {
  return percentile(
    samples.map(({ wallMs }) => wallMs),
    share,
  );
}
