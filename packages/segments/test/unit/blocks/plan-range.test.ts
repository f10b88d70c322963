import { describe, expect, it } from "vitest";
import { newOwnRange, type OwnRange } from "../../../blocks/own-range.ts";
import { type BlockDemand, planRange, usableBlocks } from "../../../blocks/plan-range.ts";
import { rangeOf } from "./range-object.ts";

const ME = { name: "a", cluster: "uid-a", start: 0 };
const A = { member: "a", pool: "lan" };
const B = { member: "b", pool: "lan" };
const CUT = { member: "a", pool: "cut" };
const DEMAND: BlockDemand = { lease: { lan: 2 }, giveBack: [] };

const member = (change: object = {}) => ({ cluster: "uid-a", token: "t5", writes: 5, epoch: "e1", ...change });

/** a has 10.6.0.0/28, b has 10.6.0.16/28. */
const status = (change: object = {}) => ({
  ...{ sequence: 9, epoch: "e1", leases: { "10.6.0.0/28": A, "10.6.0.16/28": B } },
  members: { a: member(), b: member({ cluster: "uid-b", token: "u" }) },
  ...change,
});

const own = (change: Partial<OwnRange> = {}): OwnRange => ({
  ...newOwnRange("r"),
  ...{ token: "t5", next: "t6", writes: 5, epochs: ["e1"], sequence: 9, blocks: { "10.6.0.0/28": "lan" } },
  ...change,
});

function plan(before: object, known = own(), { demand = DEMAND, spec = {} } = {}) {
  let ids = 0;
  const range = rangeOf(spec, before);
  return planRange({ range, own: known, self: ME, demand, newId: () => `new${++ids}` });
}

const others = { b: member({ cluster: "uid-b", token: "u" }) };

describe("a cluster", () => {
  it.each<[what: string, claim: Record<string, string>, leases: object | undefined]>([
    ["all of them", { "10.6.0.32/28": "cut", "10.6.0.64/28": "cut" }, { "10.6.0.32/28": CUT, "10.6.0.64/28": CUT }],
    ["those that it lacks", { "10.6.0.0/28": "lan", "10.6.0.32/28": "cut" }, { "10.6.0.32/28": CUT }],
    ["none if another member has one", { "10.6.0.16/28": "cut", "10.6.0.32/28": "cut" }, undefined],
    ["none beyond its share", Object.fromEntries([2, 3, 4, 5].map((at) => [`10.6.0.${16 * at}/28`, "cut"])), undefined],
  ])("claims certain blocks: %s", (_, claim, leases) => {
    const found = plan(status(), own(), { demand: { lease: {}, giveBack: [], claim } });
    if (leases === undefined)
      expect(found).toMatchObject({ kind: "rest", short: expect.stringMatching(/share|range/) });
    else expect(found).toMatchObject({ kind: "write", write: { leases } });
    expect(Object(found).write?.leases).toEqual(leases);
  });

  it.each<[what: string, before: object, known?: Partial<OwnRange>]>([
    ["another token", { members: { a: member({ token: "x" }), ...others } }],
    ["more writes", { members: { a: member({ token: "x", writes: 8 }), ...others } }],
    ["a membership that it does not remember", {}, { token: "", writes: 0, epochs: [], blocks: {} }],
  ])("that finds %s marks its membership as contested", (_, before, known = {}) => {
    expect(plan(status(before), own(known))).toMatchObject({ write: { leases: {}, member: { isContested: true } } });
  });

  it("that is contested neither leases nor returns, and uses what the hub says", () => {
    const range = rangeOf({}, status({ members: { a: member({ contested: true }), ...others } }));
    const known = own({ blocks: { "10.6.0.0/28": "lan", "10.6.0.64/28": "lan" } });
    const barred = { kind: "barred", bar: { kind: "contested" } };
    expect(planRange({ range, own: known, self: ME, demand: DEMAND, newId: () => "" })).toEqual(barred);
    expect(usableBlocks({ range, own: known, self: ME })).toEqual({ "10.6.0.0/28": "lan" });
  });

  it("that an administrator has chosen goes on", () => {
    const before = status({ members: { a: member({ token: "x", writes: 8, contested: true }), ...others } });
    const write = { member: { token: "t6", writes: 9, isContested: false } };
    expect(plan(before, own({ isRejoining: true }))).toMatchObject({ write });
  });
});

describe("a hub went back in time, by", () => {
  it.each<[what: string, before: object, known?: Partial<OwnRange>]>([
    ["a lease that it lacks", { leases: { "10.6.0.16/28": B } }],
    ["a membership that it lacks", { members: others }],
    ["fewer writes", { members: { a: member({ token: "t4", writes: 4 }), ...others } }],
    ["a lower sequence", { sequence: 8 }],
    ["an earlier epoch", {}, { epochs: ["e1", "e2"] }],
    ["an epoch that somebody began as the first", { epoch: "e7" }],
    ["another object", {}, { uid: "before" }],
    ["an empty status", { sequence: 0, epoch: "", leases: {}, members: {} }],
  ])("%s: an epoch begins, with what the cluster has", (_, before, known = {}) => {
    const epoch = expect.stringMatching(/^new/);
    const write = { epoch, isRestored: true, member: { epoch } };
    expect(plan(status(before), own(known))).toMatchObject({ kind: "write", write });
  });

  it("a block that another one has by now is disputed, and neither uses it", () => {
    const before = status({ epoch: "e2", restored: true, leases: { "10.6.0.0/28": B } });
    expect(plan(before)).toMatchObject({ write: { leases: {}, member: { disputed: ["10.6.0.0/28"] } } });
    const members = { a: member({ disputed: ["10.6.0.16/28"] }), ...others };
    const range = rangeOf({}, status({ leases: { "10.6.0.16/28": B }, members }));
    const self = { ...ME, name: "b", cluster: "uid-b" };
    expect(usableBlocks({ range, own: own({ blocks: { "10.6.0.16/28": "lan" } }), self })).toEqual({});
  });

  const open = { epoch: "e2", restored: true, members: { a: member({ epoch: "e2" }), ...others } };

  it("and nobody leases until all have written; what is in use no more is returned", () => {
    const known = own({ epochs: ["e1", "e2"] });
    expect(plan(status(open), known)).toEqual({ kind: "barred", bar: { kind: "open", waitsFor: ["b", "c"] } });
    const demand = { lease: {}, giveBack: ["10.6.0.0/28"] };
    const write = { isRestored: true, leases: { "10.6.0.0/28": null } };
    expect(plan(status(open), known, { demand })).toMatchObject({ write });
  });
});

describe("nothing is leased", () => {
  const foreign = { members: { a: member({ cluster: "x" }) } };
  it.each<[what: string, before: object, spec: object, bar: object]>([
    ["without membership", {}, { members: [] }, { kind: "notMember" }],
    ["in another cluster's name", foreign, {}, { kind: "otherCluster", cluster: "x" }],
  ])("%s", (_, before, spec, bar) => {
    expect(plan(status(before), own(), { spec })).toEqual({ kind: "barred", bar });
  });

  it("beyond the share, nor when no block is free: it says which", () => {
    const more = { demand: { lease: { lan: 9 }, giveBack: [] } };
    expect(plan(status(), own(), more)).toMatchObject({ write: { leases: { "10.6.0.64/28": A } } });
    const leases = Object.fromEntries([0, 32, 48, 64].map((last) => [`10.6.0.${last}/28`, A]));
    const known = own({ blocks: Object.fromEntries(Object.keys(leases).map((block) => [block, "lan"])) });
    expect(plan(status({ leases }), known, more)).toEqual({ kind: "rest", short: "share" });
    const disputed = Object.fromEntries([2, 3, 4, 5].map((at) => [`10.6.0.${16 * at}/28`, ""]));
    const back = { leases: { "10.6.0.64/28": A }, member: { disputed: ["10.6.0.80/28"] } };
    expect(plan(status(), own({ disputed }))).toMatchObject({ write: back });
    const small = { ...more, spec: { subnet: "10.6.0.0/27" } };
    expect(plan(status(), own(), small)).toEqual({ kind: "rest", short: "range" });
  });

  it("by a cluster that was declared gone: it forgets what it had", () => {
    const before = status({ members: { a: member({ gone: true }), ...others } });
    expect(plan(before)).toEqual({ kind: "remember", own: newOwnRange("r") });
    expect(plan(before, newOwnRange("r"))).toEqual({ kind: "barred", bar: { kind: "gone" } });
  });
});
