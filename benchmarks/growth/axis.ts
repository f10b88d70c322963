/**
 * ADD and the memory of daemons as something grows: the measuring of each place, tables, plots, and whether our own
 * curves are flat.
 */
import { formatFigure, percentile, type Table } from "../../test/lab/statistics.ts";
import { drawFigure, type Figure, type Target } from "../harness/report.ts";
import { type Column, tableOf } from "../harness/table.ts";
import type { Contestant, Work } from "../ipam/contestant.ts";
import { type Course, measure } from "../ipam/measure.ts";
import { mayFail } from "../peers/alone.ts";

/** Measurement of one contestant at one place of the axis. */
export interface Point {
  readonly name: string;
  readonly place: string;
  /** From exec to exit, of each ADD. */
  readonly addMs: readonly number[];
  /** Memory of its daemon after the ADDs; undefined without one. */
  readonly rssMib: number | undefined;
}

export interface Axis {
  /** `addresses in use` */
  readonly name: string;
  /** File name of the drawings: `allocations`. */
  readonly file: string;
  /** In ascending order. */
  readonly places: readonly string[];
  readonly points: readonly Point[];
}

/** Highest ratio of an ADD's time at the last place to that at the first that still counts as flat. */
const FLAT = 1.5;

const namesOf = ({ points }: Axis): string[] => [...new Set(points.map(({ name }) => name))];

function pointAt({ points }: Axis, name: string, place: string | undefined): Point | undefined {
  return points.find((point) => point.name === name && point.place === place);
}

const p50 = (point: Point | undefined): number => percentile(point?.addMs ?? [], 0.5);
const mib = (point: Point | undefined): number => point?.rssMib ?? Number.NaN;

export function tablesOf(axis: Axis): Table[] {
  const { name: title, places } = axis;
  const columns = (cell: (point: Point | undefined) => string | number | undefined): Column<string>[] => [
    ["IPAM", (name) => name],
    ...places.map((place): Column<string> => [place, (name) => cell(pointAt(axis, name, place))]),
  ];
  const withDaemon = namesOf(axis).filter((name) => places.some((place) => pointAt(axis, name, place)?.rssMib));
  const times = (point: Point | undefined): string | undefined =>
    point && `${formatFigure(p50(point))} / ${formatFigure(percentile(point.addMs, 0.95))}`;
  return [
    tableOf(`ADD by ${title}, p50 / p95`, columns(times), namesOf(axis)),
    tableOf(`Resident memory of the daemon by ${title}, MiB`, columns(mib), withDaemon),
  ].filter(({ rows }) => rows.length > 0);
}

/** Returns the targets of the contestants that are ours. */
export function flatnessOf(axis: Axis): Target[] {
  const [first, last] = [axis.places[0], axis.places.at(-1)];
  return namesOf(axis)
    .filter((name) => name.includes("berth"))
    .map((name) => {
      const [from, to] = [p50(pointAt(axis, name, first)), p50(pointAt(axis, name, last))];
      return {
        what: `ADD p50 by ${axis.name}, ${last} against ${first}: ${name}`,
        wanted: `≤ ${FLAT} ×`,
        measured: `${formatFigure(to / from)} × (${formatFigure(to)} of ${formatFigure(from)} ms)`,
        isMet: to <= FLAT * from,
      };
    });
}

/** Of ADDs, or of the memory of daemons. */
export function figureOf(axis: Axis, what: "ADD" | "memory"): Figure {
  const { name: title, file, places } = axis;
  const value = what === "ADD" ? p50 : mib;
  const series = namesOf(axis)
    .map((name) => ({ name, values: places.map((place) => value(pointAt(axis, name, place))) }))
    .filter(({ values }) => values.some(Number.isFinite));
  return what === "ADD"
    ? drawFigure(`docs/growth-${file}.svg`, { title: `ADD p50 by ${title}`, unit: "milliseconds", places, series })
    : drawFigure(`docs/growth-${file}-memory.svg`, {
        ...{ title: `Memory of the daemon by ${title}`, unit: "MiB", places, series },
      });
}

export interface Entry {
  /** Name of the curve. */
  readonly name: string;
  readonly place: string;
  readonly contestant: Contestant<Work>;
}

/** Calls fail without ending the run: a place where all do has no samples. Pods are numbered from `first`. */
export async function measurePlaces(entries: readonly Entry[], course: Course, first = 0): Promise<Point[]> {
  const all = await measure(
    entries.map(({ contestant }) => mayFail(contestant)),
    course,
    first,
  );
  return all.map(({ add, rssMib }, index) => {
    const { name = "", place = "" } = entries[index] ?? {};
    return { name, place, addMs: add.map(({ wallMs }) => wallMs), rssMib };
  });
}

/** ADDs and DELs of each round, one at a time. */
export function courseOf(isQuick: boolean): Course {
  return { atOnce: 1, callsPerRound: isQuick ? 5 : 6, warmUpRounds: 1, rounds: isQuick ? 1 : 2 };
}

/** For axes whose calls take the better part of a second. */
export const SLOW: Course = { atOnce: 1, callsPerRound: 3, warmUpRounds: 0, rounds: 1 };
