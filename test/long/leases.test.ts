/** The search of test/property/blocks with more clusters, blocks and faults than the gate has time for. */
import { expect, it } from "vitest";
import { LARGE_SCENES, leaseSystem } from "../property/blocks/lease-world.ts";
import { LARGE_PREFIX_SCENES, prefixSystem } from "../property/blocks/prefix-world.ts";
import { type SearchResult, search } from "../property/registry/search/search.ts";

const MAX_STATES = Number(process.env.BERTH_STATES ?? 300_000);

function check(scene: string, { states, steps, isComplete, violations }: SearchResult): void {
  console.log(`${scene}: ${states} states, ${steps} steps, ${isComplete ? "to the end" : "cut off"}`);
  expect(violations).toEqual([]);
}

it.for(Object.entries(LARGE_SCENES))("%s: no interleaving violates", async ([scene, parts]) => {
  check(scene, await search(leaseSystem(parts), { maxStates: MAX_STATES }));
});

it.for(Object.entries(LARGE_PREFIX_SCENES))("of record, %s: no interleaving violates", async ([scene, parts]) => {
  check(scene, await search(prefixSystem(parts), { maxStates: MAX_STATES }));
});
