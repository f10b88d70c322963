import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { WaitingPods } from "../../../../host/agent/cluster/waiting-pods.ts";

const marks: string[] = [];
const pods = new WaitingPods(async (pool, waiting) => void marks.push(`${pool} ${waiting}`));

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it("the first pod is told at once, those of the next second together, and each once", async () => {
  for (const pool of ["lan", "lan", "lan", "other", "lan"]) await pods.add(pool);
  expect(marks.splice(0)).toEqual(["lan 1", "other 1"]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(marks.splice(0)).toEqual(["lan 3"]);
  await pods.add("lan");
  expect(marks).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(marks.splice(0)).toEqual(["lan 1"]);
  await pods.add("lan");
  expect(marks).toEqual(["lan 1"]);
});
