import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/**
 * Returns a new directory for the tests of a file, or of a describe; it goes after the last of them. With
 * `onTestFinished` it is one test's.
 */
export function temporaryDirectory(prefix: string, until: (end: () => void) => void = afterAll): string {
  const directory = mkdtempSync(join(tmpdir(), prefix));
  until(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
