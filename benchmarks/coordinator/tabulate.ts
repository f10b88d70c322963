/** The coordinator benchmark's figures as tables, and the design's targets against them. */

import { formatFigure, mean, percentile, type Table } from "../../test/lab/statistics.ts";
import { atMost, type Target } from "../harness/report.ts";
import { type Sample, wallMs } from "../harness/runner.ts";
import { type Column, cpuOf, percentiles, tableOf, times } from "../harness/table.ts";
import type { Measured } from "../ipam/measure.ts";
import { FAMILY_CHOICES } from "./alone.ts";
import { type ChainRow, REFERENCE, WHOLE } from "./chain.ts";
import type { DetectionRow } from "./detection.ts";
import type { RateRow } from "./rates.ts";

export interface CoordinatorFigures {
  readonly alone: readonly Measured[];
  readonly chains: readonly ChainRow[];
  readonly rates: readonly RateRow[];
  readonly detection: readonly DetectionRow[];
}

const FLATNESS = 1.1;
/** Of the chain; the kernel's work on links makes the reference's grow, too. */
const CHAIN_FLATNESS = 1.5;
const CHAIN_RATIO = 1.25;
const DEL_RATIO = 1;
/** Share of the reference's pairs per second. */
const RATE_RATIO = 0.95;
const SILENCE_MS = 20;
const CONFLICT_MS = 10;

export function tabulate({ alone, chains, rates, detection }: CoordinatorFigures): Table[] {
  return [
    tableOf("ADD and DEL", ALONE, alone),
    ...VERBS.map((verb) => tableOf(verb.title, chainColumns(chains, verb), chains)),
    tableOf("Pairs of ADD and DEL of the same chains", rateColumns(rates), rates),
    tableOf("What detection adds to an ADD", DETECTION, detection),
  ];
}

const ALONE: readonly Column<Measured>[] = [
  ["the coordinator alone", ({ name }) => name],
  ...times<Measured>("ADD", ({ add }) => add, [0.5, 0.95, 0.99]),
  ["CPU per ADD: plugin + agent", ({ add, daemonAddMs }) => cpuOf(add, daemonAddMs)],
  ...times<Measured>("DEL", ({ del }) => del),
  ["CPU per DEL", ({ del, daemonDelMs }) => cpuOf(del, daemonDelMs)],
];

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

function chainColumns(rows: readonly ChainRow[], { name, samplesOf, coordinatorStep }: Verb): Column<ChainRow>[] {
  const coordinatorMs = (row: ChainRow): number[] =>
    row.name === WHOLE ? samplesOf(row).flatMap(({ stepMs }) => stepMs[coordinatorStep] ?? []) : [];
  return [
    [name, (row) => `${row.name}, ${row.node}`],
    ...times("", samplesOf, [0.5, 0.95, 0.99]),
    ...[0.5, 0.99].map(
      (share): Column<ChainRow> => [
        `ratio p${share * 100}`,
        (row) => wallMs(samplesOf(row), share) / wallMs(referenceSamples(row, rows, samplesOf), share),
      ],
    ),
    ["of it coordinator, p50", (row) => median(coordinatorMs(row))],
    ["CPU of the plugins", (row) => mean(samplesOf(row).map(({ cpuMs }) => cpuMs))],
  ];
}

function referenceSamples({ node }: ChainRow, rows: readonly ChainRow[], samplesOf: Verb["samplesOf"]) {
  return rows.filter((row) => row.node === node && row.name === REFERENCE).flatMap(samplesOf);
}

const median = (values: readonly number[]): number => percentile(values, 0.5);

function rateColumns(rows: readonly RateRow[]): Column<RateRow>[] {
  const ratio = (row: RateRow, value: (row: RateRow) => number): number | undefined => {
    const reference = referenceOf(row, rows);
    return reference && value(row) / value(reference);
  };
  return [
    ["at once", ({ atOnce, name, node }) => `${atOnce}: ${name}, ${node}`],
    ["pairs/s", ({ perSecond }) => median(perSecond)],
    ["ratio", (row) => ratio(row, ({ perSecond }) => median(perSecond))],
    ...times<RateRow>("pair", ({ samples }) => samples),
    [
      "CPU per pair: plugins + agent",
      ({ pluginMs, agentMs }) => `${formatFigure(median(pluginMs))} + ${formatFigure(median(agentMs))}`,
    ],
    ["ratio", (row) => ratio(row, pairCpu)],
    ["all gone after", ({ goneMs }) => median(goneMs)],
  ];
}

function referenceOf({ node, atOnce }: RateRow, rows: readonly RateRow[]): RateRow | undefined {
  return rows.find((row) => row.node === node && row.atOnce === atOnce && row.name === REFERENCE);
}

/** The reference has no agent: the time of Berth's does not count for it. */
function pairCpu({ name, pluginMs, agentMs }: RateRow): number {
  return median(pluginMs) + (name === REFERENCE ? 0 : median(agentMs));
}

const DETECTION: readonly Column<DetectionRow>[] = [
  ["stage", ({ name }) => name],
  ["without, p50", ({ without }) => wallMs(without, 0.5)],
  ["with, p50", (row) => wallMs(row.with, 0.5)],
  ["of it window", ({ dueMs }) => dueMs],
  ...percentiles<DetectionRow>("surplus", surplusMs, [0.5, 0.95, 1]),
];

/** Returns for each pair the time of the call with detection beyond that of the one without and the due time. */
export function surplusMs({ without, with: asking, dueMs }: DetectionRow): number[] {
  return asking.flatMap(({ wallMs }, index) => {
    const before = without[index];
    return before === undefined ? [] : [wallMs - before.wallMs - dueMs];
  });
}

export function targetsOf({ alone, chains, rates, detection }: CoordinatorFigures): Target[] {
  return [
    ...FAMILY_CHOICES.map((families) => {
      const adds = alone.filter(({ name }) => name.includes(families)).map(({ add }) => add);
      return flatnessTarget(`coordinator, ${families}`, adds, FLATNESS);
    }),
    flatnessTarget(
      WHOLE,
      chains.filter(({ name }) => name === WHOLE).map(({ samples }) => samples),
      CHAIN_FLATNESS,
    ),
    ...VERBS.flatMap((verb) =>
      chains.filter(({ name }) => name === WHOLE).map((row) => chainTarget(row, chains, verb)),
    ),
    ...rates.filter(({ name }) => name === WHOLE).flatMap((row) => rateTargets(row, rates)),
    ...detection.map(detectionTarget),
  ];
}

/** Beyond the window when nothing answers, and in all when something does; the median of the pairs. */
function detectionTarget(row: DetectionRow): Target {
  const [limitMs, ms] = [row.dueMs > 0 ? SILENCE_MS : CONFLICT_MS, median(surplusMs(row))];
  return {
    ...{ what: `detection, ${row.name}`, wanted: `≤ ${row.dueMs > 0 ? "window + " : ""}${limitMs} ms` },
    ...{ measured: `${formatFigure(ms)} ms`, isMet: ms <= limitMs },
  };
}

/** An ADD is to take as long on the node with the most pods as on the one without. */
function flatnessTarget(what: string, byNode: readonly (readonly Sample[])[], limit: number): Target {
  const [valueMs, baseMs] = [byNode.at(-1) ?? [], byNode[0] ?? []].map((samples) => wallMs(samples, 0.5));
  const base = "with no other pod";
  return atMost({
    ...{ what: `ADD p50 with the most other pods: ${what}`, limit, base },
    ...{ valueMs: valueMs ?? Number.NaN, baseMs: baseMs ?? Number.NaN },
  });
}

function chainTarget(row: ChainRow, rows: readonly ChainRow[], { name, samplesOf, limit }: Verb): Target {
  return atMost({
    ...{ what: `the chain's ${name} p50, ${row.node}`, limit, base: "macvlan + host-local" },
    ...{ valueMs: wallMs(samplesOf(row), 0.5), baseMs: wallMs(referenceSamples(row, rows, samplesOf), 0.5) },
  });
}

/** Several at once. */
function rateTargets(row: RateRow, rows: readonly RateRow[]): Target[] {
  const reference = referenceOf(row, rows);
  if (reference === undefined || row.atOnce === 1) return [];
  const [rate, other] = [median(row.perSecond), median(reference.perSecond)];
  return [
    {
      what: `pairs per second, ${row.atOnce} at once, ${row.node}`,
      wanted: `≥ ${RATE_RATIO} × macvlan + host-local`,
      measured: `${formatFigure(rate / other)} × (${formatFigure(rate)} of ${formatFigure(other)}/s)`,
      isMet: rate >= RATE_RATIO * other,
    },
  ];
}
