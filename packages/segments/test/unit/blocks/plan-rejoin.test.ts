import { expect, it } from "vitest";
import { ip } from "../../../../../test/world/values.ts";
import { NO_LEASES } from "../../../blocks/own-leases.ts";
import { planRejoin } from "../../../blocks/plan-rejoin.ts";
import { memberOf } from "./range-object.ts";

const BLOCKS = ["10.6.0.0/28", "10.6.0.16/28"];
const seal = { member: "a", token: "t5", writes: 5, next: "t6" };

interface Facts {
  readonly of?: object;
  readonly blocks?: readonly string[];
  readonly used?: readonly string[];
}

function plan({ of = {}, blocks = BLOCKS, used = [] }: Facts) {
  const member = memberOf("a", blocks, { token: "t5", writes: 5, ...of });
  const inUse = used.map((text) => ({ ip: ip(text), pool: "lan", holder: "pod shop/a" }));
  return planRejoin({ member, own: { ...NO_LEASES, seal }, cluster: "uid-a", used: inUse, newId: () => "new" });
}

it.each<[what: string, facts: Facts, why: RegExp]>([
  ["one that has never written", { of: { writes: 0 } }, /has not written to the range yet/],
  ["one with which all is well", {}, /nothing is contested/],
  ["one that is writing", { of: { token: "t6", writes: 6 } }, /nothing is contested/],
  ["one whose name another cluster has", { of: { cluster: "uid-z" } }, /another cluster, uid-z/],
  [
    "one whose pods have addresses that the hub knows nothing of",
    { of: { contested: true }, blocks: [], used: ["10.6.0.3"] },
    /1 addresses are in use that others may lease: 10.6.0.3 of pod shop\/a/,
  ],
])("%s does not rejoin", (_, facts, why) => expect(plan(facts)).toEqual({ refusal: expect.stringMatching(why) }));

it.each<[what: string, facts: Facts]>([
  ["one that is marked", { of: { token: "x", writes: 7, contested: true } }],
  ["one that is older than its last write", { of: { token: "x", writes: 7 }, used: ["10.6.0.17"] }],
])("%s goes on with its record at the hub, and replaces the token", (_, facts) => {
  expect(plan(facts)).toMatchObject({
    own: {
      leases: { "10.6.0.0/28": { pool: "lan", request: "r-10.6.0.0/28" } },
      seal: { token: "new", writes: 8, next: "" },
    },
    status: { token: "new", writes: 8, contested: null },
    blocks: BLOCKS,
  });
});

it("one that was released begins anew when no pod has an address", () => {
  expect(plan({ of: { token: "x", writes: 7, contested: true }, blocks: [] })).toMatchObject({
    own: { leases: {} },
    blocks: [],
  });
});
