import { describe, expect, it } from "vitest";
import {
  type Action,
  COLLECTION_ROWS,
  type CollectionState,
  changedSpec,
  decideCollection,
  lastHolder,
  type NodeStatus,
  type ObservedState,
  type OwnerStatus,
  type PodStatus,
  type PodsStatus,
  type ProberStatus,
  situationOf,
} from "../../../../host/controller/gc/plan-collection.ts";
import { podsStatus } from "../../../../host/controller/gc/read-status.ts";
import { NO_MACHINE } from "../../../../host/resources/machine.ts";
import { HOLDER, ipAllocation } from "../../../world/subjects.ts";

const FOR_EVER = Number.MAX_SAFE_INTEGER;

const TIMES = { intervalMs: 300_000, graceMs: 60_000, nodeLostMs: 600_000, cooldownMs: 120_000 };

const STATES: readonly CollectionState[] = ["Bound", "Cooling", "Kept", "NodeLost", "Conflict"];
const NODES: readonly NodeStatus[] = ["ready", "notReady", "outOfService", "absent"];
const ENDED: readonly PodStatus[] = ["finished", "replaced", "absent"];
const PODS: readonly PodsStatus[] = ["alive", "outliving", "unconfirmed", ...ENDED, "unknown"];
const OWNERS: readonly OwnerStatus[] = ["none", "alive", "moved", "unseen", "unused", "excess", "gone", "unknown"];
const PROBERS: readonly ProberStatus[] = ["none", "ready", "away"];

/** Every combination; `changes` fixes some of it. */
function all(changes: Partial<ObservedState> = {}): ObservedState[] {
  const found: ObservedState[] = [];
  for (const state of STATES)
    for (const node of NODES)
      for (const pod of PODS)
        for (const owner of OWNERS)
          for (const prober of PROBERS)
            for (const isTold of [true, false]) found.push({ state, node, pod, owner, prober, isTold });
  return found.filter((seen) => Object.entries(changes).every(([key, value]) => Object(seen)[key] === value));
}

const seen = (changes: Partial<ObservedState>): ObservedState => ({
  ...{ state: "Bound", node: "ready", pod: "absent", owner: "none", prober: "none", isTold: true },
  ...changes,
});

/** Returns the action in the end, however long it takes. */
const actionOf = (found: ObservedState): Action => decideCollection({ ...found, ageMs: FOR_EVER }, TIMES).action;
const actionsOf = (many: readonly ObservedState[]): Action[] => [...new Set(many.map(actionOf))].sort();

/** From the first look on: when it is done; undefined: at once. */
function pauseOf(found: ObservedState): number | undefined {
  const decision = decideCollection({ ...found, ageMs: undefined }, TIMES);
  return decision.kind === "act" ? undefined : decision.pauseMs;
}

describe("the table", () => {
  it("has an answer for every combination", () => {
    expect(all()).toHaveLength(6_720);
    const why = (each: ObservedState) => decideCollection({ ...each, ageMs: undefined }, TIMES).why;
    expect(all().filter((each) => why(each) === "no rule covers this state")).toEqual([]);
  });

  it("has no row that another one hides", () => {
    const rows = COLLECTION_ROWS.map(({ state, why }) => `${state} ${why}`);
    expect(new Set(rows).size).toBe(rows.length);
    expect(new Set(all().map(situationOf))).toEqual(new Set(rows));
  });

  it("acts when the time has come, and not a millisecond before", () => {
    for (const each of all()) {
      const pauseMs = pauseOf(each);
      if (pauseMs === undefined) continue;
      expect(decideCollection({ ...each, ageMs: pauseMs - 1 }, TIMES).kind).toBe("observe");
      expect(decideCollection({ ...each, ageMs: pauseMs }, TIMES).kind).toBe("act");
    }
  });
});

const GONE = { pod: "absent", owner: "none" } as const;
const LOST = { ...GONE, state: "NodeLost", node: "absent", prober: "none" } as const;
const OFF = { pod: "absent", node: "outOfService" } as const;
const { graceMs, cooldownMs, nodeLostMs, intervalMs } = TIMES;
const SILENCE_MS = 2 * intervalMs + nodeLostMs;

type Row = [what: string, is: Partial<ObservedState>, actions: string, pauseMs?: number];

/** The action in every state of other fields, and the time until it; 0: at once. */
it.each<Row>([
  ["node-lost: a pod that is there: it is not touched", { state: "Bound", pod: "alive" }, "keep"],
  ["node-lost: a pod that is there, in quarantine", { state: "NodeLost", pod: "alive" }, "wait"],
  ["node-lost: a pod whose state is unknown", { state: "Bound", pod: "unknown" }, "wait"],
  ["node-lost: a pod whose state is unknown, in quarantine", { state: "NodeLost", pod: "unknown" }, "wait"],
  ["node-lost: a workload that lives: its next pod has it", { ...LOST, owner: "alive" }, "keep"],
  ["retention: one of two pods has ended", { state: "Bound", pod: "outliving" }, "tell", graceMs],
  ["retention: both have", { state: "Bound", pod: "unconfirmed", isTold: false }, "tell", graceMs],
  ["retention: agents are silent", { state: "Bound", pod: "unconfirmed", isTold: true }, "quarantine", SILENCE_MS],
  ...ENDED.flatMap((pod): Row[] => [
    ["node-lost: the agent is told", { state: "Bound", node: "ready", pod, isTold: false }, "tell", cooldownMs],
    ["node-lost: it was", { state: "Bound", node: "ready", pod, isTold: true }, "quarantine", SILENCE_MS],
    ["node-lost: no node", { state: "Bound", node: "absent", pod }, "quarantine", graceMs],
    ["node-lost: a silent node", { state: "Bound", node: "notReady", pod }, "quarantine", graceMs],
  ]),
  ...(["absent", "notReady", "ready"] as const).flatMap((node): Row[] => [
    ["node-lost: nothing is freed in quarantine, however long", { state: "NodeLost", node }, "ask,keep,wait"],
    ["node-lost: a member elsewhere", { ...LOST, node, owner: "moved" }, "ask", nodeLostMs],
  ]),
  ["node-lost: another node is asked", LOST, "ask", nodeLostMs],
  ["conflict: the chosen node is gone", { ...LOST, prober: "away" }, "ask", graceMs],
  ["conflict: the chosen node has received answers for long", { ...LOST, prober: "ready" }, "ask", 3 * nodeLostMs],
  ["node-lost: the node is off, a member elsewhere", { ...LOST, ...OFF, owner: "moved" }, "free"],
  ...(["Bound", "NodeLost"] as const).flatMap((state): Row[] => [
    ["node-lost: a node that is off", { ...GONE, ...OFF, state }, "free", 0],
    ["retention: whose workload lives", { ...OFF, state, owner: "alive" }, "preserve", 0],
    ["retention: whose workload may live", { ...OFF, state, owner: "unknown" }, "wait"],
    ["retention: whose workload is gone", { ...OFF, state, owner: "gone" }, "free", 0],
  ]),
  ["retention: the owner is gone", { state: "Kept", owner: "gone" }, "cool", graceMs],
  ["retention: the owner is alive", { state: "Kept", owner: "alive" }, "keep"],
  ["retention: the owner's member has another one by now", { state: "Kept", owner: "moved" }, "cool", SILENCE_MS],
  ["retention: the member's pod does not ask for it", { state: "Kept", owner: "unused" }, "cool", SILENCE_MS],
  ["retention: its namespace retains too many", { state: "Kept", owner: "excess" }, "cool", graceMs],
  ["retention: nothing is known of the owner", { state: "Kept", owner: "unknown" }, "wait"],
  ["cooling-visibility: its node is gone", { state: "Cooling", node: "absent" }, "free", cooldownMs],
  ["cooling-visibility: its node is there", { state: "Cooling", node: "ready" }, "free", 2 * cooldownMs],
  ["cooling-visibility: its node is silent", { state: "Cooling", node: "notReady" }, "free", 2 * cooldownMs],
  ["conflict: it is the node's agent's", { state: "Conflict", node: "ready", prober: "none" }, "keep"],
  ["conflict: another was asked", { state: "Conflict", node: "ready", prober: "ready" }, "ask", 3 * nodeLostMs],
  ["conflict: while the node is there", { state: "Conflict", node: "notReady", prober: "away" }, "keep"],
  ["conflict: never freed from here", { state: "Conflict", node: "absent" }, "ask", nodeLostMs],
  ["conflict: a node out of service", { state: "Conflict", node: "outOfService" }, "ask", nodeLostMs],
])("%s: %j", (_, is, actions, pauseMs) => {
  expect(actionsOf(all(is)).join()).toBe(actions);
  if (pauseMs !== undefined) expect(pauseOf(seen(is)) ?? 0).toBe(pauseMs);
});

it.each([
  [["alive", "absent"], ["ready", "ready"], "outliving"],
  [["finished", "alive"], ["ready", "absent"], "outliving"],
  [["alive", "alive"], ["ready", "ready"], "alive"],
  [["alive", "unknown"], ["ready", "ready"], "alive"],
  [["alive", "absent"], ["ready", "notReady"], "alive"],
  [["alive", "absent"], ["ready", "outOfService"], "alive"],
  [["alive"], ["ready"], "alive"],
  [["absent", "finished"], ["ready", "absent"], "unconfirmed"],
  [["absent", "finished"], ["absent", "notReady"], "unconfirmed"],
  [["absent", "alive"], ["notReady", "notReady"], "alive"],
  [["absent", "finished"], ["outOfService", "absent"], "absent"],
  [["absent", "finished"], ["outOfService", "outOfService"], "absent"],
  [["unknown", "absent"], ["ready", "ready"], "unknown"],
  [[], [], "absent"],
] as const)("retention: pods that are %s on nodes that are %s count as %s", (pods, nodes, wanted) =>
  expect(podsStatus(pods, nodes)).toBe(wanted),
);

it("cooling-visibility: a cooling address is free after a grace when the cooldown is shorter", () => {
  const found = seen({ state: "Cooling", node: "absent" });
  const quick = decideCollection({ ...found, ageMs: undefined }, { ...TIMES, cooldownMs: 0 });
  expect(quick).toMatchObject({ kind: "observe", pauseMs: graceMs });
});

describe("leak: two observations", () => {
  it("leak: nothing is done at the first observation, except for a node that is out of service", () => {
    const none = { ...TIMES, graceMs: 0, cooldownMs: 0, nodeLostMs: 0, intervalMs: 0 };
    for (const each of all()) {
      const decision = decideCollection({ ...each, ageMs: undefined }, none);
      const isHarmless = decision.action === "keep" || decision.action === "wait" || decision.kind === "observe";
      expect(isHarmless || each.node === "outOfService", JSON.stringify(each)).toBe(true);
    }
  });

  it("leak: nothing is done before a grace has passed", () => {
    for (const each of all())
      expect(pauseOf(each) ?? TIMES.graceMs, JSON.stringify(each)).toBeGreaterThanOrEqual(TIMES.graceMs);
  });
});

describe("the object that an action writes", () => {
  const since = "2026-01-01T00:00:00Z";
  const workload = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };
  const quarantine = { reason: "NodeLost" as const, mac: "", parent: "eth7", holder: { ...HOLDER, pod: "web-9" } };
  const { ip, addressSpace, prefixLength, pool } = ipAllocation("10.0.0.9").spec;
  const base = { ip, addressSpace, prefixLength, pool, node: "n1", holders: [], since };
  const lost = { reason: "NodeLost", mac: "", parent: "", holder: HOLDER };
  const owned = { ...base, workload };

  type Given = Parameters<typeof ipAllocation>[1];
  const check = (given: Given, action: Action, wanted: object | undefined, prober?: string) =>
    expect(changedSpec(ipAllocation("10.0.0.9", given), action, { since, prober })).toStrictEqual(wanted);

  it("quarantine keeps the last holder and the owner, if any", () => {
    check({}, "quarantine", { ...base, state: "Quarantined", quarantine: lost });
    check({ workload }, "quarantine", { ...owned, state: "Quarantined", quarantine: lost });
    const { holder: _, ...unheld } = lost;
    check({ holders: [] }, "quarantine", { ...base, state: "Quarantined", quarantine: unheld });
    // Neither machine can confirm that both pods have stopped.
    const unproven = { ...lost, holder: { ...HOLDER, machine: NO_MACHINE } };
    const two = ["n1", "n2"].map((node) => ({ ...HOLDER, node, machine: `machine of ${node}` }));
    check({ workload, holders: two }, "quarantine", { ...owned, state: "Quarantined", quarantine: unproven });
  });

  it("ask names the node that probes, on whatever link it has", () => {
    const asked = { state: "Quarantined", node: "n7", quarantine: { ...quarantine, parent: "" } };
    check({ quarantine }, "ask", { ...base, ...asked }, "n7");
    check({ quarantine, workload }, "ask", { ...owned, ...asked }, "n7");
    // Another machine that has the lost node's name.
    check({ quarantine, workload }, "ask", { ...base, ...asked, node: "n1" }, "n1");
    check({ quarantine }, "ask", undefined);
    check({}, "ask", undefined, "n7");
  });

  it("preserve keeps the owner, with the NIC of the last holder unless the owner has one", () => {
    const kept = { ...base, state: "Kept", lastHolder: HOLDER } as const;
    check({ workload }, "preserve", { ...kept, workload: { ...workload, ifName: "eth0" } });
    const own = { ...workload, ifName: "net1" };
    check({ workload: own }, "preserve", { ...kept, workload: own });
    check({ workload, holders: [] }, "preserve", { ...base, state: "Kept", workload });
    check({}, "preserve", undefined);
  });

  it("cool keeps no owner; a freed, kept or awaited address is not written", () => {
    check({ workload }, "cool", { ...base, state: "Cooling" });
    for (const action of ["free", "keep", "wait", "tell"] as const) check({ workload }, action, undefined);
  });

  it("the last holder is that of the quarantine, else the one on the object's node, else the first", () => {
    const away = { ...HOLDER, node: "n2", pod: "away" };
    const here = { ...HOLDER, pod: "here" };
    const holderOf = (given: Given) => lastHolder(ipAllocation("10.0.0.9", given))?.pod;
    expect(holderOf({ holders: [away, here], quarantine })).toBe("web-9");
    expect(holderOf({ holders: [away, here] })).toBe("here");
    expect(holderOf({ holders: [away], node: "n3" })).toBe("away");
    expect(holderOf({ holders: [] })).toBeUndefined();
  });
});
