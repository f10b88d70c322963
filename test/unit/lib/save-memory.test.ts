import { execFileSync } from "node:child_process";
import { cachedDataVersionTag } from "node:v8";
import { afterEach, expect, it } from "vitest";
import { saveMemory } from "../../../host/lib/save-memory.ts";

afterEach(() => saveMemory(false));

/** Returns how often V8 looks for garbage in all of a small heap, of whose objects each lives for a while, as those of calls do. */
function countCollections(isSaving: boolean): number {
  const program = `
    import { saveMemory } from ${JSON.stringify(import.meta.resolve("../../../host/lib/save-memory.ts"))};
    if (${isSaving}) saveMemory(true);
    const kept = [];
    for (let made = 0; made < 3_000_000; made++) kept[made % 50_000] = { made, text: String(made), list: [made] };
  `;
  const words = ["--trace-gc", "--input-type=module", "--eval", program];
  return execFileSync(process.execPath, words, { encoding: "utf8" }).split("Mark-Compact").length - 1;
}

it("makes V8 look for garbage several times as often", () => {
  const usual = countCollections(false);
  expect(usual).toBeGreaterThan(0);
  expect(countCollections(true)).toBeGreaterThan(10 * usual);
});

it("keeps code valid that was compiled before, once it is off", () => {
  const before = cachedDataVersionTag();
  saveMemory(true);
  expect(cachedDataVersionTag()).not.toBe(before);
  saveMemory(false);
  expect(cachedDataVersionTag()).toBe(before);
});
