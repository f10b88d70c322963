/**
 * Every interleaving of the product's decisions about one address, with answers lost, writes carried out any time
 * later, and faults. An invariant that falls without an assumption rests on it.
 */
import { expect, it } from "vitest";
import { itLong, ofRun } from "../../../world/long-cases.ts";
import { describeReliances, describeSearch, LARGE_SCENES, RELIANCES, SCENES, searchScene } from "./scenes.ts";
import { ASSUMPTIONS, type Assumption } from "./world-state.ts";

const MAX_STATES = 100_000;
/** Scenes that the long tests search. */
const SLOW: ReadonlySet<string> = new Set<keyof typeof SCENES>([
  "slow main plugins",
  "a migration",
  "answers lost",
  "a machine that boots",
  "a lost journal",
  "a Service and a member",
]);
const isQuick = (scene: string): boolean => !SLOW.has(scene);

const namesOf = <T extends object>(scenes: T) => Object.keys(scenes) as (keyof T)[];
const scenes = ofRun(namesOf(SCENES), isQuick);

it.for(scenes)("%s: no interleaving violates an invariant", async (scene) => {
  const found = await searchScene(scene, { maxStates: MAX_STATES });
  console.log(describeSearch(scene, found));
  expect(found, describeSearch(scene, found)).toMatchObject({ isComplete: true, violations: [] });
});

itLong.for(namesOf(LARGE_SCENES))("%s: no interleaving violates, as far as is searched", async (scene) => {
  const found = await searchScene(scene, { maxStates: MAX_STATES });
  expect(found.violations, describeSearch(scene, found)).toEqual([]);
});

itLong.for(namesOf(SCENES))("%s: nor where a pool shows its cooling addresses late", async (scene) => {
  const found = await searchScene(scene, { maxStates: 5 * MAX_STATES, isPublic: false });
  expect(found, describeSearch(scene, found)).toMatchObject({ isComplete: true, violations: [] });
});

// That nothing rests on an assumption, a whole search shows.
const reliances = ofRun(RELIANCES, ({ scene, violates }) => isQuick(scene) && violates.length > 0);

it.for(reliances)("$scene without $dropped: violates $violates", async ({ scene, dropped, violates }) => {
  const found = await searchScene(scene, { dropped, maxStates: MAX_STATES });
  const assumed = dropped.map((each) => ASSUMPTIONS[each]).join("; and: ");
  const rests = violates.length === 0 ? "Nothing" : `"${violates.join()}"`;
  console.log(`${rests} rests on: ${assumed}`);
  console.log(describeSearch(scene, found));
  expect(found.violations.map(({ invariant }) => invariant)).toEqual(violates);
  if (violates.length === 0) expect(found.isComplete).toBe(true);
});

it("each assumption has a row of the invariants that rest on it", () => {
  console.log(describeReliances());
  const named = new Set(RELIANCES.flatMap(({ dropped }) => dropped));
  expect((Object.keys(ASSUMPTIONS) as Assumption[]).filter((each) => !named.has(each))).toEqual([]);
});
