/** Counts the results of a run of one kind of tests: no test passes by not running. */

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** Tests that failed, and passed when they were run a second time. */
  readonly unsteady: number;
  /** Cases that only the long run has: test/world/long-cases.ts. */
  readonly toDo: number;
  /** The failures and their reasons: the tests, then errors that no test reports by itself. */
  readonly complaints: readonly string[];
}

export const NOTHING: Tally = { passed: 0, failed: 0, unsteady: 0, toDo: 0, complaints: [] };

/** In one run of the gate. More failures than these are no accident. */
export const MAX_UNSTEADY = 3;

/** The part of a failed test's message that distinguishes it from others: a log is often all that is left of a run. */
const FAILURE_LINES = 12;

/** The parts of vitest's JSON report that are read. */
export interface Report {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly FileResult[];
}

/**
 * Its status is `failed` without a failed test when it cannot be loaded or a hook has failed; then `message` may say
 * why.
 */
interface FileResult {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly assertionResults: readonly TestResult[];
}

interface TestResult {
  readonly status: string;
  readonly fullName: string;
  readonly failureMessages: readonly string[] | null;
}

/** A failure of the tests: one test, or the hooks of a file, whose tests did not run. */
interface Failure {
  readonly file: string;
  readonly text: string;
}

function failuresOf({ testResults }: Report): Failure[] {
  return testResults.flatMap((file) => {
    const failed = file.assertionResults.filter(({ status }) => status === "failed");
    const texts = failed.map(({ fullName, failureMessages }) => describeFailure(file, fullName, failureMessages ?? []));
    const { length: notRun } = file.assertionResults.filter(isSkipped);
    if (file.status === "failed" && failed.length === 0)
      texts.push(
        describeFailure(file, `a hook or the file itself failed, ${notRun} tests did not run`, [file.message]),
      );
    return texts.map((text) => ({ file: file.name, text }));
  });
}

function describeFailure({ name }: FileResult, what: string, messages: readonly string[]): string {
  const lines = messages.join("\n").split("\n").slice(0, FAILURE_LINES);
  return [`${name}: ${what}`, ...lines].join("\n    ");
}

function isSkipped({ status }: TestResult): boolean {
  return status !== "passed" && status !== "failed" && status !== "todo";
}

/** Counts a report, and as one failure whatever is wrong although no test failed; with `mayBeEmpty`, not no test. */
export function tallyReport(kind: string, exitCode: number, report: Report | undefined, mayBeEmpty = false): Tally {
  if (report === undefined) return addComplaint(NOTHING, `${kind}: vitest left no report`);
  const { numPassedTests: passed, numTodoTests: toDo, success } = report;
  const failures = failuresOf(report);
  const complaints: string[] = [];
  const skipped = countSkipped(report);
  if (skipped > 0) complaints.push(`${kind}: ${skipped} tests were skipped`);
  if (passed + failures.length === 0 && !mayBeEmpty) complaints.push(`${kind}: no test ran`);
  else if ((exitCode !== 0 || !success) && failures.length === 0)
    complaints.push(`${kind}: vitest failed outside of the tests`);
  return {
    passed,
    failed: failures.length + complaints.length,
    unsteady: 0,
    toDo,
    complaints: [...failures.map(({ text }) => text), ...complaints],
  };
}

/** Without those that a failed hook kept from running. */
function countSkipped({ testResults }: Report): number {
  const complete = testResults.filter(({ status }) => status !== "failed");
  return complete.flatMap(({ assertionResults }) => assertionResults).filter(isSkipped).length;
}

/** The files of failed tests that are worth a second run: a few failed, and nothing else was wrong. */
export function filesToRepeat(report: Report | undefined, { failed }: Tally): string[] {
  if (report === undefined || failed > MAX_UNSTEADY) return [];
  const failures = failuresOf(report);
  return failures.length === failed ? [...new Set(failures.map(({ file }) => file))] : [];
}

/**
 * The result of two runs: the first with its report, the second of the files to repeat. Only when all of those pass
 * the second time, by themselves, was it an accident; it stays in the complaints.
 */
export function tallyTwoRuns(first: Tally, report: Report | undefined, second: Tally): Tally {
  if (report === undefined || second.failed > 0)
    return {
      ...first,
      complaints: [...first.complaints, ...second.complaints.map((each) => `the second time: ${each}`)],
    };
  const repeated = filesToRepeat(report, first);
  const passedBefore = report.testResults
    .filter(({ name }) => repeated.includes(name))
    .flatMap(({ assertionResults }) => assertionResults.filter(({ status }) => status === "passed")).length;
  const complaints = first.complaints.map((complaint) => `UNSTEADY, passed the second time: ${complaint}`);
  const passed = first.passed - passedBefore + second.passed;
  return { ...first, passed, failed: 0, unsteady: first.failed, complaints };
}

/** The tally with one more failure that is no test's, if there is one. */
export function addComplaint(tally: Tally, complaint: string | undefined): Tally {
  if (complaint === undefined) return tally;
  return { ...tally, failed: tally.failed + 1, complaints: [...tally.complaints, complaint] };
}
