/**
 * No interleaving of claims, releases, take-overs, lost answers, late writes, old events and agents that end makes an
 * address live twice or loses it.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { times } from "../../world/long-cases.ts";
import { walk } from "./walk.ts";

const FIRST_SEED = Number(process.env.WALK_SEED ?? 1);
const WALKS = Number(process.env.WALKS ?? times(6));
const STEPS = Number(process.env.WALK_STEPS ?? 300);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

it.each([0, 0.1, 0.4])(
  "walks of several nodes keep both invariants while %d of the calls go wrong",
  async (faultShare) => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + WALKS; seed++) {
      const { problems, log } = await walk({ seed, steps: STEPS, faultShare });
      expect(problems, `seed ${seed}\n${log.slice(-120).join("\n")}`).toEqual([]);
    }
  },
);

it.each([
  [20_391, 0.1],
  [20_158, 0.4],
])("seed %d: a write that changes nothing does not let an earlier write succeed late", async (seed, faultShare) => {
  const { problems, log } = await walk({ seed, steps: STEPS, faultShare });
  expect(problems, log.slice(-120).join("\n")).toEqual([]);
});
