import { describe, expect, it } from "vitest";
import {
  type BlocksInput,
  NEW_MS,
  planBlocks,
  REST_MS,
  SURPLUS_MS,
} from "../../../../host/controller/blocks/plan-blocks.ts";
import type { BlockState } from "../../../../host/resources/pool-source.ts";

const known = (block: string, state: BlockState, ageMs = 0) => ({ block, state, ageMs });

/** Blocks of 16 addresses: `free` by block, 16 by default. */
function plan(change: Partial<BlocksInput> & { free?: Readonly<Record<string, number>> }) {
  const { free = {}, ...rest } = change;
  return planBlocks({
    known: [],
    leased: (change.known ?? []).map(({ block }) => block),
    isOpen: false,
    isContested: false,
    freeOf: (block) => free[block] ?? 16,
    size: 16,
    isWanted: false,
    surplusMs: 0,
    ...rest,
  });
}

describe("a block", () => {
  it.each<[what: string, input: Parameters<typeof plan>[0], wanted: BlockState]>([
    ["that is new rests", { leased: ["a"] }, "Resting"],
    ["rests for its time", { known: [known("a", "Resting", REST_MS - 1)] }, "Resting"],
    ["is used after its rest", { known: [known("a", "Resting", REST_MS)] }, "New"],
    ["rests on while members write again", { known: [known("a", "Resting", REST_MS)], isOpen: true }, "Resting"],
    ["is new for an hour", { known: [known("a", "New", NEW_MS - 1)] }, "New"],
    ["is an old one after an hour", { known: [known("a", "New", NEW_MS)] }, "Active"],
    ["of a contested cluster is new", { known: [known("a", "Active", NEW_MS)], isContested: true }, "New"],
    ["of a contested cluster stays new", { known: [known("a", "New", NEW_MS)], isContested: true }, "New"],
    ["stays as it is", { known: [known("a", "Active", NEW_MS)] }, "Active"],
  ])("%s", (_, input, wanted) => expect(plan(input).blocks).toEqual([{ block: "a", state: wanted }]));

  it("that the hub does not say is this cluster's is gone", () => {
    expect(plan({ known: [known("a", "Active"), known("b", "Active")], leased: ["b"] }).blocks).toEqual([
      { block: "b", state: "Active" },
    ]);
  });
});

describe("a pool", () => {
  const active = (...names: readonly string[]) => names.map((name) => known(name, "Active"));

  it.each<[what: string, input: Parameters<typeof plan>[0], total: number]>([
    ["without a block leases one", {}, 1],
    ["with a block free leases none", { known: active("a") }, 1],
    ["with fewer free addresses than a block has leases one ahead", { known: active("a"), free: { a: 15 } }, 2],
    ["waits for one that rests", { known: [...active("a"), known("b", "Resting")], free: { a: 0 } }, 2],
    [
      "that was found exhausted doubles",
      { known: active("a", "b", "c"), free: { a: 0, b: 0, c: 0 }, isWanted: true },
      6,
    ],
    ["that was found exhausted without a block leases one", { isWanted: true }, 1],
  ])("%s", (_, input, total) => expect(plan(input).total).toBe(total));

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

  it("uses a draining block again before it leases", () => {
    const plans = plan({ known: [known("a", "Active"), known("b", "Draining")], free: { a: 3 } });
    expect(plans).toEqual({
      ...{ total: 2, isSurplus: false },
      blocks: [
        { block: "a", state: "Active" },
        { block: "b", state: "Active" },
      ],
    });
  });
});
