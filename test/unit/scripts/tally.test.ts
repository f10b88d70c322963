import { expect, it, test } from "vitest";
import { filesToRepeat, type Report, tallyReport, tallyTwoRuns } from "../../../scripts/tally.ts";

type File = Report["testResults"][number];

/** A file of tests with these statuses. It failed if one of them did, or with a message. */
function file(name: string, statuses: readonly string[], message?: string): File {
  return {
    name: `/b/${name}.test.ts`,
    status: statuses.includes("failed") || message !== undefined ? "failed" : "passed",
    message: message ?? "",
    assertionResults: statuses.map((status, index) => {
      const failureMessages = status === "failed" ? ["Error: no"] : [];
      return { status, fullName: `test ${index}`, failureMessages };
    }),
  };
}

function report(...testResults: readonly File[]): Report {
  const statuses = testResults.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status));
  const success = testResults.every(({ status }) => status === "passed");
  const count = (wanted: string): number => statuses.filter((status) => status === wanted).length;
  return { success, numPassedTests: count("passed"), numTodoTests: count("todo"), testResults };
}

const good = report(file("good", ["passed", "passed", "passed"]));
const noHook = file("hook", ["skipped", "skipped"], "Error: no place");

type Row = [when: string, exitCode: number, given: Report | undefined, passed: number, failed: number, what?: string];

test.each<Row>([
  ["all pass", 0, good, 3, 0],
  ["one fails", 1, report(file("a", ["passed", "failed"])), 1, 1, "/b/a.test.ts: test 1\n    Error: no"],
  ["none ran", 1, { ...report(), success: false }, 0, 1, "no test ran"],
  ["none ran and vitest says fine", 0, report(), 0, 1, "no test ran"],
  ["one is skipped", 0, report(file("a", ["passed", "skipped"])), 1, 1, "1 tests were skipped"],
  ["one is to do", 0, report(file("a", ["passed", "todo"])), 1, 0],
  ["all are to do", 0, report(file("a", ["todo"])), 0, 1, "no test ran"],
  ["a file cannot be loaded", 1, report(file("a", [], "Error: no module")), 0, 1, "a.test.ts: a hook or the file itself failed, 0 tests did not run\n    Error: no module"], // biome-ignore format: one line each
  ["a hook fails", 1, report(noHook), 0, 1, "hook.test.ts: a hook or the file itself failed, 2 tests did not run\n    Error: no place"], // biome-ignore format: one line each
  ["an error comes from outside", 1, { ...good, success: false }, 3, 1, "outside of the tests"],
  ["vitest dies after its report", 1, good, 3, 1, "outside of the tests"],
  ["there is no report", 0, undefined, 0, 1, "left no report"],
])("tally when %s", (_when, exitCode, given, passed, failed, complaint) => {
  const tally = tallyReport("unit", exitCode, given);
  expect(tally).toMatchObject({ passed, failed });
  expect(tally.complaints).toEqual(complaint === undefined ? [] : [expect.stringContaining(complaint)]);
});

it("tests to do are counted, also when a test fails the first time", () => {
  const first = report(file("a", ["failed", "todo", "todo"]));
  const second = tallyReport("unit", 0, report(file("a", ["passed", "todo", "todo"])));
  expect(tallyTwoRuns(tallyReport("unit", 1, first), first, second)).toMatchObject({ passed: 1, unsteady: 1, toDo: 2 });
});

it.each([
  ["none ran", 0, report(), 0],
  ["vitest dies", 1, report(), 1],
])("where no test need have changed: %s", (_, exitCode, given, failed) => {
  expect(tallyReport("property", exitCode, given, true).failed).toBe(failed);
});

/** A report in which the first so many of five tests, each in a file of its own, failed. */
function withFailures(count: number): Report {
  return report(...Array.from({ length: 5 }, (_, index) => file(`${index}`, [index < count ? "failed" : "passed"])));
}

test.each([
  { when: "all passed", given: withFailures(0), files: [] },
  { when: "one failed", given: withFailures(1), files: ["/b/0.test.ts"] },
  { when: "two of one file failed", given: report(file("a", ["failed", "failed"])), files: ["/b/a.test.ts"] },
  { when: "three failed", given: withFailures(3), files: ["/b/0.test.ts", "/b/1.test.ts", "/b/2.test.ts"] },
  { when: "four failed", given: withFailures(4), files: [] },
  { when: "a hook failed", given: report(...withFailures(1).testResults, noHook), files: ["/b/0.test.ts", "/b/hook.test.ts"] }, // biome-ignore format: one line each
  { when: "one failed and one was skipped", given: report(...withFailures(1).testResults, file("s", ["skipped"])), files: [] }, // biome-ignore format: one line each
  { when: "there is no report", given: undefined, files: [] },
])("files of failed tests run again when $when: $files", ({ given, files }) => {
  expect(filesToRepeat(given, tallyReport("unit", 1, given))).toEqual(files);
});

test("a test that passes the second time is unsteady, and stays in the complaints", () => {
  const first = report(file("a", ["passed", "failed"]), file("b", ["passed"]), noHook);
  const second = report(file("a", ["passed", "passed"]), file("hook", ["passed", "passed"]));
  const both = tallyTwoRuns(tallyReport("unit", 1, first), first, tallyReport("unit", 0, second));
  expect(both).toMatchObject({ passed: 5, failed: 0, unsteady: 2 });
  expect(both.complaints.join()).toMatch(
    /^UNSTEADY, passed the second time: \/b\/a\.test\.ts: test 1\n {4}Error: no,UNSTEADY/,
  );
});

test.each([
  { what: "a test fails again", again: withFailures(1) },
  { what: "no test ran", again: report() },
  { what: "there is no report", again: undefined },
])("the first run counts when $what in the second", ({ again }) => {
  const first = tallyReport("unit", 1, withFailures(2));
  const both = tallyTwoRuns(first, withFailures(2), tallyReport("unit", 1, again));
  expect(both).toMatchObject({ passed: 3, failed: 2, unsteady: 0 });
  expect(both.complaints.length).toBeGreaterThan(first.complaints.length);
});
