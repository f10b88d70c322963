import { expect, test } from "vitest";
import { filesToRepeat, type Report, tallyReport, tallyTwoRuns } from "../../../scripts/tally.ts";

const counts = { numPassedTests: 3, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 };
const good: Report = { success: true, ...counts, testResults: [] };
const bad: Report = { ...good, success: false };
const noneRan = { numPassedTests: 0 };

type Row = [
  when: string,
  exitCode: number,
  report: Report | undefined,
  passed: number,
  failed: number,
  complaint?: string,
];

test.each<Row>([
  ["all pass", 0, good, 3, 0],
  ["one fails", 1, { ...bad, numFailedTests: 1 }, 3, 1],
  ["none ran", 1, { ...bad, ...noneRan }, 0, 1, "no test ran"],
  ["none ran and vitest says fine", 0, { ...good, ...noneRan }, 0, 1, "no test ran"],
  ["one is skipped", 0, { ...good, numPendingTests: 1 }, 3, 1, "1 tests were skipped"],
  ["one is to do", 0, { ...good, numTodoTests: 1 }, 3, 1, "1 tests were skipped"],
  ["a file cannot be loaded", 1, bad, 3, 1, "outside of the tests"],
  ["vitest dies after its report", 1, good, 3, 1, "outside of the tests"],
  ["there is no report", 0, undefined, 0, 1, "left no report"],
])("tally when %s", (_when, exitCode, report, passed, failed, complaint) => {
  const tally = tallyReport("unit", exitCode, report);
  expect(tally).toMatchObject({ passed, failed });
  expect(tally.complaints.join()).toContain(complaint ?? "");
  expect(tally.complaints.length > 0).toBe(complaint !== undefined);
});

test("a failed test is reported with its file, its name and the first lines of its message", () => {
  const failureMessages = [`Error: no\n${"at x\n".repeat(40)}`];
  const failed = { status: "failed", fullName: "a pool is full", failureMessages };
  const passed = { status: "passed", fullName: "a pool is empty", failureMessages: [] };
  const testResults = [{ name: "/b/pool.test.ts", assertionResults: [passed, failed] }];
  const { complaints } = tallyReport("unit", 1, { ...good, success: false, numFailedTests: 1, testResults });
  expect(complaints).toHaveLength(1);
  expect(complaints[0]).toMatch(/^\/b\/pool\.test\.ts: a pool is full\n {4}Error: no\n/);
  expect(complaints[0]?.split("\n")).toHaveLength(13);
});

/** A report in which the first so many of five tests, each in a file of its own, failed. */
function withFailures(count: number): Report {
  const testResults = Array.from({ length: 5 }, (_, index) => ({
    name: `/b/${index}.test.ts`,
    assertionResults: [
      { status: index < count ? "failed" : "passed", fullName: `test ${index}`, failureMessages: ["Error: no"] },
    ],
  }));
  const counts = { numPassedTests: 5 - count, numFailedTests: count };
  return { ...good, ...counts, success: count === 0, testResults };
}

test.each([
  { when: "all passed", report: withFailures(0), files: [] },
  { when: "one failed", report: withFailures(1), files: ["/b/0.test.ts"] },
  { when: "three failed", report: withFailures(3), files: ["/b/0.test.ts", "/b/1.test.ts", "/b/2.test.ts"] },
  { when: "four failed", report: withFailures(4), files: [] },
  { when: "one failed and one was skipped", report: { ...withFailures(1), numPendingTests: 1 }, files: [] },
  { when: "there is no report", report: undefined, files: [] },
])("files of failed tests run again when $when: $files", ({ report, files }) => {
  expect(filesToRepeat(report, tallyReport("unit", 1, report))).toEqual(files);
});

test("what passes the second time is unsteady, and stays in the complaints", () => {
  const first = tallyReport("unit", 1, withFailures(2));
  const both = tallyTwoRuns(first, tallyReport("unit", 0, { ...good, numPassedTests: 2 }));
  expect(both).toMatchObject({ passed: 5, failed: 0, unsteady: 2 });
  expect(both.complaints.join()).toMatch(
    /^UNSTEADY, passed the second time: \/b\/0\.test\.ts: test 0\n {4}Error: no,UNSTEADY/,
  );
});

test.each([
  { what: "a test fails again", report: withFailures(1) },
  { what: "no test ran", report: { ...good, numPassedTests: 0 } },
  { what: "there is no report", report: undefined },
])("the first run counts when $what in the second", ({ report }) => {
  const first = tallyReport("unit", 1, withFailures(2));
  const both = tallyTwoRuns(first, tallyReport("unit", 1, report));
  expect(both).toMatchObject({ passed: 3, failed: 2, unsteady: 0 });
  expect(both.complaints.length).toBeGreaterThan(first.complaints.length);
});
