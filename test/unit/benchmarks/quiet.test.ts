import { describe, expect, it } from "vitest";
import { describeQuietness, type ProcessorTime, parseStat, waitUntilQuiet } from "../../../benchmarks/harness/quiet.ts";

/** One reading before and after each period: of 100 ticks, so many are in use. */
function reader(used: readonly number[]): () => ProcessorTime {
  const shares = used.values();
  let now = { used: 0, total: 0 };
  let reads = 0;
  return () => {
    reads += 1;
    if (reads % 2 === 0)
      now = { used: now.used + (shares.next().value ?? expect.unreachable()), total: now.total + 100 };
    return now;
  };
}

const wait = (used: readonly number[], limitS: number, lines: string[] = []) =>
  waitUntilQuiet({ limitS, read: reader(used), periodMs: 1, print: (line) => lines.push(line) });

describe("waiting for a quiet machine", () => {
  it("ends with the first quiet period", async () => {
    const lines: string[] = [];
    expect(await wait([90, 6, 5], 60, lines)).toMatchObject({ isQuiet: true, share: 0.05 });
    expect(lines).toEqual(["Waiting for a quiet machine: 90 % of the processors' time is in use"]);
  });

  it("ends when its time is over, and says that the machine was not quiet", async () => {
    const quietness = await wait([90], 0);
    expect(quietness).toMatchObject({ isQuiet: false, share: 0.9 });
    expect(describeQuietness(quietness)).toMatch(/^\*\*The machine was not quiet\*\*: 90 % /);
  });
});

describe("/proc/stat", () => {
  it("counts everything but idle and iowait, steal included and guests once", () => {
    const text = "cpu  10 1 5 70 4 2 3 5 10 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
    expect(parseStat(text)).toEqual({ used: 26, total: 100 });
  });

  it("rejects another text", () => expect(() => parseStat("intr 1 2")).toThrow(/found "intr 1 2"/));

  it("is read on this machine", async () => {
    const { share } = await waitUntilQuiet({ limitS: 0, periodMs: 200, print: () => {} });
    expect(share).toBeGreaterThanOrEqual(0);
    expect(share).toBeLessThanOrEqual(1);
  });
});
