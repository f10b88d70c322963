import { expect, it } from "vitest";
import { isSameList } from "../../../host/lib/same-list.ts";

it.each<[a: readonly number[], b: readonly number[], isSame: boolean]>([
  [[], [], true],
  [[1, 2], [1, 2], true],
  [[1, 2], [2, 1], false],
  [[1], [1, 2], false],
  [[1, 2], [1], false],
])("%j and %j", (a, b, isSame) => expect(isSameList(a, b)).toBe(isSame));

it("elements are compared as the caller says", () => {
  expect(isSameList([1, -2], [-1, 2], (a, b) => Math.abs(a) === Math.abs(b))).toBe(true);
});
