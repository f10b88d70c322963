/** The leases of blocks under the breadth-first search: every order of asks, writes, late writes and faults. */
import { expect, it } from "vitest";
import { itLong } from "../../world/long-cases.ts";
import { search } from "../registry/search/search.ts";
import { LARGE_SCENES, leaseSystem, SCENES } from "./lease-world.ts";

const MAX_STATES = 60_000;

it.for(Object.entries(SCENES))("%s", async ([, scene]) => {
  const found = await search(leaseSystem(scene), { maxStates: MAX_STATES });
  expect(found).toMatchObject({ isComplete: true, violations: [] });
});

itLong.for(Object.entries(LARGE_SCENES))("%s: nothing is violated", async ([, scene]) => {
  expect((await search(leaseSystem(scene), { maxStates: 5 * MAX_STATES })).violations).toEqual([]);
});

it("without a rest, a restored hub gives two clusters one block", async () => {
  const found = await search(leaseSystem({ ...SCENES["the hub is restored"], without: "rest" }), {
    ...{ maxStates: MAX_STATES, isFirstEnough: true },
  });
  expect(found.violations.map(({ invariant }) => invariant)).toContain("one cluster");
});

it("without a look at the pool, a late create gives two clusters one block", async () => {
  const found = await search(leaseSystem({ ...SCENES["a create is late"], without: "reading" }), {
    ...{ maxStates: MAX_STATES, isFirstEnough: true },
  });
  expect(found.violations.map(({ invariant }) => invariant)).toContain("one cluster");
});
