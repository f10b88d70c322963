import { expect, it } from "vitest";
import { Division, type Shortfall } from "../../../host/controller/division.ts";
import { shortfall } from "./conditions/judged.ts";

it("a division tells its listeners of changes alone", () => {
  const division = new Division();
  let told = 0;
  const count = (shortfalls: readonly Shortfall[] | undefined): number => {
    division.tell(shortfalls);
    return told;
  };
  const end = division.subscribe(() => told++);
  expect([count([]), count(undefined), count([]), count([]), count([shortfall("web")])]).toEqual([0, 1, 2, 2, 3]);
  expect([count([shortfall("web")]), count([shortfall("web", "SubnetFull", 5)])]).toEqual([3, 4]);
  end();
  expect(count([])).toBe(4);
});
