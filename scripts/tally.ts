/** What a run of one kind of tests counts for: no test passes by not running. */

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** Tests that failed, and passed when they were run a second time. */
  readonly unsteady: number;
  /** What failed and why: the tests, then what no test reports by itself. */
  readonly complaints: readonly string[];
}

/** In one run of the gate. More failures than these are no accident. */
export const MAX_UNSTEADY = 3;

/** The part of a failed test's message that distinguishes it from others: a log is often all that is left of a run. */
const FAILURE_LINES = 12;

/** What is read of vitest's JSON report. */
export interface Report {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[] | null;
    }[];
  }[];
}

/** The failed tests of a report, each with its file, name and message. */
function failedTests({ testResults }: Report): string[] {
  return testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ fullName, failureMessages }) => {
        const lines = (failureMessages ?? []).join("\n").split("\n").slice(0, FAILURE_LINES);
        return [`${name}: ${fullName}`, ...lines].join("\n    ");
      }),
  );
}

/** Counts a report, and as one failure whatever is wrong although no test failed. */
export function tallyReport(kind: string, exitCode: number, report: Report | undefined): Tally {
  if (report === undefined)
    return { passed: 0, failed: 1, unsteady: 0, complaints: [`${kind}: vitest left no report`] };
  const { numPassedTests: passed, numFailedTests, numPendingTests, numTodoTests, success } = report;
  const skipped = numPendingTests + numTodoTests;
  const complaints: string[] = [];
  if (skipped > 0) complaints.push(`${kind}: ${skipped} tests were skipped`);
  if (passed + numFailedTests === 0) complaints.push(`${kind}: no test ran`);
  else if ((exitCode !== 0 || !success) && numFailedTests === 0)
    complaints.push(`${kind}: vitest failed outside of the tests`);
  const failed = numFailedTests + complaints.length;
  return { passed, failed, unsteady: 0, complaints: [...failedTests(report), ...complaints] };
}

/** The files of failed tests that are worth a second run: a few failed, and nothing else was wrong. */
export function filesToRepeat(report: Report | undefined, { failed }: Tally): string[] {
  if (report === undefined || failed !== report.numFailedTests || failed > MAX_UNSTEADY) return [];
  const hasFailed = ({ status }: { readonly status: string }): boolean => status === "failed";
  return report.testResults.flatMap(({ name, assertionResults }) => (assertionResults.some(hasFailed) ? [name] : []));
}

/** The result of two runs. Only when all of those files pass the second time, by themselves, was it an accident; it stays in the complaints. */
export function tallyTwoRuns(first: Tally, second: Tally): Tally {
  if (second.failed > 0) return { ...first, complaints: [...first.complaints, ...second.complaints.map(again)] };
  const complaints = first.complaints.map((complaint) => `UNSTEADY, passed the second time: ${complaint}`);
  return { passed: first.passed + first.failed, failed: 0, unsteady: first.failed, complaints };
}

function again(complaint: string): string {
  return `the second time: ${complaint}`;
}
