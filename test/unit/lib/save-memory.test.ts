import { constants, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { cachedDataVersionTag } from "node:v8";
import { afterEach, expect, it } from "vitest";
import { saveMemory } from "../../../host/lib/save-memory.ts";

afterEach(() => saveMemory(false));

/** Objects that live for a while, as those of calls do. */
const KEPT = 50_000;

/** Returns how often V8 looks for garbage in all of the heap while it gets this many objects. */
async function countCollections(objects: number): Promise<number> {
  let count = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries() as { detail?: { kind?: number } }[])
      if (detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR) count++;
  });
  observer.observe({ entryTypes: ["gc"] });
  const kept: unknown[] = [];
  for (let made = 0; made < objects; made++) {
    kept[made % KEPT] = { made, text: `${made}`, list: [made] };
    if (made % KEPT === 0) await sleep(1);
  }
  await sleep(20);
  observer.disconnect();
  return count;
}

it("makes V8 look for garbage several times as often", async () => {
  await countCollections(1_000_000);
  const usual = await countCollections(2_000_000);
  saveMemory(true);
  await countCollections(1_000_000);
  const saving = await countCollections(2_000_000);
  expect(saving).toBeGreaterThan(2 * usual);
});

it("keeps code valid that was compiled before, once it is off", () => {
  const before = cachedDataVersionTag();
  saveMemory(true);
  expect(cachedDataVersionTag()).not.toBe(before);
  saveMemory(false);
  expect(cachedDataVersionTag()).toBe(before);
});
