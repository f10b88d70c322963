import { describe, expect, test } from "vitest";
import type { Measured } from "../../../benchmarks/ipam/measure.ts";
import { targetsOf } from "../../../benchmarks/ipam/tabulate.ts";
import { percentile } from "../../lab/statistics.ts";

describe("percentile", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  test.each([
    { samples: hundred, share: 0.5, expected: 50 },
    { samples: hundred, share: 0.99, expected: 99 },
    { samples: hundred, share: 1, expected: 100 },
    { samples: hundred, share: 0, expected: 1 },
    { samples: [7], share: 0.99, expected: 7 },
    { samples: [], share: 0.5, expected: Number.NaN },
  ])("$share of $samples.length samples is $expected", ({ samples, share, expected }) => {
    expect(percentile(samples, share)).toBe(expected);
  });
});

describe("targets", () => {
  /** Three ADDs, of which the last takes `slowestMs`. */
  const measured = (name: string, addMs: number, rate: number, slowestMs = addMs): Measured => ({
    name,
    add: [addMs, addMs, slowestMs].map((wallMs) => ({ wallMs, cpuMs: 1, stepMs: [wallMs] })),
    del: [{ wallMs: addMs, cpuMs: 1, stepMs: [addMs] }],
    failures: [],
    addRates: [rate],
    delRates: [rate],
    daemonAddMs: [0.5],
    daemonDelMs: [0.5],
    rssMib: undefined,
  });
  const series = (berthMs: number, slowestMs: number, fullMs: number, rate: number) => {
    const all = [
      measured("host-local, empty /24", 2, 100),
      measured("berth, empty /24", berthMs, rate, slowestMs),
      measured("berth, /12 at 99 %", fullMs, rate),
    ];
    return { single: all, atOnce: all };
  };

  test("all met", () => {
    expect(targetsOf(series(1, 1.8, 1.2, 200)).map(({ isMet }) => isMet)).toEqual([true, true, true, true]);
  });

  test("all missed", () => {
    expect(targetsOf(series(1.01, 1.81, 1.22, 199)).map(({ isMet }) => isMet)).toEqual([false, false, false, false]);
  });
});
