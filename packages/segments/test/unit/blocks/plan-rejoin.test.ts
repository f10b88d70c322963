import { expect, it } from "vitest";
import { newOwnRange, type OwnRange } from "../../../blocks/own-range.ts";
import { planRejoin } from "../../../blocks/plan-rejoin.ts";
import { rangeOf } from "./range-object.ts";

const member = (change: object = {}) => ({ cluster: "uid-a", token: "t5", writes: 5, epoch: "e1", ...change });
const known: OwnRange = {
  ...newOwnRange("r"),
  ...{ token: "t5", next: "", writes: 5, epochs: ["e1"], sequence: 9, blocks: { "10.6.0.0/28": "lan" } },
};

interface Facts {
  readonly of?: object;
  readonly own?: Partial<OwnRange>;
  readonly listed?: readonly string[];
  readonly used?: readonly string[];
}

function plan({ of, own = {}, listed = [], used = [] }: Facts) {
  const leases = { "10.6.0.0/28": { member: "a", pool: "lan" }, "10.6.0.16/28": { member: "a", pool: "lan" } };
  const range = rangeOf({}, { sequence: 9, epoch: "e1", leases, members: of === undefined ? {} : { a: of } });
  return planRejoin({ range, own: { ...known, ...own }, member: "a", cluster: "uid-a", listed, used });
}

const gone = member({ gone: true });
const IN_USE = /1 addresses of the range are in use, which others may lease: 10.6.0.3 of pod shop\/a/;

it.each<[what: string, facts: Facts, why: RegExp]>([
  ["one that has never written", {}, /has not written to the range yet/],
  ["one with which all is well", { of: member() }, /nothing is contested/],
  ["one that is writing", { of: member({ token: "t6", writes: 6 }), own: { next: "t6" } }, /nothing is contested/],
  ["one whose name another cluster has", { of: member({ cluster: "uid-z" }) }, /another cluster, uid-z/],
  ["one that does so already", { of: member({ contested: true }), own: { isRejoining: true } }, /does so already/],
  ["one that was declared gone while its pods have addresses", { of: gone, used: ["10.6.0.3 of pod shop/a"] }, IN_USE],
  ["one that has not found out that it was declared gone", { of: gone, listed: ["10.6.0.0/28"] }, /still list/],
])("%s does not rejoin", (_, facts, why) => {
  expect(plan(facts)).toEqual({ kind: "refused", why: expect.stringMatching(why) });
});

it.each<[what: string, facts: Facts]>([
  ["one that is marked", { of: member({ token: "x", writes: 7, contested: true }) }],
  ["one that is older than its last write", { of: member({ token: "x", writes: 7 }) }],
  ["one that wrote the mark, and has no answer", { of: member({ token: "t6", contested: true }), own: { next: "t6" } }],
])("%s goes on with what the hub has leased to it", (_, facts) => {
  expect(plan(facts)).toMatchObject({ kind: "goesOn", own: { isRejoining: true, writes: 5 } });
  expect(Object(plan(facts)).blocks).toEqual(["10.6.0.0/28", "10.6.0.16/28"]);
});

it("one that was declared gone begins anew when no pod has an address", () => {
  expect(plan({ of: gone })).toEqual({ kind: "beginsAnew", own: newOwnRange("r") });
});
