import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  CALLS_PER_COLLECTION,
  CALLS_PER_QUIET_TRIM,
  CALLS_PER_TRIM,
  COLD_CALLS,
  IDLE_LOOKS,
  MAX_SAVING_HEAP_BYTES,
  STORM_INTERVAL_MS,
  startTrimming,
  TRIM_INTERVAL_MS,
} from "../../../host/agent/trim-memory.ts";

const MIB = 1024 * 1024;

/** How long a collection takes here: milliseconds. */
const COLLECTION_MS = 50;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An agent with a heap of 40 MiB, of which a collection leaves 30. */
function start() {
  const calls = { begun: 0, underWay: 0 };
  const state = { heapMib: 40, done: [] as string[] };
  const collect = (): void => {
    state.done.push("collect");
    state.heapMib = 30;
    vi.setSystemTime(Date.now() + COLLECTION_MS);
  };
  const trimming = startTrimming({
    calls,
    collect,
    trim: () => state.done.push("trim"),
    save: (isOn) => state.done.push(isOn ? "save" : "save no more"),
    heapBytes: () => state.heapMib * MIB,
  });
  /** Passes this many looks, and returns what they did. */
  const look = (times = 1): string[] => pass(times * TRIM_INTERVAL_MS);
  const pass = (ms: number): string[] => {
    vi.advanceTimersByTime(ms);
    return state.done.splice(0);
  };
  return { calls, state, look, pass, trimming };
}

describe("an agent that no plugin calls", () => {
  it("collects and trims at the second look, and not again while it does not grow", () => {
    const { state, look } = start();
    expect(look()).toEqual([]);
    expect(look()).toEqual(["collect", "trim"]);
    state.heapMib = 35;
    expect(look(1_000)).toEqual([]);
  });

  it("collects again once it has grown", () => {
    const { state, look } = start();
    look(2);
    look(20);
    state.heapMib = 36;
    expect(look()).toEqual(["collect", "trim"]);
  });

  it("rests a hundred times as long as the collection took", () => {
    const { state, look } = start();
    vi.spyOn(performance, "now").mockImplementation(() => Date.now());
    look(2);
    state.heapMib = 90;
    expect(look(4)).toEqual([]);
    expect(look()).toEqual(["collect", "trim"]);
  });

  it("does nothing any more once it is closed", () => {
    const { look, trimming } = start();
    trimming.close();
    expect(look(10)).toEqual([]);
  });
});

describe("an agent that plugins call", () => {
  it("does not collect until two looks after the last call", () => {
    const { calls, look } = start();
    for (let second = 0; second < 10; second++) {
      calls.begun++;
      expect(look()).toEqual([]);
    }
    expect(look()).toEqual([]);
    expect(look()).toEqual(["collect", "trim"]);
  });

  it("does not collect while a call is under way", () => {
    const { calls, look } = start();
    calls.begun = 1;
    calls.underWay = 1;
    expect(look(60)).toEqual([]);
    calls.underWay = 0;
    expect(look(2)).toEqual(["collect", "trim"]);
  });

  it("trims after many calls, however large it is", () => {
    const { calls, look } = start();
    calls.begun = CALLS_PER_TRIM - 1;
    expect(look()).toEqual([]);
    calls.begun++;
    expect(look()).toEqual(["trim"]);
    calls.begun += CALLS_PER_TRIM - 1;
    expect(look()).toEqual([]);
  });
});

describe("an agent whose code has been compiled", () => {
  /** It has answered so many calls without a pause, then has been quiet for two looks. */
  function startAfter(calls: number) {
    const agent = start();
    agent.calls.begun = calls;
    return { ...agent, first: agent.look(3) };
  }

  it("collects as long as few calls have come", () => {
    expect(startAfter(COLD_CALLS - 1).first).toEqual(["collect", "trim"]);
  });

  it("does not collect after more, but trims", () => {
    expect(startAfter(COLD_CALLS).first).toEqual(["trim"]);
  });

  it("collects once many calls have come since the start, then since the last collection", () => {
    expect(startAfter(CALLS_PER_COLLECTION - 1).first).not.toContain("collect");
    const { calls, state, look, first } = startAfter(CALLS_PER_COLLECTION);
    expect(first).toContain("collect");
    state.heapMib = 45;
    calls.begun += CALLS_PER_COLLECTION - 1;
    expect(look(30)).not.toContain("collect");
    calls.begun++;
    expect(look(3)).toEqual(["save", "save no more", "collect", "trim"]);
  });

  it("collects when no plugin has called for ten minutes", () => {
    const { look } = startAfter(COLD_CALLS);
    expect(look(IDLE_LOOKS - 3)).toEqual([]);
    expect(look()).toEqual(["collect", "trim"]);
  });

  it("trims when it is quiet and some calls have come since", () => {
    const { calls, look } = startAfter(COLD_CALLS);
    calls.begun += CALLS_PER_QUIET_TRIM - 1;
    expect(look(30)).toEqual([]);
    calls.begun++;
    expect(look(3)).toEqual(["trim"]);
  });
});

describe("an agent in a storm of calls", () => {
  /** It has answered enough calls for a collection, and more come. */
  function startInStorm() {
    const agent = start();
    agent.calls.begun = CALLS_PER_COLLECTION;
    agent.look();
    return agent;
  }

  it("saves memory once enough calls for a collection have come without a pause", () => {
    const { calls, look } = start();
    calls.begun = CALLS_PER_COLLECTION - 1;
    expect(look()).not.toContain("save");
    calls.begun++;
    expect(look()).toContain("save");
    calls.begun++;
    expect(look()).not.toContain("save");
  });

  it("saves no memory that is not worth its time: of a large heap", () => {
    const { calls, state, look, pass } = start();
    state.heapMib = MAX_SAVING_HEAP_BYTES / MIB + 1;
    calls.begun = CALLS_PER_COLLECTION;
    expect(look()).not.toContain("save");
    expect(pass(2 * STORM_INTERVAL_MS)).toContain("collect");
  });

  it("looks ten times as often, and trims as often as the calls allow", () => {
    const { calls, pass } = startInStorm();
    calls.begun += CALLS_PER_TRIM;
    expect(pass(STORM_INTERVAL_MS)).toEqual(["trim"]);
    calls.begun += CALLS_PER_TRIM - 1;
    expect(pass(STORM_INTERVAL_MS)).toEqual([]);
  });

  it("collects two such looks after the last call, though V8's heap has not grown, and saves no more", () => {
    const { state, pass } = startInStorm();
    state.heapMib = 1;
    expect(pass(STORM_INTERVAL_MS)).toEqual([]);
    expect(pass(STORM_INTERVAL_MS)).toEqual(["save no more", "collect", "trim"]);
    expect(pass(IDLE_LOOKS * TRIM_INTERVAL_MS)).not.toContain("collect");
  });

  it("stays in it while a call is under way", () => {
    const { calls, pass } = startInStorm();
    calls.underWay = 1;
    expect(pass(60_000)).toEqual([]);
    calls.underWay = 0;
    expect(pass(2 * STORM_INTERVAL_MS)).toContain("save no more");
  });

  it("saves no more at its end when the last collection is too recent for another", () => {
    vi.spyOn(performance, "now").mockImplementation(() => Date.now());
    const { calls, state, pass, look } = startInStorm();
    expect(pass(2 * STORM_INTERVAL_MS)).toContain("collect");
    calls.begun += CALLS_PER_COLLECTION;
    expect(look()).toContain("save");
    state.heapMib = 45;
    expect(pass(2 * STORM_INTERVAL_MS)).toEqual(["save no more"]);
    expect(look(4)).toEqual(["collect", "trim"]);
  });
});
