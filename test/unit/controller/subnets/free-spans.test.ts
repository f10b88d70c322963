import { describe, expect, test } from "vitest";
import { FreeSpans, firstOf, giveBack } from "../../../../host/controller/subnets/plan/free-spans.ts";
import { type Spans, sizeOf } from "../../../../host/core/spans.ts";

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

const never = () => false;

describe("addresses taken for a pool", () => {
  test.each([
    { why: "a new pool: at the first free multiple of its size", free: "1-254", own: "", count: 4, taken: "4-7" },
    { why: "of the next power of two, to have room", free: "1-254", own: "", count: 5, taken: "8-12" },
    { why: "one address", free: "1-254", own: "", count: 1, taken: "1" },
    { why: "no such place is free: where they lie together", free: "1-2 5-7 9-10", own: "", count: 3, taken: "5-7" },
    { why: "they lie nowhere together: the first ones", free: "1-2 5-6 9-10", own: "", count: 5, taken: "1-2 5-6 9" },
    { why: "after what the pool has", free: "1-3 8-254", own: "4-7", count: 3, taken: "8-10" },
    { why: "before it, when nothing is free behind", free: "1-3 20-30", own: "4-7", count: 2, taken: "2-3" },
    { why: "its gaps first", free: "5 7 11-20", own: "4 6 8-10", count: 4, taken: "5 7 11-12" },
    { why: "a gap from its beginning", free: "5-7 9-20", own: "4 8", count: 1, taken: "5" },
    { why: "a block that ends where the free addresses end", free: "1-7 9-20", own: "", count: 4, taken: "4-7" },
    { why: "the first of two places where they lie together", free: "1-3 5-7", own: "", count: 3, taken: "1-3" },
    { why: "the only address", free: "9", own: "", count: 1, taken: "9" },
    { why: "the rest where the rest has room", free: "12 20-21 24-30", own: "10-11", count: 3, taken: "12 20-21" },
    { why: "elsewhere, when there is no room", free: "1-2 20-30", own: "4-7", count: 3, taken: "20-22" },
    { why: "all that there is, and no more", free: "1-2 9", own: "", count: 8, taken: "1-2 9" },
    { why: "nothing", free: "", own: "4", count: 2, taken: "" },
  ])("$why", ({ free, own, count, taken }) => {
    const from = new FreeSpans(spans(free));
    expect(textOf(from.take(spans(own), count, never))).toBe(taken);
    expect(sizeOf(from.spans)).toBe(sizeOf(spans(free)) - sizeOf(spans(taken)));
  });

  test("addresses that those in use leave short come from before the place", () => {
    const from = new FreeSpans(spans("1-7"));
    expect(textOf(from.take([], 4, (address) => address === 5n))).toBe("1 4 6-7");
    expect(textOf(from.spans)).toBe("2-3 5");
  });

  test("a network of 2^64 addresses costs the same as a small one", () => {
    const from = new FreeSpans([{ first: 1n, last: 1n << 64n }]);
    const beganMs = performance.now();
    for (let pool = 0; pool < 100; pool++) from.take([], 10, never);
    expect(performance.now() - beganMs).toBeLessThan(1_000);
    expect(from.spans.length).toBeLessThan(102);
  });
});

test.each([
  { gone: "5-8", left: "1-4 9" },
  { gone: "1", left: "2-9" },
  { gone: "9-20", left: "1-8" },
  { gone: "0-10", left: "" },
  { gone: "20", left: "1-9" },
])("1-9 without $gone is $left", ({ gone, left }) => {
  const from = new FreeSpans(spans("1-9"));
  for (const span of spans(gone)) from.remove(span);
  expect(textOf(from.spans)).toBe(left);
});

test.each([
  { count: 0, first: "" },
  { count: 2, first: "1-2" },
  { count: 4, first: "1-3 7" },
  { count: 9, first: "1-3 7-9" },
])("the first $count of 1-3 7-9 are $first", ({ count, first }) => {
  expect(textOf(firstOf(spans("1-3 7-9"), count))).toBe(first);
});

test("the highest addresses go back, of those that are not in use", () => {
  const { left, given } = giveBack(spans("4-7 9"), 3n, () => spans("7"));
  expect(textOf(left)).toBe("4 7");
  expect(given).toBe(3n);
  expect(giveBack(spans("4-5"), 5n, () => spans("4"))).toEqual({ left: spans("4"), given: 1n });
});
