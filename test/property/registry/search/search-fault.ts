/** A child of find-fault.ts: searches with the fault that its argument names, and prints what it has found as JSON. */
import { FAULTS } from "../../../simulation/faults/faults.ts";
import { replaceExports } from "../../../simulation/faults/replace-exports.ts";
import type { SearchedFault } from "./find-fault.ts";

const MAX_STATES = 100_000;

const [, , name] = process.argv;
const fault = name === undefined ? undefined : FAULTS[name];
if (name !== undefined && fault === undefined) throw new Error(`There is no fault "${name}"`);
const replaced = fault === undefined ? [] : [fault.replaced];
const loaded = replaceExports(replaced);
// Loads the product, with the fault.
const { SCENES, searchScene } = await import("./scenes.ts");
const scenes = Object.keys(SCENES) as (keyof typeof SCENES)[];
const isLoaded = replaced.every((each) => loaded.has(each));
let found: SearchedFault = { states: 0 };
for (const scene of isLoaded ? scenes : []) {
  const { states, violations } = await searchScene(scene, { maxStates: MAX_STATES, isFirstEnough: true });
  const [first] = violations;
  found = { states: found.states + states, ...(first === undefined ? {} : { violation: { scene, ...first } }) };
  if (first !== undefined) break;
}
console.log(JSON.stringify(found));
