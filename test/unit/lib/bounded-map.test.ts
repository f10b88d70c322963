import { expect, it } from "vitest";
import { BoundedMap } from "../../../host/lib/bounded-map.ts";

it("forgets the key that was set longest ago; setting a key again makes it the newest, reading does not", () => {
  const map = new BoundedMap<string, number>(3);
  map.set("a", 1).set("b", 2).set("c", 3).set("a", 4);
  expect(map.get("b")).toBe(2);
  map.set("d", 5);
  expect([...map].join(" ")).toBe("c,3 a,4 d,5");
  expect([map.getOrInsertComputed("e", () => 6), map.getOrInsertComputed("a", () => 7)]).toEqual([6, 4]);
  expect([...map].join(" ")).toBe("a,4 d,5 e,6");
});
