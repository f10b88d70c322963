import { describe, expect, test } from "vitest";
import type { AloneRow } from "../../../benchmarks/coordinator/alone.ts";
import type { ChainRow } from "../../../benchmarks/coordinator/chain.ts";
import {
  coordinatorConf,
  manifests,
  podAddress,
  preparedResult,
} from "../../../benchmarks/coordinator/configuration.ts";
import type { DetectionRow } from "../../../benchmarks/coordinator/detection.ts";
import {
  type CoordinatorFigures,
  FLOOR,
  surplusMs,
  tabulate,
  targetsOf,
} from "../../../benchmarks/coordinator/tabulate.ts";
import type { Sample } from "../../../benchmarks/harness/runner.ts";

const sample = (wallMs: number, stepMs: number[] = [wallMs]): Sample => ({ wallMs, cpuMs: 1, stepMs });
const calls = (wallMs: number) => ({ samples: [sample(wallMs)], agentMs: [0.5] });

function figures(addMs: number, chainMs: number, silenceMs: number, conflictMs: number): CoordinatorFigures {
  const alone: AloneRow[] = [
    { name: FLOOR, add: calls(0.2) },
    { name: "coordinator, IPv4, no other pod", add: calls(addMs), check: calls(3), del: calls(15) },
  ];
  const chain = (name: string, wallMs: number, stepMs: number[]): ChainRow => ({
    name,
    node: "no other pod",
    samples: [sample(wallMs, stepMs)],
  });
  const chains = [
    chain("macvlan + host-local", 10, [10]),
    chain("macvlan + berth + coordinator", chainMs, [8, chainMs - 8]),
  ];
  const stage = (name: string, dueMs: number, asking: number): DetectionRow => ({
    name,
    dueMs,
    without: [sample(2)],
    with: [sample(asking)],
  });
  const detection = [stage("silence", 200, silenceMs), stage("conflict", 0, conflictMs)];
  return { alone, chains, detection, health: [{ name: "nothing else", answerMs: [0.3, 0.5] }] };
}

describe("targets", () => {
  test("all met at the limit", () => {
    const targets = targetsOf(figures(4, 14, 222, 7));
    expect(targets.map(({ isMet }) => isMet)).toEqual([true, true, true, true]);
    expect(targets.map(({ measured }) => measured)).toEqual([
      "4.00 ms (floor 0.200)",
      "1.40 × (14.0 of 10.0 ms)",
      "20.0 ms",
      "5.00 ms",
    ]);
  });

  test("all missed above it", () => {
    expect(targetsOf(figures(4.1, 14.1, 222.1, 7.1)).map(({ isMet }) => isMet)).toEqual([false, false, false, false]);
  });
});

test("surplus is taken within each pair", () => {
  const row: DetectionRow = {
    name: "silence",
    dueMs: 200,
    without: [sample(1), sample(5)],
    with: [sample(211), sample(206)],
  };
  expect(surplusMs(row)).toEqual([10, 1]);
});

test("tables have a cell for every column", () => {
  for (const { columns, rows } of tabulate(figures(1, 1, 1, 1))) {
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row).toHaveLength(columns.length);
  }
});

test("chain's table has ratios to the reference on the same node, and the second step alone", () => {
  const chains = tabulate(figures(1, 14, 1, 1)).find(({ title }) => title.startsWith("The chain"));
  expect(chains?.rows.map((row) => [row[4], row[6]])).toEqual([
    ["1.00", "-"],
    ["1.40", "6.00"],
  ]);
});

describe("configuration", () => {
  test("addresses of pods are distinct and outside of the pools", () => {
    const all = Array.from({ length: 5_000 }, (_, index) => podAddress(index + 1));
    expect(new Set(all.flatMap(({ v4, v6 }) => [v4, v6])).size).toBe(10_000);
    expect(all.every(({ v4 }) => Number(v4.split(".")[2]) < 200)).toBe(true);
    expect(manifests()).toContain("10.6.200.1-");
  });

  test("stdin of a chain keeps the runner's mark as it is", () => {
    expect(coordinatorConf("plain", true, "{prevResult}")).toMatch(/"prevResult":\{prevResult\}\}$/);
  });

  test("stdin of a DEL has no result", () => {
    expect(JSON.parse(coordinatorConf("plain", false))).not.toHaveProperty("prevResult");
  });

  test.each([
    { families: "IPv4", count: 1 },
    { families: "dual stack", count: 2 },
  ] as const)("a prepared pod with $families has $count addresses", ({ families, count }) => {
    expect(preparedResult("/run/netns/x", 1, families)).toMatchObject({
      interfaces: [{ name: "eth0", sandbox: "/run/netns/x" }],
      ips: { length: count },
      routes: { length: count },
    });
  });
});
