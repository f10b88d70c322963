import { describe, expect, it, test } from "vitest";
import {
  type Contest,
  decodeLine,
  type Figure,
  type Form,
  mergeTurns,
} from "../../../benchmarks/allocators/contest.ts";
import { CONTESTANTS } from "../../../benchmarks/allocators/contestants.ts";
import { reportOf } from "../../../benchmarks/allocators/page.ts";
import { packAddresses, SHAPES, type Shape, usedOrdinals } from "../../../benchmarks/allocators/shapes.ts";
import { formatNs, tabulateCalls, tabulatePools } from "../../../benchmarks/allocators/tabulate.ts";
import { decideTargets, tabulateMargins } from "../../../benchmarks/allocators/targets.ts";

const POOLS = ["/16 empty", "/16 99 % packed"];

/** Nanoseconds of each pool. */
function figures(runtime: string, form: Form, ...ns: number[]): Figure[] {
  return ns.map((value, index) => ({ runtime, form, shape: POOLS[index] ?? "", ns: value }));
}

/** Cilium and Kube-OVN against four of ours, which meet everything unless `more` replaces their figures. */
function benchmarkOf(...more: Figure[]): Contest {
  const replaced = (one: Figure) =>
    more.some(({ runtime, form, shape }) => runtime === one.runtime && form === one.form && shape === one.shape);
  const usual = [
    ...figures("cilium", "one", 300, 70_000),
    ...figures("kube-ovn", "one", 200, 700),
    ...["javascript", "rust", "c"].flatMap((runtime) => figures(runtime, "one", 50, 60)),
    ...figures("go", "one", 500, 500),
    ...figures("go", "raw", 40, 40),
    ...figures("go", "batch", 10, 10),
    { runtime: "go", form: "call", shape: "", ns: 20 } as const,
  ];
  return {
    shapes: POOLS,
    contestants: CONTESTANTS,
    figures: [...usual.filter((one) => !replaced(one)), ...more],
    words: [],
  };
}

describe("a line of a program", () => {
  test.each([
    { runtime: "go", shape: "/16 empty", form: "one", ns: 85.2 },
    { runtime: "whereabouts", shape: "/16 empty", form: "one", ns: 1.5e9, samples: 3 },
    { runtime: "go", shape: "", form: "version", text: "go1.26.8" },
    { runtime: "cilium", shape: "/10", form: "refusal", text: "range is full" },
  ])("$form of $runtime", (said) => expect(decodeLine(JSON.stringify(said))).toEqual(said));

  test.each([
    '{"runtime":"go","shape":"","form":"two","ns":1}',
    '{"runtime":"go","shape":"","form":"one","ns":0}',
    '{"runtime":"go","shape":"","form":"one","ns":null}',
    '{"runtime":"go","shape":"","form":"version"}',
    '{"shape":"","form":"one","ns":1}',
  ])("refuses %s", (line) => expect(() => decodeLine(line)).toThrow("Neither a figure nor a word"));
});

test("turns become one figure, the median, and words are told once", () => {
  const word = { runtime: "go", shape: "", form: "version", text: "go1.26.8" } as const;
  const turns = [90, 70, 80].flatMap((ns) => [...figures("go", "one", ns, ns + 1), word]);
  expect(mergeTurns([...turns, ...figures("c", "one", 5)])).toEqual([
    ...figures("go", "one", 80, 81),
    word,
    ...figures("c", "one", 5),
  ]);
});

describe("the used addresses", () => {
  const shape = (first: string, bits: number, fill: number, pattern: Shape["pattern"]): Shape => {
    return { name: "", first, bits, fill, pattern };
  };

  it("of an empty pool are the network and the broadcast address", () =>
    expect(usedOrdinals(shape("10.0.0.0", 8, 0, "packed"))).toEqual([0n, 255n]));

  it("are the first ones of a packed pool, and the broadcast address", () =>
    expect(usedOrdinals(shape("10.0.0.0", 4, 0.5, "packed"))).toEqual([0n, 1n, 2n, 3n, 4n, 5n, 6n, 15n]));

  it("of IPv6 are so many, without a broadcast address", () =>
    expect(usedOrdinals(shape("2001:db8::", 64, 3, "packed"))).toEqual([0n, 1n, 2n]));

  it("of a random pool are the wished share, distinct, ascending, and the same every time", () => {
    const random = shape("10.0.0.0", 12, 0.5, "random");
    const used = usedOrdinals(random);
    expect(used).toHaveLength(2048);
    expect(new Set(used).size).toBe(2048);
    expect(used).toEqual([...used].sort((a, b) => Number(a - b)));
    expect(used).toEqual(usedOrdinals(random));
    expect(used.filter((ordinal) => ordinal < 2048n).length).toBeCloseTo(1024, -2);
  });

  it("are written big-endian", () => {
    expect([...packAddresses({ family: 4, value: 0x0a000000n }, [1n, 256n])]).toEqual([10, 0, 0, 1, 10, 0, 1, 0]);
    expect([...packAddresses({ family: 6, value: 0x20010db8n << 96n }, [258n])]).toEqual([
      0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2,
    ]);
  });

  it("every pool has a name of its own", () =>
    expect(new Set(SHAPES.map(({ name }) => name)).size).toBe(SHAPES.length));
});

test.each([
  [55.12, "55.1 ns"],
  [0.5, "0.500 ns"],
  [70_200, "70.2 µs"],
  [14_800_000, "14.8 ms"],
  [1.5e9, "1.50 s"],
  [undefined, "-"],
])("%f is written %s", (ns, expected) => expect(formatNs(ns)).toBe(expected));

describe("tables", () => {
  it("has the peers first, then ours by form, and only rows with a figure", () =>
    expect(tabulatePools(benchmarkOf()).rows).toEqual([
      ["Cilium, bitmap", "300 ns", "70.0 µs"],
      ["Kube-OVN, list of ranges", "200 ns", "700 ns"],
      ["Berth, Node.js: an address of the language", "50.0 ns", "60.0 ns"],
      ["Berth, Rust: an address of the language", "50.0 ns", "60.0 ns"],
      ["Berth, C: an address of the language", "50.0 ns", "60.0 ns"],
      ["Berth, Go: an address of the language", "500 ns", "500 ns"],
      ["Berth, Go: bytes", "40.0 ns", "40.0 ns"],
      ["Berth, Go: batch, per address", "10.0 ns", "10.0 ns"],
    ]));

  it("says what a peer refuses", () => {
    const words = [
      { runtime: "kubernetes", shape: "/16 99 % packed", form: "refusal", text: "range is full" },
    ] as const;
    const contest = { ...benchmarkOf(), words };
    expect(tabulatePools(contest).rows).toContainEqual(["Kubernetes, bitmap", "-", "refused"]);
    expect(reportOf(contest).notes).toContain("Kubernetes, bitmap: range is full (/16 99 % packed).");
  });

  it("has what the border costs", () =>
    expect(tabulateCalls(benchmarkOf(...figures("go", "raw", 400, 400))).rows).toEqual([
      ["Go", "20.0 ns", "500 ns", "8 %", "400 ns", "10 %", "10.0 ns", "50.0 ×"],
    ]));

  it("tells of few samples, once for all pools", () => {
    const few = figures("whereabouts", "one", 1.5e9, 2e9).map((figure) => ({ ...figure, samples: 3 }));
    expect(reportOf(benchmarkOf(...few)).notes).toEqual([
      "whereabouts: the median of 3 samples (/16 empty; /16 99 % packed).",
    ]);
  });
});

describe("verdicts", () => {
  const met = (contest: Contest) =>
    decideTargets(contest)
      .slice(0, 8)
      .map(({ isMet }) => isMet);
  const measured = (contest: Contest) => decideTargets(contest).map((target) => target.measured);

  it("all met", () => {
    expect(met(benchmarkOf())).toEqual(Array(8).fill(true));
    expect(measured(benchmarkOf())[0]).toBe(
      "one 2 of 2 pools: at least /16 empty: 4.00 × (50.0 ns against 200 ns of kube-ovn)",
    );
  });

  it("one pool with less than the margin to the fastest peer is a miss, and is told", () => {
    const contest = benchmarkOf(...figures("rust", "one", 160, 60));
    expect(met(contest)).toEqual([true, false, true, true, true, true, true, true]);
    expect(measured(contest)[1]).toBe("one 1 of 2 pools: /16 empty: 1.25 × (160 ns against 200 ns of kube-ovn)");
  });

  it("bytes count where the address of the language is too slow", () => {
    const contest = benchmarkOf(...figures("rust", "one", 300, 60), ...figures("rust", "raw", 40, 40));
    expect(met(contest)[1]).toBe(true);
    expect(measured(contest)[1]).toMatch(/^raw 2 of 2 pools: at least .*; one 1 of 2 pools$/);
  });

  it("only packed pools count against the bitmaps, and only bitmaps", () => {
    const contest = benchmarkOf(...figures("c", "one", 150, 71));
    expect(met(contest)).toEqual([true, true, true, true, true, true, false, true]);
    expect(measured(contest)[6]).toBe("one 0 of 1 pools: /16 99 % packed: 986 × (71.0 ns against 70.0 µs of cilium)");
  });

  it("the faster of the two bitmaps counts", () => {
    expect(met(benchmarkOf(...figures("kubernetes", "one", 400, 50_000)))[4]).toBe(false);
  });

  it("Rust and Go have to be faster by every form", () => {
    const raw = figures("rust", "raw", 40, 40);
    const [rust, go] = decideTargets(benchmarkOf(...raw)).slice(8);
    expect(rust).toMatchObject({
      isMet: true,
      measured: "4 of 4 cells: at least one, /16 empty: 4.00 × (50.0 ns against 200 ns of kube-ovn)",
    });
    const empty = "one, /16 empty: 0.400 × (500 ns against 200 ns of kube-ovn)";
    expect(go).toMatchObject({ isMet: false, measured: `3 of 4 cells: ${empty}` });
    const [, slow] = decideTargets(benchmarkOf(...raw, { runtime: "go", form: "call", shape: "", ns: 76.9 })).slice(8);
    expect(slow).toMatchObject({ isMet: false });
    const bound = benchmarkOf(...raw, { runtime: "go", form: "call", shape: "", ns: 77 });
    expect(decideTargets(bound)[9]).toMatchObject({
      isMet: true,
      measured: `3 of 4 cells: bound by the border: ${empty}`,
    });
    expect(tabulateMargins(bound).rows).toEqual([
      ["Rust: an address of the language", "4.00 ×", "11.7 ×"],
      ["Rust: bytes", "5.00 ×", "17.5 ×"],
      ["Go: an address of the language", "0.400 ×, bound by the border", "1.40 ×"],
      ["Go: bytes", "5.00 ×", "17.5 ×"],
    ]);
    const [without] = decideTargets(benchmarkOf(...figures("rust", "raw", 40))).slice(8);
    expect(without).toMatchObject({ isMet: false, measured: "3 of 4 cells: raw, /16 99 % packed: no figure" });
  });

  it("what is not measured is not met", () => {
    const contest = { ...benchmarkOf(), figures: benchmarkOf().figures.filter(({ runtime }) => runtime !== "rust") };
    expect(met(contest)[1]).toBe(false);
    expect(measured(contest)[1]).toBe("not measured");
  });

  it("a pool without a figure is a miss", () => {
    const contest = benchmarkOf();
    const missing = ({ runtime, shape }: Figure) => runtime === "c" && shape === "/16 empty";
    const without = { ...contest, figures: contest.figures.filter((figure) => !missing(figure)) };
    expect(measured(without)[2]).toBe("one 1 of 2 pools: /16 empty: no figure");
  });
});
