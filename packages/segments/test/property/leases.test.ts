/** The leases of blocks under the breadth-first search: every order of asks, late requests and faults. */
import { expect, it } from "vitest";
import { search } from "../../../../test/property/registry/search/search.ts";
import { itLong, ofRun } from "../../../../test/world/long-cases.ts";
import { BROKEN_SCENES, LARGE_SCENES, leaseSystem, SCENES } from "./lease-world.ts";

const MAX_STATES = 60_000;
/** Scenes that the long tests search. */
const SLOW: ReadonlySet<string> = new Set<keyof typeof SCENES>([
  "hub: two clusters want two blocks at once",
  "hub: it is restored",
  "hub: it is made anew, and a controller begins anew",
]);

it.for(ofRun(Object.entries(SCENES), ([scene]) => !SLOW.has(scene)))("%s", async ([, scene]) => {
  const found = await search(leaseSystem(scene), { maxStates: MAX_STATES });
  expect(found).toMatchObject({ isComplete: true, violations: [] });
});

itLong.for(Object.entries(LARGE_SCENES))("%s: nothing is violated", async ([, scene]) => {
  expect((await search(leaseSystem(scene), { maxStates: MAX_STATES })).violations).toEqual([]);
});

const FIRST = { maxStates: MAX_STATES, isFirstEnough: true };

itLong.for(Object.entries(BROKEN_SCENES))("%s: two clusters use one block", async ([, scene]) => {
  const { violations } = await search(leaseSystem(scene), FIRST);
  expect(violations.map(({ invariant }) => invariant)).toEqual(["one cluster"]);
});

const ALL = { ...SCENES, ...LARGE_SCENES };

it.for([
  ["recall", "hub: a cluster is cut off while it is restored"],
  ["rest", "the server is restored"],
  ["rest", "hub: it is restored"],
  ["reading", "hub: a create is late"],
] as const)("without the %s, %s: two clusters use one block", async ([without, scene]) => {
  const { violations } = await search(leaseSystem({ ...ALL[scene], without }), FIRST);
  expect(violations.map(({ invariant }) => invariant)).toContain("one cluster");
});
