/** The search of test/property/registry/search with more faults at once than the gate has time for. */
import { expect, it } from "vitest";
import { describeSearch, LARGE_SCENES, SCENES, searchScene } from "../property/registry/search/scenes.ts";

const MAX_STATES = Number(process.env.BERTH_STATES ?? 500_000);

it.for(Object.keys(LARGE_SCENES) as (keyof typeof LARGE_SCENES)[])("%s: no interleaving violates", async (scene) => {
  const found = await searchScene(scene, { maxStates: MAX_STATES });
  console.log(describeSearch(scene, found));
  expect(found.violations, describeSearch(scene, found)).toEqual([]);
});

it.for(Object.keys(SCENES) as (keyof typeof SCENES)[])(
  "%s: no interleaving violates where a pool shows its cooling addresses late",
  async (scene) => {
    const found = await searchScene(scene, { maxStates: MAX_STATES, isPublic: false });
    console.log(describeSearch(scene, found));
    expect(found, describeSearch(scene, found)).toMatchObject({ isComplete: true, violations: [] });
  },
);
