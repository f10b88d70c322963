/** The small runner of the benchmarks, as it is built: what becomes of runs that fail. */
import { beforeAll, describe, expect, test } from "vitest";
import { runBatch, type Subject } from "../../benchmarks/harness/runner.ts";
import { runSetup } from "../../scripts/setup/run-setup.ts";

beforeAll(() => runSetup("bench"));

describe("runner", () => {
  const fails: Subject = { path: "/bin/false", stdinFile: "/dev/null", env: {} };
  const prints: Subject = { path: "/usr/bin/env", stdinFile: "/dev/null", env: { A: "1", B: "{n}" } };

  test("a run that fails ends the batch", async () => {
    await expect(runBatch({ subject: fails, atOnce: 1, first: 0, count: 2 })).rejects.toThrow("Run 0 of /bin/false");
  });

  test("runs that may fail go on, and their chains do not", async () => {
    const subject: Subject = { ...fails, next: [prints], exits: "any" };
    const { samples } = await runBatch({ subject, atOnce: 1, first: 0, count: 2 });
    expect(samples.map(({ answer, stepMs }) => [answer, stepMs.length])).toEqual(
      Array(2).fill([{ status: 1, text: "" }, 1]),
    );
  });

  test("an answer is one line", async () => {
    const { samples } = await runBatch({ subject: { ...prints, exits: "any" }, atOnce: 1, first: 4, count: 1 });
    expect(samples.map(({ answer }) => answer)).toEqual([{ status: 0, text: "A=1 B=4" }]);
  });

  test("no run is started after the limit", async () => {
    const subject: Subject = { ...prints, path: "/bin/sleep", exits: "any" };
    const none = await runBatch({ subject, atOnce: 1, first: 0, count: 100_000, limitMs: 1 });
    expect(none.samples.length).toBeLessThan(1_000);
  });
});
