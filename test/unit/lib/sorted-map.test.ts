import { expect, it } from "vitest";
import { SortedMap } from "../../../host/lib/sorted-map.ts";

const KEYS = ["m", "c", "x", "a", "p", "e", "z"];
const inserted = () => {
  const map = new SortedMap<number>();
  for (const [at, key] of KEYS.entries()) map.set(key, at);
  return map;
};
const ORDERED = KEYS.map((key, at): [string, number] => [key, at]).sort(([a], [b]) => (a < b ? -1 : 1));

/** Expects the same of each way to look at it. */
function expectEntries(map: SortedMap<number>, entries: readonly (readonly [string, number])[]): void {
  const visited: [string, number][] = [];
  map.forEach((value, key) => void visited.push([key, value]));
  const values = [...map.values()];
  const zipped = [...map.keys()].map((key, at) => [key, values[at]]);
  expect([[...map], [...map.entries()], visited, zipped]).toEqual([entries, entries, entries, entries]);
}

it("is in the order of its keys, whatever the order in which they came", () => {
  expectEntries(inserted(), ORDERED);
});

it("a new value takes the place of the former", () => {
  const map = inserted().set("e", 70).set("a", 71).set("z", 72);
  const now: Record<string, number> = { e: 70, a: 71, z: 72 };
  const changed = ORDERED.map(([key, value]) => [key, now[key] ?? value] as const);
  expectEntries(map, changed);
});

it.each(KEYS)("without %s, the others keep their order", (gone) => {
  const map = inserted();
  expect(map.delete(gone)).toBe(true);
  const others = ORDERED.filter(([key]) => key !== gone);
  expectEntries(map, others);
  map.set(gone, 9);
  expect([...map.keys()]).toEqual([...KEYS].sort());
});

it("a key that it does not have changes nothing when it goes", () => {
  const map = inserted();
  expect(map.delete("d")).toBe(false);
  expectEntries(map, ORDERED);
});

it("is empty when it was cleared, and takes new keys", () => {
  const map = inserted();
  map.clear();
  expectEntries(map, []);
  map.set("k", 1).set("b", 2);
  expect([...map.keys()]).toEqual(["b", "k"]);
});
