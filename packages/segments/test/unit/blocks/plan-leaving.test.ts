import { expect, it } from "vitest";
import type { BlockState } from "../../../../../host/resources/pool-source.ts";
import { ip, range } from "../../../../../test/world/values.ts";
import { type Leaving, planLeaving } from "../../../blocks/plan-leaving.ts";
import { memberOf, rangeOf } from "./range-object.ts";

const TWO = { "10.6.0.0/28": "Active", "10.6.0.16/28": "Draining" } as const;

interface Facts {
  readonly spec?: object;
  readonly of?: object;
  /** Null: the pool leases no more. */
  readonly blocks?: Readonly<Record<string, BlockState>> | null;
  readonly used?: readonly string[];
}

function plan({ spec, of = {}, blocks = TWO, used = [] }: Facts): Leaving {
  const member = memberOf("a", BOTH);
  const other = { pool: "other", request: "r", since: "2026-01-01T00:00:00Z" };
  const status = { ...member.status, blocks: { ...member.status.blocks, "10.6.0.32/28": other }, ...of };
  const listed = Object.entries(blocks ?? {}).map(([block, state]) => ({ block, state, range: range(block) }));
  const source = blocks === null ? undefined : { blocks: listed };
  return planLeaving(rangeOf(spec), { ...member, status }, { name: "lan", source, used: used.map(ip) });
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
  ["of a contested cluster", { of: { isContested: true } }, /contested/],
])("a pool %s does not leave", (_, facts, why) => {
  expect(plan(facts)).toEqual({ refusal: expect.stringMatching(why) });
});
