/**
 * What a run of one kind of tests counts for: no test passes by not running.
 * Called by test.ts.
 * Effects: none.
 */

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** Why something failed that no test reports by itself. */
  readonly complaints: readonly string[];
}

/** What is read of vitest's JSON report. */
export interface Report {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
}

/** Counts a report, and as one failure whatever is wrong although no test failed. */
export function tallyReport(kind: string, exitCode: number, report: Report | undefined): Tally {
  if (report === undefined) return { passed: 0, failed: 1, complaints: [`${kind}: vitest left no report`] };
  const { numPassedTests: passed, numFailedTests, numPendingTests, numTodoTests, success } = report;
  const skipped = numPendingTests + numTodoTests;
  const complaints: string[] = [];
  if (skipped > 0) complaints.push(`${kind}: ${skipped} tests were skipped`);
  if (passed + numFailedTests === 0) complaints.push(`${kind}: no test ran`);
  else if ((exitCode !== 0 || !success) && numFailedTests === 0)
    complaints.push(`${kind}: vitest failed outside of the tests`);
  return { passed, failed: numFailedTests + complaints.length, complaints };
}
