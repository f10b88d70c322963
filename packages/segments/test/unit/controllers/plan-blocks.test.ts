import { describe, expect, it } from "vitest";
import type { BlockState } from "../../../../../host/resources/pool-source.ts";
import { cases } from "../../../../../test/world/rows.ts";
import {
  type BlocksInput,
  EMPTY_MS,
  NEW_MS,
  nextAsOf,
  planBlocks,
  REST_MS,
  SURPLUS_MS,
} from "../../../controllers/plan-blocks.ts";

const known = (block: string, state: BlockState, ageMs = 0) => ({ block, state, ageMs });

type PlanInput = Partial<BlocksInput> & {
  readonly free?: Readonly<Record<string, number>>;
  /** Of another block, beside the one. */
  readonly freeBlocks?: number;
};

/** Blocks of 16 addresses: `free` by block, 16 by default. */
function plan(change: PlanInput) {
  const { free = {}, ...rest } = change;
  return planBlocks({
    ...{ known: [], leased: (change.known ?? []).map(({ block }) => block), isContested: false },
    ...{ isDisputed: () => false, mayReturn: true, isUsed: () => true, isEmpty: () => false },
    ...{ freeOf: (block) => free[block] ?? 16, size: 16, isWanted: false, waiting: 0, surplusMs: 0, ...rest },
  });
}

describe("a block", () => {
  it.each<[what: string, input: PlanInput, wanted: BlockState]>([
    ["that is new rests", { leased: ["a"] }, "Resting"],
    ["rests for its time", { known: [known("a", "Resting", REST_MS - 1)] }, "Resting"],
    ["is used after its rest", { known: [known("a", "Resting", REST_MS)] }, "New"],
    ["is new for an hour", { known: [known("a", "New", NEW_MS - 1)] }, "New"],
    ["is an old one after an hour", { known: [known("a", "New", NEW_MS)] }, "Active"],
    ["of a contested cluster is new", { known: [known("a", "Active", NEW_MS)], isContested: true }, "New"],
    ["of a contested cluster stays new", { known: [known("a", "New", NEW_MS)], isContested: true }, "New"],
    ["stays as it is", { known: [known("a", "Active", NEW_MS)] }, "Active"],
  ])("%s", (_, input, wanted) => expect(plan(input).blocks).toEqual([{ block: "a", state: wanted }]));

  const aged = (state: BlockState, ageMs = 0) => ({ known: [known("a", state, ageMs)] });
  const [drained, returning, old] = [aged("Draining", EMPTY_MS), aged("Returning"), aged("Disputed", EMPTY_MS)];
  const empty = { isUsed: () => false };
  const disputed = { isDisputed: () => true };
  const listed = { ...empty, isEmpty: () => true };
  it.each(cases<PlanInput>`
    in use goes on draining ${drained} => Draining
    that has just begun to drain goes on ${{ ...empty, ...aged("Draining", EMPTY_MS - 1) }} => Draining
    that is empty is returned ${{ ...empty, ...drained }} => Returning
    stays while it may not be returned ${{ ...empty, ...drained, mayReturn: false }} => Draining
    is used again in place of another one ${{ ...empty, ...drained, freeBlocks: 0 }} => Active
    that is returned is looked at again first ${{ ...empty, ...returning }} => Returning
    of which nothing is recorded goes to the hub ${{ ...listed, ...returning }} => Returning, given back
    of which nothing is recorded waits for the hub ${{ ...listed, ...returning, mayReturn: false }} => Returning
    that begins to go back is told first ${{ ...listed, ...drained }} => Returning
    with an address in use drains again ${returning} => Draining
    that is disputed gives nothing ${{ ...disputed, ...aged("Active", NEW_MS) }} => Disputed
    that is disputed and in use stays ${{ ...disputed, ...old }} => Disputed
    that is disputed goes back ${{ ...disputed, ...empty, ...old }} => Returning
    that is disputed stays after a refusal ${{ ...disputed, ...returning }} => Disputed
    whose dispute is over rests ${old} => Resting
  `)("%s", (_, { freeBlocks = 1, ...input }, wanted) => {
    const others = Array.from({ length: freeBlocks }, () => known("z", "Active"));
    const { blocks, giveBack } = plan({
      ...input,
      known: [...(input.known ?? []), ...others],
      leased: [...(input.leased ?? ["a"]), ...others.map(({ block }) => block)],
      isDisputed: (block) => block === "a" && input.isDisputed?.(block) === true,
    });
    expect([blocks[0]?.state, ...giveBack.map((block) => (block === "a" ? "given back" : block))].join(", ")).toBe(
      wanted,
    );
  });

  it("that the hub does not say is this cluster's is gone", () =>
    expect(plan({ known: [known("a", "Active"), known("b", "Active")], leased: ["b"] }).blocks).toEqual([
      { block: "b", state: "Active" },
    ]));
});

describe("a pool", () => {
  const active = (...names: readonly string[]) => names.map((name) => known(name, "Active"));

  const full = { a: 0, b: 0, c: 0 };
  it.each<[what: string, input: PlanInput, wants: number]>([
    ["without a block leases one", {}, 1],
    ["with a block free leases none", { known: active("a") }, 0],
    ["with fewer free addresses than a block has leases one ahead", { known: active("a"), free: { a: 15 } }, 1],
    ["waits for one that rests", { known: [...active("a"), known("b", "Resting")], free: { a: 0 } }, 0],
    ["that was found exhausted doubles", { known: active("a", "b", "c"), free: full, isWanted: true }, 3],
    ["that was found exhausted without a block leases one", { isWanted: true }, 1],
    ["for which a storm of pods waits leases blocks for all", { known: active("a"), isWanted: true, waiting: 49 }, 4],
  ])("%s", (_, input, wants) => expect(plan(input).wants).toBe(wants));

  const many = active("a", "b", "c", "d", "e");

  it("with too many free addresses for an hour drains the emptiest block", () => {
    const free = { a: 8, b: 14, c: 16, d: 12, e: 8 };
    expect(plan({ known: many, free })).toMatchObject({
      isSurplus: true,
      blocks: many.map(({ block }) => ({ block, state: "Active" })),
    });
    const after = plan({ known: many, free, surplusMs: SURPLUS_MS });
    expect(after.blocks.filter(({ state }) => state === "Draining")).toEqual([{ block: "c", state: "Draining" }]);
  });

  it("drains one at a time", () => {
    const draining = [...many, known("f", "Draining")];
    const { blocks } = plan({ known: draining, surplusMs: SURPLUS_MS });
    expect(blocks.filter(({ state }) => state === "Draining")).toHaveLength(1);
  });

  it("has too many anew after it has drained one", () => {
    expect(plan({ known: many, surplusMs: SURPLUS_MS }).isSurplus).toBe(false);
    expect(plan({ known: many, surplusMs: SURPLUS_MS - 1 }).isSurplus).toBe(true);
  });

  it("uses a draining block again before it leases", () => {
    const plans = plan({ known: [known("a", "Active"), known("b", "Draining")], free: { a: 3 } });
    const blocks = ["a", "b"].map((block) => ({ block, state: "Active" }));
    expect(plans).toEqual({ giveBack: [], wants: 0, isSurplus: false, blocks });
  });
});

it.each<[what: string, before: string, hasAnswered: boolean, after: string]>([
  ["stays while it is young", "11:56:01", true, "11:56:01"],
  ["goes on when the hub has answered", "11:56:00", true, "12:00:00"],
  ["goes on without the hub if there was no gap", "11:52:01", false, "12:00:00"],
  ["stays without the hub after a gap", "11:52:00", false, "11:52:00"],
  ["goes on after a gap when the hub has answered", "03:00:00", true, "12:00:00"],
  ["stays without the hub if the clock went back", "12:10:00", false, "12:10:00"],
  ["goes back with the clock when the hub has answered", "12:10:00", true, "12:00:00"],
])("the time of a pool's blocks %s", (_what, before, hasAnswered, after) => {
  const at = (time: string) => `2026-11-20T${time}.000Z`;
  expect(nextAsOf(at(before), new Date(at("12:00:00")), hasAnswered)).toBe(at(after));
});

it("a pool that the hub has never confirmed has no time without it", () => {
  const now = new Date("2026-11-20T12:00:00.000Z");
  expect([nextAsOf("", now, false), nextAsOf("", now, true)]).toEqual(["", now.toISOString()]);
});
