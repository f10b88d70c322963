/** The coordinator benchmark's figures as tables, and the design's targets against them. */

import { formatFigure, mean, percentile, type Table } from "../../test/lab/statistics.ts";
import { atMost, type Target } from "../harness/report.ts";
import { type Sample, wallMs } from "../harness/runner.ts";
import { type AloneRow, type Calls, FAMILY_CHOICES } from "./alone.ts";
import { type ChainRow, REFERENCE, WHOLE } from "./chain.ts";
import { WINDOW_MS } from "./configuration.ts";
import { type DetectionRow, PROBING_AT_ONCE } from "./detection.ts";
import type { HealthRow } from "./event-loop.ts";
import type { RateRow } from "./rates.ts";

export interface CoordinatorFigures {
  readonly alone: readonly AloneRow[];
  readonly chains: readonly ChainRow[];
  readonly rates: readonly RateRow[];
  readonly health: readonly HealthRow[];
  readonly detection: readonly DetectionRow[];
  /** ADDs that probe at once. */
  readonly probing: readonly Sample[];
}

/** The floor beside the targets. */
export const FLOOR = "shim + trivial agent in C";

const ADD_MS = { IPv4: 3, "dual stack": 3.5 } as const;
const FLATNESS = 1.1;
const CHAIN_RATIO = 1.2;
const DEL_RATIO = 1.2;
const CPU_RATIO = 1.1;
const SILENCE_MS = 20;
const CONFLICT_MS = 5;
const PROBING_SURPLUS_MS = 50;

export function tabulate({ alone, chains, rates, health, detection, probing }: CoordinatorFigures): Table[] {
  return [
    aloneTable(alone),
    healthTable(health),
    ...VERBS.map((verb) => chainTable(chains, verb)),
    rateTable(rates),
    detectionTable(detection),
    probingTable(probing),
  ];
}

function aloneTable(rows: readonly AloneRow[]): Table {
  const columns = [
    "the coordinator alone",
    "ADD p50",
    "p95",
    "p99",
    "CPU per ADD: plugin + agent",
    "CHECK p50",
    "p99",
    "DEL p50",
    "p99",
    "CPU per DEL",
  ];
  return {
    title: "ADD, CHECK and DEL",
    columns,
    rows: rows.map(({ name, add, check, del }) => [
      name,
      ...[0.5, 0.95, 0.99].map((share) => formatFigure(wallMs(add.samples, share))),
      cpu(add),
      ...[0.5, 0.99].map((share) => (check === undefined ? "-" : formatFigure(wallMs(check.samples, share)))),
      ...[0.5, 0.99].map((share) => (del === undefined ? "-" : formatFigure(wallMs(del.samples, share)))),
      del === undefined ? "-" : cpu(del),
    ]),
  };
}

function cpu({ samples, agentMs }: Calls): string {
  return `${formatFigure(mean(samples.map(({ cpuMs }) => cpuMs)))} + ${formatFigure(mean(agentMs))}`;
}

function healthTable(rows: readonly HealthRow[]): Table {
  return {
    title: "The agent's answers to other questions (GET /v1/health)",
    isDetail: true,
    columns: ["meanwhile", "p50", "p95", "p99", "longest", "questions"],
    rows: rows.map(({ name, answerMs }) => [
      name,
      ...[0.5, 0.95, 0.99, 1].map((share) => formatFigure(percentile(answerMs, share))),
      String(answerMs.length),
    ]),
  };
}

interface Verb {
  readonly name: "ADD" | "DEL";
  readonly title: string;
  readonly samplesOf: (row: ChainRow) => readonly Sample[];
  /** Which step of the whole chain is the coordinator. */
  readonly coordinatorStep: number;
  /** Largest ratio to the reference. */
  readonly limit: number;
}

const VERBS: readonly Verb[] = [
  {
    ...{ name: "ADD", title: "The chain of a NIC, IPv4, without detection", coordinatorStep: 1, limit: CHAIN_RATIO },
    samplesOf: ({ samples }) => samples,
  },
  {
    ...{ name: "DEL", title: "The same chains' DEL", coordinatorStep: 0, limit: DEL_RATIO },
    samplesOf: ({ dels }) => dels,
  },
];

function chainTable(rows: readonly ChainRow[], { name: verb, title, samplesOf, coordinatorStep }: Verb): Table {
  return {
    title,
    columns: [verb, "p50", "p95", "p99", "ratio p50", "ratio p99", "of it coordinator, p50", "CPU of the plugins"],
    rows: rows.map((row) => {
      const samples = samplesOf(row);
      const references = referenceSamples(row, rows, samplesOf);
      const ratio = (share: number): string => formatFigure(wallMs(samples, share) / wallMs(references, share));
      const coordinator = row.name === WHOLE ? samples.flatMap(({ stepMs }) => stepMs[coordinatorStep] ?? []) : [];
      return [
        `${row.name}, ${row.node}`,
        ...[0.5, 0.95, 0.99].map((share) => formatFigure(wallMs(samples, share))),
        ...[0.5, 0.99].map(ratio),
        formatFigure(percentile(coordinator, 0.5)),
        formatFigure(mean(samples.map(({ cpuMs }) => cpuMs))),
      ];
    }),
  };
}

function referenceSamples({ node }: ChainRow, rows: readonly ChainRow[], samplesOf: Verb["samplesOf"]) {
  return rows.filter((row) => row.node === node && row.name === REFERENCE).flatMap(samplesOf);
}

const median = (values: readonly number[]): number => percentile(values, 0.5);

function rateTable(rows: readonly RateRow[]): Table {
  return {
    title: "Pairs of ADD and DEL of the same chains",
    columns: [
      "at once",
      "pairs/s",
      "ratio",
      "pair p50",
      "p99",
      "CPU per pair: plugins + agent",
      "ratio",
      "all gone after",
    ],
    rows: rows.map((row) => {
      const reference = referenceOf(row, rows);
      return [
        `${row.atOnce}: ${row.name}, ${row.node}`,
        formatFigure(median(row.perSecond)),
        formatFigure(median(row.perSecond) / median(reference?.perSecond ?? [])),
        ...[0.5, 0.99].map((share) => formatFigure(wallMs(row.samples, share))),
        `${formatFigure(median(row.pluginMs))} + ${formatFigure(median(row.agentMs))}`,
        formatFigure(cpuOf(row) / (reference === undefined ? Number.NaN : cpuOf(reference))),
        formatFigure(median(row.goneMs)),
      ];
    }),
  };
}

function referenceOf({ node, atOnce }: RateRow, rows: readonly RateRow[]): RateRow | undefined {
  return rows.find((row) => row.node === node && row.atOnce === atOnce && row.name === REFERENCE);
}

/** The reference has no agent: what Berth's does meanwhile is not its. */
function cpuOf({ name, pluginMs, agentMs }: RateRow): number {
  return median(pluginMs) + (name === REFERENCE ? 0 : median(agentMs));
}

function detectionTable(rows: readonly DetectionRow[]): Table {
  return {
    title: "What detection adds to an ADD",
    columns: ["stage", "without, p50", "with, p50", "of it window", "surplus p50", "p95", "longest"],
    rows: rows.map((row) => [
      row.name,
      formatFigure(wallMs(row.without, 0.5)),
      formatFigure(wallMs(row.with, 0.5)),
      formatFigure(row.dueMs),
      ...[0.5, 0.95, 1].map((share) => formatFigure(percentile(surplusMs(row), share))),
    ]),
  };
}

function probingTable(samples: readonly Sample[]): Table {
  return {
    title: "ADDs that probe at once",
    isDetail: true,
    columns: ["early stage: berth", "p50", "p99", "longest", "of it window"],
    rows: [
      [
        `${PROBING_AT_ONCE} pods`,
        ...[0.5, 0.99, 1].map((share) => formatFigure(wallMs(samples, share))),
        formatFigure(WINDOW_MS),
      ],
    ],
  };
}

/** Of each pair: what the call with detection took longer than the one without, and than it has to. */
export function surplusMs({ without, with: asking, dueMs }: DetectionRow): number[] {
  return asking.flatMap(({ wallMs }, index) => {
    const before = without[index];
    return before === undefined ? [] : [wallMs - before.wallMs - dueMs];
  });
}

export function targetsOf({ alone, chains, rates, detection, probing }: CoordinatorFigures): Target[] {
  const floor = wallMs(alone.find(({ name }) => name === FLOOR)?.add.samples ?? [], 0.5);
  return [
    ...alone
      .filter(({ check }) => check !== undefined)
      .map(({ name, families = "IPv4", add }) =>
        within(`ADD p50: ${name}`, ADD_MS[families], wallMs(add.samples, 0.5), `floor ${formatFigure(floor)}`),
      ),
    ...flatnessTargets(alone),
    ...VERBS.flatMap((verb) =>
      chains.filter(({ name }) => name === WHOLE).map((row) => chainTarget(row, chains, verb)),
    ),
    ...rates.filter(({ name }) => name === WHOLE).flatMap((row) => rateTargets(row, rates)),
    ...detection.map((row) => {
      const [limit, what] =
        row.dueMs > 0 ? [SILENCE_MS, "surplus over the window"] : [CONFLICT_MS, "until it is reported"];
      return within(`${row.name}: ${what}, p50`, limit, percentile(surplusMs(row), 0.5));
    }),
    within(
      `${PROBING_AT_ONCE} ADDs that probe at once: surplus over the window, p99`,
      PROBING_SURPLUS_MS,
      wallMs(probing, 0.99) - WINDOW_MS,
    ),
  ];
}

/** An ADD is to take as long on the node with the most pods as on the one without. */
function flatnessTargets(rows: readonly AloneRow[]): Target[] {
  return FAMILY_CHOICES.flatMap((families) => {
    const ofFamilies = rows.filter((row) => row.families === families);
    const [first, last] = [ofFamilies[0], ofFamilies.at(-1)];
    if (first === undefined || last === undefined || first === last) return [];
    return atMost({
      what: `ADD p50: ${last.name}`,
      limit: FLATNESS,
      base: "no other pod",
      valueMs: wallMs(last.add.samples, 0.5),
      baseMs: wallMs(first.add.samples, 0.5),
    });
  });
}

function chainTarget(row: ChainRow, rows: readonly ChainRow[], { name, samplesOf, limit }: Verb): Target {
  return atMost({
    ...{ what: `the chain's ${name} p50, ${row.node}`, limit, base: "macvlan + host-local" },
    ...{ valueMs: wallMs(samplesOf(row), 0.5), baseMs: wallMs(referenceSamples(row, rows, samplesOf), 0.5) },
  });
}

function rateTargets(row: RateRow, rows: readonly RateRow[]): Target[] {
  const reference = referenceOf(row, rows);
  if (reference === undefined) return [];
  const [rate, other] = [median(row.perSecond), median(reference.perSecond)];
  const cpu = atMost({
    ...{ what: `CPU of a pair, ${row.atOnce} at once, ${row.node}`, limit: CPU_RATIO, base: "macvlan + host-local" },
    ...{ valueMs: cpuOf(row), baseMs: cpuOf(reference) },
  });
  if (row.atOnce === 1) return [cpu];
  const measured = `${formatFigure(rate / other)} × (${formatFigure(rate)} of ${formatFigure(other)}/s)`;
  const what = `pairs per second, ${row.atOnce} at once, ${row.node}`;
  return [{ what, wanted: "≥ 1 × macvlan + host-local", measured, isMet: rate >= other }, cpu];
}

function within(what: string, limitMs: number, valueMs: number, remark?: string): Target {
  const measured = `${formatFigure(valueMs)} ms${remark === undefined ? "" : ` (${remark})`}`;
  return { what, wanted: `≤ ${limitMs} ms`, measured, isMet: valueMs <= limitMs };
}
