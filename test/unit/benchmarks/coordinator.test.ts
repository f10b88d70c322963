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
import type { RateRow } from "../../../benchmarks/coordinator/rates.ts";
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

interface Measured {
  readonly addMs: number;
  readonly chainMs: number;
  readonly silenceMs: number;
  readonly conflictMs: number;
  readonly delMs: number;
  readonly perSecond: number;
  readonly agentMs: number;
  readonly probingMs: number;
}

const AT_LIMITS: Measured = {
  ...{ addMs: 3, chainMs: 12, silenceMs: 222, conflictMs: 7 },
  ...{ delMs: 24, perSecond: 80, agentMs: 2, probingMs: 250 },
};

function figures(measured: Measured): CoordinatorFigures {
  const { addMs, chainMs, silenceMs, conflictMs, delMs, perSecond, agentMs, probingMs } = measured;
  const alone: AloneRow[] = [
    { name: FLOOR, add: calls(0.2) },
    { name: "coordinator, IPv4, no other pod", add: calls(addMs), check: calls(3), del: calls(15) },
  ];
  const chain = (name: string, add: Sample, del: Sample): ChainRow => ({
    name,
    node: "no other pod",
    samples: [add],
    dels: [del],
  });
  const chains = [
    chain("macvlan + host-local", sample(10), sample(20)),
    chain("macvlan + berth + coordinator", sample(chainMs, [8, chainMs - 8]), sample(delMs, [2, delMs - 2])),
  ];
  const rate = (name: string, atOnce: number, pairsPerSecond: number, pluginMs: number): RateRow => ({
    ...{ name, node: "no other pod", atOnce, samples: [sample(30)] },
    ...{ perSecond: [pairsPerSecond], pluginMs: [pluginMs], agentMs: [agentMs], goneMs: [0] },
  });
  const rates = [1, 8].flatMap((atOnce) => [
    rate("macvlan + host-local", atOnce, 80, 20),
    rate("macvlan + berth + coordinator", atOnce, perSecond, 20),
  ]);
  const stage = (name: string, dueMs: number, asking: number): DetectionRow => ({
    name,
    dueMs,
    without: [sample(2)],
    with: [sample(asking)],
  });
  const detection = [stage("silence", 200, silenceMs), stage("conflict", 0, conflictMs)];
  const health = [{ name: "nothing else", answerMs: [0.3, 0.5] }];
  return { alone, chains, rates, detection, health, probing: [sample(probingMs)] };
}

describe("targets", () => {
  test("all met at the limit", () => {
    const targets = targetsOf(figures(AT_LIMITS));
    expect(targets.map(({ measured, isMet }) => [measured, isMet])).toEqual([
      ["3.00 ms (floor 0.200)", true],
      ["1.20 × (12.0 of 10.0 ms)", true],
      ["1.20 × (24.0 of 20.0 ms)", true],
      ["1.10 × (22.0 of 20.0 ms)", true],
      ["1.00 × (80.0 of 80.0/s)", true],
      ["1.10 × (22.0 of 20.0 ms)", true],
      ["20.0 ms", true],
      ["5.00 ms", true],
      ["50.0 ms", true],
    ]);
  });

  test("all missed above it", () => {
    const worse = figures({
      ...{ addMs: 3.1, chainMs: 12.1, silenceMs: 222.1, conflictMs: 7.1 },
      ...{ delMs: 24.1, perSecond: 79, agentMs: 2.1, probingMs: 250.1 },
    });
    expect(targetsOf(worse).filter(({ isMet }) => isMet)).toEqual([]);
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
  for (const { columns, rows } of tabulate(figures(AT_LIMITS))) {
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row).toHaveLength(columns.length);
  }
});

test("chain's table has ratios to the reference on the same node, and the second step alone", () => {
  const chains = tabulate(figures(AT_LIMITS)).find(({ title }) => title.startsWith("The chain"));
  expect(chains?.rows.map((row) => [row[4], row[6]])).toEqual([
    ["1.00", "-"],
    ["1.20", "4.00"],
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
