import { expect, it } from "vitest";
import { RateLimit } from "../../../host/lib/rate-limit.ts";

it("lets a burst pass, then so much a second, for each key", () => {
  let nowMs = 0;
  const rate = new RateLimit({ burst: 3, perSecond: 2, maxKeys: 2 }, () => nowMs);
  const taken = (key: string, cost?: number) => rate.take(key, cost);
  expect([taken("a", 2), taken("a", 2), taken("a")]).toEqual([true, false, true]);
  expect([taken("a"), taken("b", 3)]).toEqual([false, true]);
  nowMs = 500;
  expect([taken("a"), taken("a"), taken("b", 2)]).toEqual([true, false, false]);
  rate.giveBack("a");
  expect([taken("a"), taken("a")]).toEqual([true, false]);
  nowMs = 60_000;
  expect([taken("a", 4), taken("a", 3)]).toEqual([false, true]);
});
