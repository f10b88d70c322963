import { describe, expect, test } from "vitest";
import { BERTH_AHEAD } from "../../../benchmarks/cluster/berth.ts";
import { type Axis, figureOf, flatnessOf, tablesOf } from "../../../benchmarks/growth/axis.ts";
import { renderPlot } from "../../../benchmarks/harness/plot.ts";
import { formatSection } from "../../../benchmarks/harness/report.ts";
import type { Sample } from "../../../benchmarks/harness/runner.ts";
import type { Measured } from "../../../benchmarks/ipam/measure.ts";
import { emptyC24, storm22 } from "../../../benchmarks/ipam/pool-shape.ts";
import { BERTH_CHAIN, HOST_LOCAL_CHAIN, SPIDERPOOL_CHAIN } from "../../../benchmarks/peers/chain.ts";
import { SPIDERPOOL } from "../../../benchmarks/peers/spiderpool.ts";
import type { StormRow } from "../../../benchmarks/peers/storm.ts";
import {
  describeFailures,
  describeHeadline,
  type PeerFigures,
  plotsOf,
  reasonOf,
  summarize,
  targetsOf,
} from "../../../benchmarks/peers/tabulate.ts";
import { WHEREABOUTS } from "../../../benchmarks/peers/whereabouts.ts";
import { root } from "../../../scripts/setup/paths.mjs";

describe("reason of a failure", () => {
  test.each([
    ['{"code": 999, "msg": "no address", "details": "pool \\"a\\""}', 'no address: pool "a"'],
    ['{ "msg": "no address" }Run 7', "no address"],
    [`cannot   open ${root}/a.json`, "cannot open …/a.json"],
    ["x".repeat(300), `${"x".repeat(260)}…`],
  ])("%s", (text, expected) => expect(reasonOf(text)).toBe(expected));

  test("equal but for numbers counts as one, the most frequent first", () => {
    const texts = ["pod-1 is gone", "no address", "pod-22 is gone"];
    expect(describeFailures("here", texts)).toEqual(['here: 2 × "pod-1 is gone"', 'here: 1 × "no address"']);
  });
});

test("a plot leaves out a place that a series has no value for", () => {
  const series = [{ name: "a", values: [1, Number.NaN, 100] }];
  const svg = renderPlot({ title: "t", unit: "milliseconds", places: ["x", "y", "z"], series });
  expect(svg.match(/<circle/g)).toHaveLength(2);
  expect(svg).not.toContain("NaN");
});

const samples = (...ms: readonly number[]): Sample[] => ms.map((wallMs) => ({ wallMs, cpuMs: 0, stepMs: [wallMs] }));

function measured(name: string, ms: number, failures: string[] = []): Measured {
  const own = samples(ms);
  const rates = { addRates: [1], delRates: [1], daemonAddMs: [0], daemonDelMs: [0] };
  return { name, add: own, del: own, failures, ...rates, rssMib: undefined };
}

function stormRow(name: string, ms: number, row: Partial<StormRow> = {}): StormRow {
  const counts = { failures: [], duplicates: 0, live: 1, recorded: 1, leaked: 0, daemonsMib: 0 };
  return { name, upMs: 1, downMs: 1, add: samples(ms), del: samples(ms), ...counts, ...row };
}

/** Berth takes `ms`; both peers take 10, their chain 40. */
function figures(ms: number, row: Partial<StormRow> = {}): PeerFigures {
  const all = [
    measured("host-local, empty /24", 1),
    measured(SPIDERPOOL, 10, ["no address"]),
    measured(BERTH_AHEAD, ms),
  ];
  return {
    series: [{ shape: emptyC24, atOnce: 1, all, unable: [{ name: WHEREABOUTS, reason: "too large" }] }],
    requests: [SPIDERPOOL, BERTH_AHEAD].map((name, index) => ({
      name,
      count: index === 0 ? 8 : 2,
      bytes: 0,
      kinds: [],
    })),
    chains: [measured(HOST_LOCAL_CHAIN, 5), measured(SPIDERPOOL_CHAIN, 40), measured(BERTH_CHAIN, ms)],
    storms: [
      {
        ...{ name: "storm", shape: storm22, nodes: 1, pods: 1 },
        rows: [stormRow(SPIDERPOOL, 10), stormRow(BERTH_AHEAD, ms, row)],
      },
    ],
  };
}

describe("figures of peers", () => {
  const missed = (found: PeerFigures): number => targetsOf(found).filter(({ isMet }) => !isMet).length;

  test("all met", () => expect(missed(figures(9))).toBe(0));

  test("a chain above three tenths of Spiderpool's is missed", () => expect(missed(figures(13))).toBe(2));

  test.each([{ duplicates: 1 }, { leaked: 1 }, { live: 0 }, { failures: ["x"] }])("a storm with %o misses", (row) => {
    expect(missed(figures(9, row))).toBe(1);
  });

  const machine = { cpu: "", cores: 2, memoryGib: 4, kernel: "", node: "", commit: "", day: "" };
  const quietness = { isQuiet: true, share: 0 };
  const pageOf = (found: PeerFigures): string =>
    formatSection(
      {
        tables: summarize(found),
        ...{ targets: targetsOf(found), figures: plotsOf(found), notes: ["A note."], versions: {} },
      },
      { ...machine, quietness },
    );

  test("the page lists the targets, those that were missed first", () => {
    expect(pageOf(figures(13))).toMatch(
      /^2 of 4 targets missed:\n\n(?:- missed: .*\n){2}(?:- .*; wanted: .*\n){2}\n\* A note\.$/m,
    );
    expect(pageOf(figures(9))).toMatch(/^All targets are met:\n\n(?:- .*; wanted: .*\n){4}/m);
  });

  test("the headline has the table by which a reader chooses", () => {
    const titles = describeHeadline(figures(9)).match(/^[A-Z][^|\n]*$/gm);
    expect(titles).toEqual(["ADD of IPAM alone, p50 / p99, milliseconds"]);
  });

  test("the page says what failed, and what there is no pool of; it has the drawings", () => {
    const page = pageOf(figures(11));
    expect(page).toContain("(1 failed)");
    expect(page).toMatch(/whereabouts.*no such pool/);
    expect(page).toContain("](../docs/peers-chain.svg)");
    expect(plotsOf(figures(9)).map(({ svg }) => svg.includes("NaN"))).toEqual([false, false]);
  });
});

describe("growth", () => {
  const point = (name: string, place: string, ms: number) => ({ name, place, addMs: [ms], rssMib: undefined });
  const axis = (ms: number): Axis => ({
    ...{ name: "pools", file: "pools", places: ["1", "10"] },
    points: [point("berth", "1", 2), point("berth", "10", ms), point("peer", "1", 5)],
  });

  test.each([
    [3, true],
    [3.1, false],
  ])("from 2 to %d ms is flat: %s", (ms, isFlat) => {
    expect(flatnessOf(axis(ms)).map(({ isMet }) => isMet)).toEqual([isFlat]);
  });

  test("a place that a peer does not reach is empty, and no table is made of memory without daemons", () => {
    expect(tablesOf(axis(2)).map(({ rows }) => rows)).toEqual([
      [
        ["berth", "2.00 / 2.00", "2.00 / 2.00"],
        ["peer", "5.00 / 5.00", "-"],
      ],
    ]);
  });

  test("a drawing of a place that a peer does not reach has no figure there", () => {
    const { path, svg } = figureOf(axis(2), "ADD");
    expect(path).toBe("docs/growth-pools.svg");
    expect(svg.match(/<circle/g)).toHaveLength(3);
  });
});
