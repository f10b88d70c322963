import { describe, expect, it } from "vitest";
import {
  absent,
  type Decision,
  isOtherThan,
  planConditions,
} from "../../../../host/controller/conditions/plan-conditions.ts";
import type { Condition } from "../../../../host/resources/status.ts";

const NOW = "2026-11-20T05:00:00Z";
const BEFORE = "2026-11-20T04:00:00Z";
const bad: Decision = { type: "Overlap", isTrue: true, reason: "SharedAddresses", message: "2 addresses" };
const refused: Decision = { type: "Ready", isTrue: false, reason: "Refused", message: "is refused" };
const ready: Decision = { type: "Ready", isTrue: true, reason: "Ready", message: "" };

const NOTHING = { conditions: undefined, turnedBad: [] };

function had(finding: Decision, change: Partial<Condition> = {}): Condition {
  const { type, reason, message, isTrue } = finding;
  const status = isTrue ? "True" : "False";
  return { type, status, observedGeneration: 3, lastTransitionTime: BEFORE, reason, message, ...change };
}

function plan(conditions: readonly Condition[], findings: readonly Decision[], sinceMs = Number.POSITIVE_INFINITY) {
  return planConditions({ object: { conditions, generation: 3 }, decisions: findings, now: NOW, sinceMs });
}

describe("conditions", () => {
  it("that never held are not written, but for Ready", () => {
    const { conditions, turnedBad } = plan([], [ready, absent("Full")]);
    expect(conditions).toEqual([had(ready, { lastTransitionTime: NOW })]);
    expect(turnedBad).toEqual([]);
  });
  it("that turn bad are written and reported once", () => {
    const { conditions, turnedBad } = plan([had(ready)], [ready, bad]);
    expect(conditions).toEqual([had(ready), had(bad, { lastTransitionTime: NOW })]);
    expect(turnedBad).toEqual([bad]);
    expect(plan([had(ready), had(bad)], [ready, bad])).toEqual({ ...NOTHING, dueMs: undefined });
  });
  const other = { ...bad, reason: "SubnetsOverlap", message: "other" };
  it.each<[string, Decision[], Condition]>([
    ["that hold no more stay, and say so since now", [], had(absent("Overlap"), { lastTransitionTime: NOW })],
    ["keep the time of their transition while only the reason or the message is another one", [other], had(other)],
  ])("%s", (_, others, wanted) => {
    const { conditions, turnedBad } = plan([had(ready), had(bad)], [ready, ...others]);
    expect([conditions?.[1], turnedBad]).toEqual([wanted, []]);
  });
  it("are left while Ready is not judged", () =>
    expect(plan([had(ready), had(bad)], [absent("Full")]).conditions).toBeUndefined());
  it("whose status was edited by hand are written again", () => {
    const edited = had(bad, { status: "False" });
    expect(plan([had(ready), edited], [ready, bad]).conditions?.[1]).toEqual(had(bad, { lastTransitionTime: NOW }));
    expect(isOtherThan(bad, [edited])).toBe(true);
  });
  it("follow a new generation of the specification", () =>
    expect(plan([had(ready, { observedGeneration: 2 })], [ready]).conditions).toEqual([had(ready)]));
  it("of which only the message is another one are written at most once a minute", () => {
    const more = { ...bad, message: "3 addresses" };
    expect(plan([had(ready), had(bad)], [ready, more], 20_000)).toEqual({ ...NOTHING, dueMs: 40_000 });
    expect(plan([had(ready), had(bad)], [ready, more], 60_000).conditions?.[1]?.message).toBe("3 addresses");
  });
  it("of others stay as they are", () => {
    const foreign = { ...had(bad), type: "vendor.example/Checked" };
    expect(plan([foreign], [ready]).conditions).toEqual([had(ready, { lastTransitionTime: NOW }), foreign]);
  });
  it("Ready that turns false is reported, unless it was requested", () => {
    expect(plan([had(ready)], [refused]).turnedBad).toEqual([refused]);
    expect(plan([], [refused]).turnedBad).toEqual([refused]);
    expect(plan([had(ready)], [{ ...refused, isWanted: true }]).turnedBad).toEqual([]);
  });
});

describe("a program that waits for an object", () => {
  const statusOf = (findings: readonly Decision[], known: readonly Condition[] = []) =>
    plan(known, findings).conditions?.map(({ type, status, reason, message }) => [type, status, reason, message]);

  const isRefused = ["Ready", "False", "Refused", "is refused"];
  it("is told by Stalled that it waits in vain", () =>
    expect(statusOf([refused])).toEqual([isRefused, ["Stalled", "True", "Refused", "is refused"]]));
  it.each([{ isPassing: true }, { isWanted: true }])("is not told so of one that is %j", (change) =>
    expect(statusOf([{ ...refused, ...change }])).toEqual([isRefused]),
  );
  it("is told when that is over", () => {
    const stalled = had({ ...refused, isTrue: true, type: "Ready" }, { type: "Stalled" });
    const [yes, no] = [
      ["Ready", "True", "Ready", ""],
      ["Stalled", "False", "NotStalled", ""],
    ];
    expect(statusOf([ready], [had(refused), stalled])).toEqual([yes, no]);
  });
  it("finds the generation that was checked, when Ready was", () => {
    const sinceMs = Number.POSITIVE_INFINITY;
    const planOf = (findings: readonly Decision[], status: object, conditions = [had(ready)]) =>
      planConditions({ object: { conditions, generation: 3, status }, decisions: findings, now: NOW, sinceMs });
    expect(planOf([ready], { observedGeneration: 3 }).conditions).toBeUndefined();
    expect(planOf([ready], { observedGeneration: 3 }, []).observedGeneration).toBe(3);
    // A controller before 0.5 has written the conditions, not this.
    const written = { observedGeneration: 3, conditions: [had(ready)] };
    expect(planOf([ready], { observedGeneration: 2 })).toMatchObject(written);
    // Another kind than this controller knows would drop it: no write for it alone.
    expect(planOf([ready], {}).conditions).toBeUndefined();
    expect(planOf([bad], { observedGeneration: 2 }).observedGeneration).toBeUndefined();
  });
});

describe("Supplied, which is good when it holds", () => {
  const yes: Decision = { type: "Supplied", isTrue: true, reason: "Supplied", message: "has the 3 addresses wanted" };
  const no: Decision = {
    type: "Supplied",
    isTrue: false,
    reason: "SubnetFull",
    message: "has 1 of 3 addresses wanted",
  };
  it("is not written while it never was bad", () =>
    expect([plan([had(ready)], [ready, yes]).conditions, isOtherThan(yes, [had(ready)])]).toEqual([undefined, false]));
  it("that turns false is written and reported, once", () => {
    const { conditions, turnedBad } = plan([had(ready)], [ready, no]);
    expect([conditions, turnedBad]).toEqual([[had(ready), had(no, { lastTransitionTime: NOW })], [no]]);
    expect(isOtherThan(no, [had(ready)])).toBe(true);
    expect(plan([had(ready), had(no)], [ready, no]).conditions).toBeUndefined();
    expect(isOtherThan(no, [had(no)])).toBe(false);
  });
  it("says so when it holds again, and stays as it is when nothing is found out about it", () => {
    const { conditions, turnedBad } = plan([had(ready), had(no)], [ready, yes]);
    expect([conditions?.[1], turnedBad]).toEqual([had(yes, { lastTransitionTime: NOW }), []]);
    expect(isOtherThan(yes, [had(no)])).toBe(true);
    expect(plan([had(ready), had(no)], [ready]).conditions).toBeUndefined();
    expect(plan([had(ready, { observedGeneration: 2 }), had(no)], [ready]).conditions).toContainEqual(had(no));
  });
});
