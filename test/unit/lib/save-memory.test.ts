import { execFileSync } from "node:child_process";
import { cachedDataVersionTag } from "node:v8";
import { afterEach, expect, it } from "vitest";
import { saveMemory } from "../../../host/lib/save-memory.ts";

afterEach(() => saveMemory(false));

/** Prints how often V8 looks for garbage in all of a small heap, without and with memory being saved, while objects live as long as those of calls. */
const PROGRAM = `
import { constants, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { saveMemory } from ${JSON.stringify(import.meta.resolve("../../../host/lib/save-memory.ts"))};

const KEPT = 50_000;

async function countCollections(objects) {
  let count = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) count++;
  });
  observer.observe({ entryTypes: ["gc"] });
  const kept = [];
  for (let made = 0; made < objects; made++) {
    kept[made % KEPT] = { made, text: String(made), list: [made] };
    if (made % KEPT === 0) await sleep(1);
  }
  await sleep(20);
  observer.disconnect();
  return count;
}

await countCollections(1_000_000);
const usual = await countCollections(2_000_000);
saveMemory(true);
await countCollections(1_000_000);
console.log(JSON.stringify({ usual, saving: await countCollections(2_000_000) }));
`;

it("makes V8 look for garbage several times as often", () => {
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", PROGRAM], { encoding: "utf8" });
  const { usual, saving } = JSON.parse(output);
  expect(usual).toBeGreaterThan(0);
  expect(saving).toBeGreaterThan(3 * usual);
});

it("keeps code valid that was compiled before, once it is off", () => {
  const before = cachedDataVersionTag();
  saveMemory(true);
  expect(cachedDataVersionTag()).not.toBe(before);
  saveMemory(false);
  expect(cachedDataVersionTag()).toBe(before);
});
