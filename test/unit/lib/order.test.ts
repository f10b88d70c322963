import { expect, it } from "vitest";
import { byName } from "../../../host/lib/order.ts";

it.each([
  ["b a", "a b"],
  ["p10 p9 p1", "p1 p10 p9"],
  ["a Z é", "Z a é"],
])("by name, %s are %s", (names, sorted) => {
  const objects = names.split(" ").map((name) => ({ name }));
  expect(objects.sort(byName)).toEqual(sorted.split(" ").map((name) => ({ name })));
});
