import { beforeEach, describe, expect, it } from "vitest";
import { POOL_WRITES_BATCH_MS, POOL_WRITES_SAVED_MS, PoolWrites } from "../../../host/controller/pool-writes.ts";
import { Seeded } from "../../world/seeded.ts";

let nowMs = 0;
let nodes = 5_000;
let writes: PoolWrites;

beforeEach(() => {
  nowMs = 7_000_000;
  nodes = 5_000;
  writes = new PoolWrites({ nodes: () => nodes, nowMs: () => nowMs });
});

/** Makes as many writes of addresses as may be made now, and returns their number. */
function spendAll(): number {
  let count = 0;
  for (; writes.isOpen && count < 100_000; count++) writes.spend(1);
  return count;
}

/** Makes as many writes of a status as may be made now, and returns their number. */
function takeAll(): number {
  let count = 0;
  while (count < 100_000 && writes.takeForStatus() === 0) count++;
  return count;
}

/** The number of writes that the act makes in ten seconds. */
function inTenSeconds(act: () => number): number {
  let count = 0;
  for (let step = 0; step < 100; step++) {
    nowMs += 100;
    count += act();
  }
  return count;
}

describe("writes of addresses", () => {
  it("are 80 a second with 5,000 nodes, of which those of half a second are saved up", () => {
    expect(spendAll()).toBe(40);
    nowMs += 1_000;
    expect(spendAll()).toBe(40);
    expect(inTenSeconds(spendAll)).toBe(800);
  });

  it("wait for nothing in a small cluster", () => {
    nodes = 10;
    expect(spendAll()).toBe(20_000);
    nodes = 0;
    nowMs += POOL_WRITES_SAVED_MS;
    expect(writes.waitMs(50_000)).toBe(0);
  });

  it("wait for a batch, or for all if these are fewer", () => {
    spendAll();
    expect([writes.waitMs(1_000), writes.waitMs(2)]).toEqual([POOL_WRITES_BATCH_MS, 25]);
    nowMs += 25;
    expect([writes.waitMs(2), writes.waitMs(3)]).toEqual([0, 12.5]);
  });

  it.each([1, 2, 3, 4])("whatever asks and whenever, nodes are told of all in time (seed %i)", (seed) => {
    const random = new Seeded(seed);
    const made: number[] = [];
    for (let step = 0; step < 2_000; step++) {
      nowMs += random.below(60);
      for (let asked = random.below(30); asked > 0 && writes.isOpen; asked--) {
        writes.spend(1);
        made.push(nowMs);
      }
      if (writes.takeForStatus() === 0) made.push(nowMs);
    }
    for (const [first, fromMs] of made.entries()) {
      const last = made.findLastIndex((atMs) => atMs <= fromMs + 5_000);
      // Five seconds and the saved ones; one more of each kind may have been begun.
      expect(last - first + 1).toBeLessThanOrEqual((5_000 + POOL_WRITES_SAVED_MS) * (0.08 + 0.008) + 2);
    }
  });
});

describe("writes of a status", () => {
  it("get the rest of those of addresses", () => {
    const count = inTenSeconds(takeAll);
    expect(count).toBeGreaterThan(87 * 10);
    expect(count).toBeLessThanOrEqual(89 * 10 + 10);
    // And a batch of addresses can begin.
    expect(writes.waitMs(1_000)).toBe(0);
  });

  it("get a tenth beside a roll-out", () => {
    const count = inTenSeconds(() => {
      spendAll();
      return takeAll();
    });
    // Eight a second, and four that were saved.
    expect(count).toBeGreaterThanOrEqual(80);
    expect(count).toBeLessThanOrEqual(85);
  });

  it("wait until asked again, and no longer than the leadership lasts", async () => {
    spendAll();
    takeAll();
    const waitMs = writes.takeForStatus();
    expect(waitMs).toBeGreaterThan(0);
    nowMs += waitMs;
    await writes.awaitForStatus(new AbortController().signal);
    takeAll();
    await expect(writes.awaitForStatus(AbortSignal.abort(new Error("leads no more")))).rejects.toThrow("leads no more");
  });
});
