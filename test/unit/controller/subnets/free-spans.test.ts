/** Places for addresses that no transcript tells apart. */
import { expect, test } from "vitest";
import { FreeSpans } from "../../../../host/controller/subnets/plan/free-spans.ts";
import { type Spans, sharedSpans, sizeOf } from "../../../../host/core/spans.ts";

/** `4-7 9` */
function spans(text: string): Spans {
  return (text.match(/\S+/g) ?? []).map((part) => {
    const [first = "", last = first] = part.split("-");
    return { first: BigInt(first), last: BigInt(last) };
  });
}

function textOf(all: Spans): string {
  return all.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`)).join(" ");
}

test.each([
  { why: "no such place is free: where they lie together", free: "1-2 5-7 9-10", count: 3, taken: "5-7" },
  { why: "they lie nowhere together: the first ones", free: "1-2 5-6 9-10", count: 5, taken: "1-2 5-6 9" },
  { why: "the first of two places where they lie together", free: "1-3 5-7", count: 3, taken: "1-3" },
  { why: "the rest where the rest has room", free: "12 20-21 24-30", own: "10-11", count: 3, taken: "12 20-21" },
  { why: "from before it, if addresses in use leave it short", free: "1-7", held: "5", count: 4, taken: "1 4 6-7" },
])("addresses for a pool: $why", ({ free, own = "", held = "", count, taken }) => {
  const from = new FreeSpans(spans(free));
  expect(textOf(from.take(spans(own), count, (asked) => sharedSpans(asked, spans(held))))).toBe(taken);
  expect(sizeOf(from.spans)).toBe(sizeOf(spans(free)) - sizeOf(spans(taken)));
});

test("a network of 2^64 addresses costs the same as a small one", () => {
  const from = new FreeSpans([{ first: 1n, last: 1n << 64n }]);
  const beganMs = performance.now();
  for (let pool = 0; pool < 100; pool++) from.take([], 10, () => []);
  expect(performance.now() - beganMs).toBeLessThan(1_000);
  expect(from.spans.length).toBeLessThan(102);
});
