import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";

/** Compares a committed page with its generated text; `UPDATE_VECTORS=1` writes it instead. */
export function expectCommitted(path: string, text: string): void {
  if (process.env.UPDATE_VECTORS === "1") writeFileSync(path, text);
  const mend = `${path} is not what its source says: run UPDATE_VECTORS=1 vitest run --project unit, and read the change`;
  expect(readFileSync(path, "utf8"), mend).toBe(text);
}
