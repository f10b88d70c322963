import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { expect } from "vitest";

/** Compares `text` with the committed file; `npm run generate` (`vitest run --update`) records it instead. */
export async function expectRecorded(path: string, text: string): Promise<void> {
  if (expect.getState().snapshotState.snapshotUpdateState !== "all")
    expect(existsSync(path), `${path} is missing: run npm run generate`).toBe(true);
  await expect(
    text,
    `${path} differs from its source: run npm run generate, and review the difference`,
  ).toMatchFileSnapshot(resolve(path));
}
