import { describe, expect, it } from "vitest";
import {
  type Action,
  type AskedSighting,
  COLLECTION_ROWS,
  type CollectionTimes,
  findRow,
  judgeCollection,
  type KeeperSighting,
  type NodeSighting,
  type PodSighting,
  type Seen,
  type Standing,
} from "../../../../host/controller/gc/plan-collection.ts";

const MINUTE_MS = 60_000;
const FOR_EVER = Number.MAX_SAFE_INTEGER;

const TIMES: CollectionTimes = {
  intervalMs: 5 * MINUTE_MS,
  graceMs: MINUTE_MS,
  nodeLostMs: 10 * MINUTE_MS,
  cooldownMs: 2 * MINUTE_MS,
};

const STANDINGS: readonly Standing[] = ["Bound", "Cooling", "Kept", "NodeLost", "Conflict"];
const NODES: readonly NodeSighting[] = ["ready", "notReady", "outOfService", "absent"];
const PODS: readonly PodSighting[] = ["alive", "finished", "replaced", "absent", "unknown"];
const ENDED: readonly PodSighting[] = ["finished", "replaced", "absent"];
const KEEPERS: readonly KeeperSighting[] = ["none", "lives", "moved", "gone", "unknown"];
const ASKED: readonly AskedSighting[] = ["nobody", "ready", "away"];

/** Every combination; `changes` fixes some of it. */
function all(changes: Partial<Seen> = {}): Seen[] {
  const found: Seen[] = [];
  for (const standing of STANDINGS)
    for (const node of NODES)
      for (const pod of PODS)
        for (const workload of KEEPERS) for (const asked of ASKED) found.push({ standing, node, pod, workload, asked });
  return found.filter((seen) => Object.entries(changes).every(([key, value]) => Object(seen)[key] === value));
}

const seen = (changes: Partial<Seen>): Seen => ({
  ...{ standing: "Bound", node: "ready", pod: "absent", workload: "none", asked: "nobody" },
  ...changes,
});

/** What is done in the end, however long it takes. */
const actionOf = (found: Seen): Action => judgeCollection({ ...found, ageMs: FOR_EVER }, TIMES).action;
const actionsOf = (many: readonly Seen[]): Action[] => [...new Set(many.map(actionOf))].sort();

/** From the first look on: when it is done; undefined: at once. */
function pauseOf(found: Seen): number | undefined {
  const verdict = judgeCollection({ ...found, ageMs: undefined }, TIMES);
  return verdict.kind === "act" ? undefined : verdict.pauseMs;
}

describe("the table", () => {
  it("has an answer for every combination", () => {
    expect(all()).toHaveLength(1_500);
    expect(all().filter((each) => findRow(each) === undefined)).toEqual([]);
  });

  it("has no row that another one hides", () => {
    const used = new Set(all().map(findRow));
    expect(COLLECTION_ROWS.filter((row) => !used.has(row))).toEqual([]);
  });

  it("acts when the time has come, and not a millisecond before", () => {
    for (const each of all()) {
      const pauseMs = pauseOf(each);
      if (pauseMs === undefined) continue;
      expect(judgeCollection({ ...each, ageMs: pauseMs - 1 }, TIMES).kind).toBe("observe");
      expect(judgeCollection({ ...each, ageMs: pauseMs }, TIMES).kind).toBe("act");
    }
  });
});

describe("rule 2: a dead node is not a silent node", () => {
  it("rule 2: no address of a pod that is there is touched", () => {
    expect(actionsOf(all({ standing: "Bound", pod: "alive" }))).toEqual(["keep"]);
    expect(actionsOf(all({ standing: "NodeLost", pod: "alive" }))).toEqual(["wait"]);
  });

  it("rule 2: nor one of a pod of which nothing can be told", () => {
    expect(actionsOf([...all({ standing: "Bound", pod: "unknown" }), ...all({ standing: "NodeLost", pod: "unknown" })])).toEqual(["wait"]); // biome-ignore format: one thought
  });

  it.each(["absent", "notReady", "ready"] as const)(
    "rule 2: of a node that is %s nothing is freed, only put in quarantine",
    (node) => {
      for (const pod of ENDED) expect(actionsOf(all({ standing: "Bound", node, pod }))).toEqual(["quarantine"]);
    },
  );

  it.each(["absent", "notReady", "ready"] as const)(
    "rule 2: nor in quarantine, however long, while the node is %s",
    (node) => {
      const actions = actionsOf(all({ standing: "NodeLost", node }));
      expect(actions).toEqual(["ask", "keep", "wait"]);
    },
  );

  it("rule 2: a node that is out of service is off: its addresses are free at once", () => {
    for (const standing of ["Bound", "NodeLost"] as const) {
      const found = seen({ standing, node: "outOfService" });
      expect([actionOf(found), pauseOf(found)]).toEqual(["free", undefined]);
    }
  });

  it("rule 2: another node asks after nodeLost", () => {
    const found = seen({ standing: "NodeLost", node: "absent" });
    expect([actionOf(found), pauseOf(found)]).toEqual(["ask", TIMES.nodeLostMs]);
  });

  it("rule 2: an address of a workload that lives waits for its next pod", () => {
    expect(actionsOf(all({ standing: "NodeLost", node: "absent", pod: "absent", workload: "lives" }))).toEqual([
      "keep",
    ]);
  });

  it("rule 2: an address of a member that has another one by now waits for nobody: it is asked for, as others are", () => {
    for (const node of ["ready", "notReady", "absent"] as const) {
      const found = seen({ standing: "NodeLost", node, workload: "moved" });
      expect([actionOf(found), pauseOf(found)]).toEqual(["ask", TIMES.nodeLostMs]);
    }
    expect(actionOf(seen({ standing: "NodeLost", node: "outOfService", workload: "moved" }))).toBe("free");
  });

  it("rule 2: whose node is alive is that node's agent's, until it has missed its sweeps and nodeLost besides", () => {
    expect(pauseOf(seen({ node: "ready" }))).toBe(2 * TIMES.intervalMs + TIMES.nodeLostMs);
    expect(pauseOf(seen({ node: "notReady" }))).toBe(TIMES.graceMs);
    expect(pauseOf(seen({ node: "absent" }))).toBe(TIMES.graceMs);
  });
});

describe("rule 8: what is kept", () => {
  it("rule 8: goes when its workload is gone, and only then", () => {
    expect(actionsOf(all({ standing: "Kept", workload: "gone" }))).toEqual(["cool"]);
    expect(actionsOf(all({ standing: "Kept", workload: "lives" }))).toEqual(["keep"]);
    expect(actionsOf(all({ standing: "Kept", workload: "unknown" }))).toEqual(["wait"]);
  });

  it("rule 8: is kept for a workload that lives when its node is out of service", () => {
    for (const standing of ["Bound", "NodeLost"] as const) {
      const of = (workload: KeeperSighting): Action => actionOf(seen({ standing, node: "outOfService", workload }));
      expect([of("lives"), of("unknown"), of("gone")]).toEqual(["preserve", "wait", "free"]);
    }
  });
});

describe("rule 10: what cools", () => {
  it("rule 10: is free after the longer of grace and cooldown when its node is gone", () => {
    const found = seen({ standing: "Cooling", node: "absent" });
    expect([actionOf(found), pauseOf(found)]).toEqual(["free", TIMES.cooldownMs]);
    const quick = judgeCollection({ ...found, ageMs: undefined }, { ...TIMES, cooldownMs: 0 });
    expect(quick).toMatchObject({ kind: "observe", pauseMs: TIMES.graceMs });
  });

  it("rule 10: is left to its agent for its cooldown more while the node is there", () => {
    expect(pauseOf(seen({ standing: "Cooling", node: "ready" }))).toBe(2 * TIMES.cooldownMs);
    expect(pauseOf(seen({ standing: "Cooling", node: "notReady" }))).toBe(2 * TIMES.cooldownMs);
  });
});

describe("rule 12: quarantine", () => {
  it("rule 12: for a conflict is the node's agent's while the node is there, and never freed from here", () => {
    for (const node of ["ready", "notReady"] as const)
      expect(actionsOf(all({ standing: "Conflict", node }))).toEqual(["keep"]);
    for (const node of ["absent", "outOfService"] as const)
      expect(actionsOf(all({ standing: "Conflict", node }))).toEqual(["ask"]);
  });

  it("rule 12: goes to the next node when the one that was told is gone, or has heard an answer for long", () => {
    const found = seen({ standing: "NodeLost", node: "absent" });
    expect([actionOf({ ...found, asked: "away" }), pauseOf({ ...found, asked: "away" })]).toEqual(["ask", TIMES.graceMs]); // biome-ignore format: one thought
    expect([actionOf({ ...found, asked: "ready" }), pauseOf({ ...found, asked: "ready" })]).toEqual(["ask", 3 * TIMES.nodeLostMs]); // biome-ignore format: one thought
  });
});

describe("rule 16: two looks", () => {
  it("rule 16: nothing is done at the first look, but for a node that is out of service", () => {
    for (const each of all()) {
      const verdict = judgeCollection({ ...each, ageMs: undefined }, { ...TIMES, graceMs: 0, cooldownMs: 0, nodeLostMs: 0, intervalMs: 0 }); // biome-ignore format: one thought
      const isHarmless = verdict.action === "keep" || verdict.action === "wait" || verdict.kind === "observe";
      expect(isHarmless || each.node === "outOfService", JSON.stringify(each)).toBe(true);
    }
  });

  it("rule 16: nothing is done before a grace has passed", () => {
    for (const each of all()) {
      const pauseMs = pauseOf(each);
      if (pauseMs !== undefined) expect(pauseMs, JSON.stringify(each)).toBeGreaterThanOrEqual(TIMES.graceMs);
    }
  });
});
