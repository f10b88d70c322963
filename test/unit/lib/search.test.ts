import { expect, it } from "vitest";
import { countLeading } from "../../../host/lib/search.ts";

it.each<[list: readonly number[], value: number, count: number]>([
  [[], 5, 0],
  [[5], 4, 0],
  [[5], 5, 1],
  [[1, 3, 3, 7], 0, 0],
  [[1, 3, 3, 7], 2, 1],
  [[1, 3, 3, 7], 3, 3],
  [[1, 3, 3, 7], 9, 4],
])("of %j as many stand at or before %i", (list, value, count) => {
  expect(countLeading(list, (each) => each <= value)).toBe(count);
});
