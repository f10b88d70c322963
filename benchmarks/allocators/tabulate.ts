/** The figures of a contest as tables. */
import { formatFigure, percentile, type Table } from "../../test/lab/statistics.ts";
import { type Contest, type Form, findNs } from "./contest.ts";
import type { Contestant } from "./contestants.ts";

const UNITS = [
  { ns: 1e9, name: "s" },
  { ns: 1e6, name: "ms" },
  { ns: 1e3, name: "µs" },
  { ns: 1, name: "ns" },
];

/** Three significant digits and a unit: 55.1 ns, 70.2 µs, 1.50 s; a dash for none. */
export function formatNs(ns: number | undefined): string {
  if (ns === undefined) return "-";
  const unit = UNITS.find((candidate) => ns >= candidate.ns) ?? { ns: 1, name: "ns" };
  return `${formatFigure(ns / unit.ns)} ${unit.name}`;
}

export const FORM_NAMES: Readonly<Record<Exclude<Form, "call">, string>> = {
  one: "an address of the language",
  "one-value": "family and number",
  raw: "bytes",
  ordinal: "ordinals",
  batch: "batch, per address",
};

/** Every contestant on every pool: the peers first, then ours by form. */
export function tabulatePools(contest: Contest): Table {
  const { shapes, contestants } = contest;
  const row = ({ name }: Contestant, form: Form, title: string): string[] => [
    title,
    ...shapes.map((shape) =>
      isRefused(contest, name, shape) ? "refused" : formatNs(findNs(contest, name, form, shape)),
    ),
  ];
  const own = contestants.filter(({ kind }) => kind === "berth");
  const rows = [
    ...contestants.filter(({ kind }) => kind === "peer").map((peer) => row(peer, "one", peer.label)),
    ...Object.entries(FORM_NAMES).flatMap(([form, what]) =>
      own.map((contestant) => row(contestant, form as Form, `Berth, ${contestant.label}: ${what}`)),
    ),
  ];
  return {
    title: "Take the next free address and give it back",
    columns: ["", ...shapes],
    rows: rows.filter((cells) => cells.slice(1).some((cell) => cell !== "-")),
  };
}

function isRefused({ words }: Contest, runtime: string, shape: string): boolean {
  return words.some((word) => word.form === "refusal" && word.runtime === runtime && word.shape === shape);
}

/** The calls that the shortest form needs: take, give back. */
export const CALLS_PER_PAIR = 2;

/** What a call into the core costs in each runtime, its share of a pair, and what is left of it in a batch. */
export function tabulateCalls(contest: Contest): Table {
  const middle = (runtime: string, form: Form): number =>
    percentile(
      contest.shapes.flatMap((shape) => findNs(contest, runtime, form, shape) ?? []),
      0.5,
    );
  const share = (part: number, whole: number): string =>
    Number.isFinite(part / whole) ? `${((100 * part) / whole).toFixed(0)} %` : "-";
  const rows = contest.contestants
    .filter(({ name, kind }) => kind === "berth" && findNs(contest, name, "call", "") !== undefined)
    .map(({ name, label }) => {
      const call = findNs(contest, name, "call", "") ?? Number.NaN;
      const [one, raw, batch] = [middle(name, "one"), middle(name, "raw"), middle(name, "batch")];
      return [
        label,
        formatNs(call),
        formatNs(finite(one)),
        share(CALLS_PER_PAIR * call, one),
        formatNs(finite(raw)),
        share(CALLS_PER_PAIR * call, raw),
        formatNs(finite(batch)),
        Number.isFinite(one / batch) ? `${formatFigure(one / batch)} ×` : "-",
      ];
    });
  return {
    title: "What the border costs (a pair: the median of the pools)",
    columns: [
      "from",
      "an empty call",
      "a pair, address of the language",
      "of it two calls",
      "a pair, bytes",
      "of it two calls",
      "batch, per address",
      "address / batch",
    ],
    rows,
  };
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}
