/** Blocks from an IPAM of record under the breadth-first search: every order of asks, late requests and faults. */
import { expect, it } from "vitest";
import { search } from "../../../../test/property/registry/search/search.ts";
import { itLong } from "../../../../test/world/long-cases.ts";
import { LARGE_PREFIX_SCENES, PREFIX_SCENES, prefixSystem } from "./prefix-world.ts";

const MAX_STATES = 60_000;

it.for(Object.entries(PREFIX_SCENES))("%s", async ([, scene]) => {
  const found = await search(prefixSystem(scene), { maxStates: MAX_STATES });
  expect(found).toMatchObject({ isComplete: true, violations: [] });
});

itLong.for(Object.entries(LARGE_PREFIX_SCENES))("%s: nothing is violated", async ([, scene]) => {
  expect((await search(prefixSystem(scene), { maxStates: MAX_STATES })).violations).toEqual([]);
});

it("without a rest, a restored server gives two clusters one block", async () => {
  const found = await search(prefixSystem({ ...PREFIX_SCENES["the server is restored"], without: "rest" }), {
    ...{ maxStates: MAX_STATES, isFirstEnough: true },
  });
  expect(found.violations.map(({ invariant }) => invariant)).toContain("one cluster");
});
