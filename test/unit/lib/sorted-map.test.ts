import { expect, it } from "vitest";
import { SortedMap } from "../../../host/lib/sorted-map.ts";

const KEYS = ["m", "c", "x", "a", "p", "e", "z"];
const inserted = () => {
  const map = new SortedMap<number>();
  for (const [at, key] of KEYS.entries()) map.set(key, at);
  return map;
};
const ORDERED = KEYS.map((key, at): [string, number] => [key, at]).sort(([a], [b]) => (a < b ? -1 : 1));

/** Returns the result of each way to look at it. */
function views(map: SortedMap<number>) {
  const visited: [string, number][] = [];
  map.forEach((value, key, own) => {
    expect(own).toBe(map);
    visited.push([key, value]);
  });
  const keys = [...map.keys()];
  const values = [...map.values()];
  return {
    iterated: [...map],
    entries: [...map.entries()],
    visited,
    zipped: keys.map((key, at) => [key, values[at]]),
    got: keys.map((key) => [key, map.get(key)]),
  };
}

const all = (entries: readonly (readonly [string, number])[]) => {
  return { iterated: entries, entries, visited: entries, zipped: entries, got: entries };
};

it("is in the order of its keys, whatever the order in which they came", () => {
  expect(views(inserted())).toEqual(all(ORDERED));
});

it("a new value takes the place of the former", () => {
  const map = inserted().set("e", 70).set("a", 71).set("z", 72);
  const now: Record<string, number> = { e: 70, a: 71, z: 72 };
  expect(views(map)).toEqual(all(ORDERED.map(([key, value]) => [key, now[key] ?? value] as const)));
  expect(map.size).toBe(KEYS.length);
});

it.each(KEYS)("without %s, the others keep their order", (gone) => {
  const map = inserted();
  expect(map.delete(gone)).toBe(true);
  expect(views(map)).toEqual(all(ORDERED.filter(([key]) => key !== gone)));
  map.set(gone, 9);
  expect([...map.keys()]).toEqual([...KEYS].sort());
});

it("a key that it does not have changes nothing when it goes", () => {
  const map = inserted();
  expect(map.delete("d")).toBe(false);
  expect(views(map)).toEqual(all(ORDERED));
});

it("is empty when it was cleared, and takes new keys", () => {
  const map = inserted();
  map.clear();
  expect(views(map)).toEqual(all([]));
  expect([map.size, map.has("a"), map.get("a")]).toEqual([0, false, undefined]);
  map.set("k", 1).set("b", 2);
  expect(views(map)).toEqual(
    all([
      ["b", 2],
      ["k", 1],
    ]),
  );
});
