/**
 * The figures as a node sees them: the states of the agent beside each other, and the sentence for readers who choose.
 */
import { formatFigure, percentile, type Table } from "../../test/lab/statistics.ts";
import { type Column, tableOf } from "../harness/table.ts";
import type { CallerOutcome } from "./caller.ts";

export const PEER = "host-local";
export const BERTH = "Berth";

/** Number of pods that an agent has served when it is measured. A node sees the first, which the headline reports. */
export const SERVED = [30, 600] as const;

export const AT_ONCE = 8;

export interface Kind {
  readonly name: "IPAM" | "chain";
  readonly atOnce: number;
}

/** Measurement of one agent, or of the peer beside it. */
export interface Cell {
  readonly kind: Kind;
  readonly served: number;
  readonly contestant: typeof PEER | typeof BERTH;
  readonly pods: number;
  readonly outcome: CallerOutcome;
}

type Verb = "ADD" | "DEL";

interface Call {
  readonly kind: Kind["name"];
  readonly verb: Verb;
}

const CALLS: readonly Call[] = (["IPAM", "chain"] as const).flatMap((kind) =>
  (["ADD", "DEL"] as const).map((verb) => ({ kind, verb })),
);

export function tabulate(cells: readonly Cell[]): Table[] {
  const p = (call: Call, contestant: Cell["contestant"], served: number, share: number): number =>
    percentile(timesOf(cells, call, contestant, served), share);
  const calls = SERVED.flatMap((served): Column<Call>[] => [
    [`after ${served} pods: ${PEER} p50`, (call) => p(call, PEER, served, 0.5)],
    ["p90", (call) => p(call, PEER, served, 0.9)],
    [`${BERTH} p50`, (call) => p(call, BERTH, served, 0.5)],
    ["p90", (call) => p(call, BERTH, served, 0.9)],
    ["ratio", (call) => ratioOf(cells, call, served)],
  ]);
  const rates: Column<Cell["contestant"]>[] = SERVED.flatMap((served): Column<Cell["contestant"]>[] => [
    [`after ${served} pods: pods/s`, (contestant) => rateOf(cells, contestant, served)],
    ["ratio", (contestant) => rateOf(cells, contestant, served) / rateOf(cells, PEER, served)],
  ]);
  return [
    tableOf("One call at a time", [["call", ({ kind, verb }) => `${kind} ${verb}`], ...calls], CALLS),
    tableOf(`Chains, ${AT_ONCE} at once`, [["IPAM", (contestant) => contestant], ...rates], [PEER, BERTH]),
  ];
}

/** Returns the ratios of both states in two sentences. */
export function describeHeadline(cells: readonly Cell[]): string {
  const ratio = (kind: Kind["name"], verb: Verb, served: number): string =>
    `${formatFigure(ratioOf(cells, { kind, verb }, served))} ×`;
  const rate = (served: number): string =>
    `${formatFigure(rateOf(cells, BERTH, served) / rateOf(cells, PEER, served))} ×`;
  const [few, many] = SERVED;
  return [
    `On an agent that has served ${few} pods, an ADD of IPAM takes ${ratio("IPAM", "ADD", few)} host-local's time and a DEL ${ratio("IPAM", "DEL", few)}.`,
    `macvlan + berth + coordinator takes ${ratio("chain", "ADD", few)} the time of macvlan + host-local for an ADD and ${ratio("chain", "DEL", few)} for a DEL; ${AT_ONCE} at once, it serves ${rate(few)} as many pods in a second.`,
    `After ${many} pods: ${ratio("IPAM", "ADD", many)} and ${ratio("IPAM", "DEL", many)}, ${ratio("chain", "ADD", many)} and ${ratio("chain", "DEL", many)}, ${rate(many)}.`,
  ].join("\n");
}

function timesOf(
  cells: readonly Cell[],
  { kind, verb }: Call,
  contestant: Cell["contestant"],
  served: number,
): number[] {
  return cells
    .filter((cell) => cell.kind.name === kind && cell.kind.atOnce === 1)
    .filter((cell) => cell.contestant === contestant && cell.served === served)
    .flatMap(({ outcome }) => (verb === "ADD" ? outcome.addMs : outcome.delMs));
}

/** Berth's median as a multiple of the peer's. */
function ratioOf(cells: readonly Cell[], call: Call, served: number): number {
  const [own, theirs] = ([BERTH, PEER] as const).map((name) => percentile(timesOf(cells, call, name, served), 0.5));
  return (own ?? Number.NaN) / (theirs ?? Number.NaN);
}

/** Pods in a second, of all agents together. */
function rateOf(cells: readonly Cell[], contestant: Cell["contestant"], served: number): number {
  const found = cells.filter(
    (cell) => cell.kind.atOnce === AT_ONCE && cell.contestant === contestant && cell.served === served,
  );
  const sum = (figure: (cell: Cell) => number): number => found.reduce((total, cell) => total + figure(cell), 0);
  return (sum(({ pods }) => pods) * 1000) / sum(({ outcome }) => outcome.wallMs);
}
