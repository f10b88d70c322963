import { expect, it } from "vitest";
import type { BlockState } from "../../../../../host/resources/pool-source.ts";
import { ip, range } from "../../../../../test/world/values.ts";
import { type Leaving, planLeaving } from "../../../blocks/plan-leaving.ts";
import { rangeOf } from "./range-object.ts";

const member = (change: object = {}) => ({ cluster: "uid-a", token: "t", writes: 5, epoch: "e1", ...change });
const TWO = { "10.6.0.0/28": "Active", "10.6.0.16/28": "Draining" } as const;

interface Facts {
  readonly spec?: object;
  readonly of?: object;
  readonly status?: object;
  /** Null: the pool leases no more. */
  readonly blocks?: Readonly<Record<string, BlockState>> | null;
  readonly used?: readonly string[];
}

function plan({ spec, of = {}, status = {}, blocks = TWO, used = [] }: Facts): Leaving {
  const lease = { member: "a", pool: "lan" };
  const leases = { "10.6.0.0/28": lease, "10.6.0.16/28": lease, "10.6.0.32/28": { member: "a", pool: "other" } };
  const before = { sequence: 9, epoch: "e1", leases, members: { a: member(of) }, ...status };
  const listed = Object.entries(blocks ?? {}).map(([block, state]) => ({ block, state, range: range(block) }));
  const source = blocks === null ? undefined : { blocks: listed };
  return planLeaving(rangeOf(spec, before), "a", { name: "lan", source, used: used.map(ip) });
}

const BOTH = Object.keys(TWO);
const DISPUTED = { ...TWO, "10.6.0.64/28": "Disputed" } as const;
const RESTS = { "10.6.0.0/28": "Active", "10.6.0.16/28": "Resting" } as const;

it.each<[what: string, facts: Facts, served: readonly string[]]>([
  ["all of which it gives", { used: ["10.6.0.3"] }, BOTH],
  ["with an excluded address", { spec: { excludeIPs: ["10.6.0.3"] } }, BOTH],
  ["that breaks off, and begins again", { blocks: null, spec: { excludeIPs: ["10.6.0.0-10.6.0.31"] } }, BOTH],
  ["one of which rests", { blocks: RESTS }, ["10.6.0.0/28"]],
  ["one of which it does not know yet", { blocks: { "10.6.0.0/28": "New" } }, ["10.6.0.0/28"]],
])("a pool of blocks %s leaves", (_, facts, served) => expect(plan(facts)).toEqual({ served }));

it.each<[what: string, facts: Facts, why: RegExp]>([
  ["without blocks", { blocks: {} }, /no block/],
  ["with pods in a block that rests", { blocks: RESTS, used: ["10.6.0.20"] }, /wait: pods have .* of 10.6.0.16\/28/],
  ["with pods in a disputed block", { blocks: DISPUTED, used: ["10.6.0.66"] }, /wait: pods have .* of 10.6.0.64\/28/],
  ["with another pool's block", { blocks: { ...TWO, "10.6.0.32/28": "Active" } }, /has not leased 10.6.0.32\/28 to it/],
  ["whose block is excluded", { spec: { excludeIPs: ["10.6.0.8-10.6.0.31"] } }, /excludes 10.6.0.16\/28 as a whole/],
  ["of a contested cluster", { of: { contested: true } }, /contested/],
  ["of a cluster that is gone", { of: { gone: true } }, /gone/],
  ["of a restored hub", { status: { epoch: "e2", restored: true } }, /waits for a, b, c/],
])("a pool %s does not leave", (_, facts, why) => {
  expect(plan(facts)).toEqual({ refusal: expect.stringMatching(why) });
});
