import { expect, it } from "vitest";
import { planOverlap, type RangeOwner } from "../../../../host/controller/conditions/plan-overlap.ts";
import { parseRange } from "../../../../host/net/range.ts";

/** `a 1-4 9`: the owner's name and its addresses in 10.6.0.0/24. */
function owner(text: string): RangeOwner {
  const [name = "", ...parts] = text.split(" ");
  const ranges = parts.map((part) => {
    const [first, last = first] = part.split("-");
    return parseRange(`10.6.0.${first}-10.6.0.${last}`) ?? expect.fail(text);
  });
  return { name, addressSpace: "", family: 4, ranges };
}

it.each<[what: string, owners: string[], shared: string[]]>([
  ["nothing", ["a 1-4", "b 6-9"], []],
  ["nothing where one ends and another begins", ["b 5-9", "a 1-4"], []],
  ["nothing without addresses", ["a", "b"], []],
  ["the end of one and the beginning of another", ["a 1-6", "b 5-9"], ["a 2 from 5 with b", "b 2 from 5 with a"]],
  ["several ranges", ["a 1-2 5-6", "b 1-9"], ["a 4 from 1 with b", "b 4 from 1 with a"]],
  [
    "each pair something else",
    ["a 1-4", "b 4-6", "c 6-9 20"],
    ["a 1 from 4 with b", "b 2 from 4 with a,c", "c 1 from 6 with b"],
  ],
])("owners share %s", (_, owners, shared) => {
  const found = [...planOverlap(owners.map(owner))];
  const texts = found.map(([name, { count, first, others }]) => {
    return `${name} ${count} from ${first.replace("10.6.0.", "")} with ${others.join()}`;
  });
  expect(texts).toEqual(shared);
});
