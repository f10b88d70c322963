import { describe, expect, test } from "vitest";
import { decodeAnswer, formatPlan, type Subject } from "../../../benchmarks/harness/runner.ts";
import type { Measured } from "../../../benchmarks/ipam/measure.ts";
import { emptyC24, full16, type PoolShape, takenAddresses, usableRange } from "../../../benchmarks/ipam/pool-shape.ts";
import { tabulate, targetsOf } from "../../../benchmarks/ipam/tabulate.ts";
import { formatFigure, formatTable, mean, percentile } from "../../lab/statistics.ts";

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

test("mean", () => expect(mean([1, 2, 6])).toBe(3));

test.each([
  [0.1234, "0.123"],
  [1.234, "1.23"],
  [78.94, "78.9"],
  [1234.5, "1235"],
  [0, "0"],
  [0.00001234, "0.0000"],
  [Number.NaN, "-"],
])("figure %f is written %s", (value, expected) => {
  expect(formatFigure(value)).toBe(expected);
});

test("table is Markdown with columns of equal width", () => {
  const text = formatTable({
    title: "T",
    columns: ["name", "ms"],
    rows: [
      ["a", "1.5"],
      ["longer", "22"],
    ],
  });
  expect(text.split("\n")).toEqual([
    "T",
    "",
    "| name   |  ms |",
    "|--------|----:|",
    "| a      | 1.5 |",
    "| longer |  22 |",
  ]);
});

describe("pool shape", () => {
  test("usable range leaves out network, gateway and broadcast", () => {
    expect(usableRange(emptyC24)).toEqual({ gateway: "10.1.0.1", first: "10.1.0.2", last: "10.1.0.254" });
  });

  test("an empty pool has no taken address", () => expect([...takenAddresses(emptyC24)]).toEqual([]));

  test("taken addresses are the wished share, distinct, inside, and the same every time", () => {
    const taken = [...takenAddresses(full16)];
    expect(taken.length / 65_533).toBeCloseTo(0.99, 2);
    expect(new Set(taken).size).toBe(taken.length);
    expect(taken.every((address) => address.startsWith("10.3."))).toBe(true);
    expect([...takenAddresses(full16)]).toEqual(taken);
  });

  test("half of a pool is spread over all of it", () => {
    const shape: PoolShape = { name: "half", subnet: "10.9.0.0/24", taken: 0.5, cooldown: "0s" };
    const lastOctets = [...takenAddresses(shape)].map((address) => Number(address.split(".")[3]));
    expect(lastOctets.filter((octet) => octet < 128).length).toBeGreaterThan(40);
    expect(lastOctets.filter((octet) => octet >= 128).length).toBeGreaterThan(40);
  });
});

describe("targets", () => {
  /** Of three ADDs the last takes `slowestMs`. */
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
    expect(targetsOf(series(0.8, 1.2, 0.96, 200)).map(({ isMet }) => isMet)).toEqual([true, true, true, true]);
  });

  test("all missed", () => {
    expect(targetsOf(series(0.81, 1.21, 0.98, 199)).map(({ isMet }) => isMet)).toEqual([false, false, false, false]);
  });

  test("none without Berth", () => {
    const alone = [measured("host-local, empty /24", 2, 100)];
    expect(targetsOf({ single: alone, atOnce: alone })).toEqual([]);
  });

  test("table has ratios within the series", () => {
    const { rows } = tabulate(series(1, 1, 1.2, 200), { single: [], atOnce: [] });
    expect(rows.map((row) => row[3])).toEqual(["1.00", "0.500", "0.600"]);
  });

  test("a rate is that of all rounds together: 200 calls in two seconds and 200 in one are 133 a second", () => {
    const rounds = { ...measured("berth, empty /24", 1, 1), addRates: [100, 200], delRates: [200, 100] };
    const { rows } = tabulate({ single: [rounds], atOnce: [rounds] }, { single: [], atOnce: [] });
    expect(rows.map((row) => row.slice(8, 10))).toEqual([["133", "133"]]);
  });
});

const alone: Subject = { path: "/bin/a", stdinFile: "/tmp/a-{n}.json", env: { CNI_COMMAND: "ADD" } };
const chain: Subject = { ...alone, next: [{ path: "/bin/b", stdinFile: "/tmp/b.json", env: {} }], exits: 1 };

describe("plan", () => {
  test("names each subject once, with its steps", () => {
    const batches = [alone, chain, alone].map((subject, first) => ({ subject, atOnce: 1, first, count: 2 }));
    expect(formatPlan(batches).split("\n")).toEqual([
      "subject\t/bin/a\t/tmp/a-{n}.json\tCNI_COMMAND=ADD",
      "exits\t0",
      "subject\t/bin/a\t/tmp/a-{n}.json\tCNI_COMMAND=ADD",
      "then\t/bin/b\t/tmp/b.json",
      "exits\t1",
      "batch\t0\t1\t0\t2\t0",
      "batch\t1\t1\t1\t2\t0",
      "batch\t0\t1\t2\t2\t0",
      "",
    ]);
  });
});

describe("answer", () => {
  test("samples go to their batches, in milliseconds", () => {
    const answer = [
      "run 0 7 3000000 500 1500 3000000",
      "run 1 8 5000000 0 250 2000000 2900000",
      "batch 0 3100000",
      "batch 1 5100000",
    ];
    expect(decodeAnswer(`${answer.join("\n")}\n`)).toEqual([
      { wallMs: 3.1, samples: [{ wallMs: 3, cpuMs: 2, stepMs: [3] }] },
      { wallMs: 5.1, samples: [{ wallMs: 5, cpuMs: 0.25, stepMs: [2, 2.9] }] },
    ]);
  });

  test("a run that may fail has what it printed", () => {
    const answer = ["run 0 7 3000000 0 0 3000000", "answer 0 1 no  address is free", "batch 0 3100000"];
    const [outcome] = decodeAnswer(`${answer.join("\n")}\n`);
    expect(outcome?.samples.map((sample) => sample.answer)).toEqual([{ status: 1, text: "no  address is free" }]);
  });
});
