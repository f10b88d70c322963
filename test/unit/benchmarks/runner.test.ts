import { describe, expect, test } from "vitest";
import { decodeAnswer, formatPlan, type Subject } from "../../../benchmarks/harness/runner.ts";

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
      "batch\t0\t1\t0\t2",
      "batch\t1\t1\t1\t2",
      "batch\t0\t1\t2\t2",
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
});
