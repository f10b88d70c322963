import { describe, expect, test } from "vitest";
import { decodeOutcomes } from "../../../benchmarks/node/caller.ts";
import {
  AT_ONCE,
  BERTH,
  type Cell,
  describeHeadline,
  PEER,
  SERVED,
  tabulate,
} from "../../../benchmarks/node/tabulate.ts";

test("calls go to their batches, in milliseconds", () => {
  const lines = [
    { batch: 0, verb: "ADD", ns: 3_000_000 },
    { batch: 0, verb: "DEL", ns: 500_000 },
    { batch: 0, wallNs: 4_000_000 },
    { batch: 1, verb: "ADD", ns: 2_500_000 },
    { batch: 1, wallNs: 2_600_000 },
  ];
  expect(decodeOutcomes(`${lines.map((line) => JSON.stringify(line)).join("\n")}\n`)).toEqual([
    { addMs: [3], delMs: [0.5], wallMs: 4 },
    { addMs: [2.5], delMs: [], wallMs: 2.6 },
  ]);
});

/** Returns the cells of two agents: the peer's ADDs take 10 ms and its DELs 20, Berth's `factor` times as long. */
function cellsOf(kind: Cell["kind"], served: number, factor: number): Cell[] {
  const cell = (contestant: Cell["contestant"], times: number, wallMs: number): Cell => ({
    ...{ kind, served, contestant, pods: 30 },
    outcome: { addMs: [times * 10, times * 10, times * 100], delMs: [times * 20], wallMs },
  });
  return [300, 700].flatMap((wallMs) => [cell(PEER, 1, wallMs), cell(BERTH, factor, wallMs * factor)]);
}

const [few, many] = SERVED;
const cells = [
  ...cellsOf({ name: "IPAM", atOnce: 1 }, few, 0.6),
  ...cellsOf({ name: "IPAM", atOnce: 1 }, many, 0.3),
  ...cellsOf({ name: "chain", atOnce: 1 }, few, 1.5),
  ...cellsOf({ name: "chain", atOnce: 1 }, many, 1.2),
  ...cellsOf({ name: "chain", atOnce: AT_ONCE }, few, 2),
  ...cellsOf({ name: "chain", atOnce: AT_ONCE }, many, 0.5),
];

describe("tables", () => {
  test("both states stand beside each other, with ratios of the medians", () => {
    const [calls] = tabulate(cells);
    expect(calls?.rows).toEqual([
      ["IPAM ADD", "10.0", "100", "6.00", "60.0", "0.600", "10.0", "100", "3.00", "30.0", "0.300"],
      ["IPAM DEL", "20.0", "20.0", "12.0", "12.0", "0.600", "20.0", "20.0", "6.00", "6.00", "0.300"],
      ["chain ADD", "10.0", "100", "15.0", "150", "1.50", "10.0", "100", "12.0", "120", "1.20"],
      ["chain DEL", "20.0", "20.0", "30.0", "30.0", "1.50", "20.0", "20.0", "24.0", "24.0", "1.20"],
    ]);
    expect(calls?.columns).toHaveLength(11);
  });

  test("a rate is that of all agents together", () => {
    expect(tabulate(cells)[1]?.rows).toEqual([
      ["host-local", "60.0", "1.00", "60.0", "1.00"],
      ["Berth", "30.0", "0.500", "120", "2.00"],
    ]);
  });
});

test("the headline begins with the agent that has served few pods", () => {
  const [first, second, third] = describeHeadline(cells).split("\n");
  expect(first).toMatch(/^On an agent that has served 30 pods, .* 0\.600 × .* 0\.600 ×\.$/);
  expect(second).toMatch(/1\.50 × .* 1\.50 × .* 0\.500 ×/);
  expect(third).toBe("After 600 pods: 0.300 × and 0.300 ×, 1.20 × and 1.20 ×, 2.00 ×.");
});
