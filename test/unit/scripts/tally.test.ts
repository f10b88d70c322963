import { expect, test } from "vitest";
import { type Report, tallyReport } from "../../../scripts/tally.ts";

const good: Report = {
  success: true,
  numPassedTests: 3,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  testResults: [],
};

test.each([
  { when: "all pass", exitCode: 0, report: good, passed: 3, failed: 0, complaint: undefined },
  {
    when: "one fails",
    exitCode: 1,
    report: { ...good, success: false, numFailedTests: 1 },
    passed: 3,
    failed: 1,
    complaint: undefined,
  },
  {
    when: "none ran",
    exitCode: 1,
    report: { ...good, success: false, numPassedTests: 0 },
    passed: 0,
    failed: 1,
    complaint: "no test ran",
  },
  {
    when: "none ran and vitest says fine",
    exitCode: 0,
    report: { ...good, numPassedTests: 0 },
    passed: 0,
    failed: 1,
    complaint: "no test ran",
  },
  {
    when: "one is skipped",
    exitCode: 0,
    report: { ...good, numPendingTests: 1 },
    passed: 3,
    failed: 1,
    complaint: "1 tests were skipped",
  },
  {
    when: "one is to do",
    exitCode: 0,
    report: { ...good, numTodoTests: 1 },
    passed: 3,
    failed: 1,
    complaint: "1 tests were skipped",
  },
  {
    when: "a file cannot be loaded",
    exitCode: 1,
    report: { ...good, success: false },
    passed: 3,
    failed: 1,
    complaint: "outside of the tests",
  },
  {
    when: "vitest dies after its report",
    exitCode: 1,
    report: good,
    passed: 3,
    failed: 1,
    complaint: "outside of the tests",
  },
  { when: "there is no report", exitCode: 0, report: undefined, passed: 0, failed: 1, complaint: "left no report" },
])("tally when $when", ({ exitCode, report, passed, failed, complaint }) => {
  const tally = tallyReport("unit", exitCode, report);
  expect(tally).toMatchObject({ passed, failed });
  expect(tally.complaints.join()).toContain(complaint ?? "");
  expect(tally.complaints.length > 0).toBe(complaint !== undefined);
});

test("a failed test is told with its file, its name and the first lines of what it says", () => {
  const failed = {
    status: "failed",
    fullName: "a pool is full",
    failureMessages: [`Error: no\n${"at x\n".repeat(40)}`],
  };
  const passed = { status: "passed", fullName: "a pool is empty", failureMessages: [] };
  const testResults = [{ name: "/b/pool.test.ts", assertionResults: [passed, failed] }];
  const { complaints } = tallyReport("unit", 1, { ...good, success: false, numFailedTests: 1, testResults });
  expect(complaints).toHaveLength(1);
  expect(complaints[0]).toMatch(/^\/b\/pool\.test\.ts: a pool is full\n {4}Error: no\n/);
  expect(complaints[0]?.split("\n")).toHaveLength(13);
});
