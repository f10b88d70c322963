/** The search of test/property/blocks with more clusters, blocks and faults than the gate has time for. */
import { expect, it } from "vitest";
import { LARGE_SCENES, leaseSystem } from "../property/blocks/lease-world.ts";
import { search } from "../property/registry/search/search.ts";

const MAX_STATES = Number(process.env.BERTH_STATES ?? 300_000);

it.for(Object.entries(LARGE_SCENES))("%s: no interleaving violates", async ([scene, parts]) => {
  const { states, steps, isComplete, violations } = await search(leaseSystem(parts), { maxStates: MAX_STATES });
  console.log(`${scene}: ${states} states, ${steps} steps, ${isComplete ? "to the end" : "cut off"}`);
  expect(violations).toEqual([]);
});
