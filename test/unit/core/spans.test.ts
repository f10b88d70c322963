import fc from "fast-check";
import { expect, test } from "vitest";
import { MAX_RANGES } from "../../../host/core/core-exports.ts";
import type { Span } from "../../../host/core/module.ts";
import {
  areContested,
  areSame,
  haveShared,
  joinRanges,
  joinSpans,
  rangesContain,
  type Spans,
  sharedSpans,
  sizeOf,
  withoutSpans,
} from "../../../host/core/spans.ts";
import { rows } from "../../world/rows.ts";
import { ip, range } from "../../world/values.ts";

const span = fc
  .tuple(fc.nat(60), fc.nat(12))
  .map(([first, more]): Span => ({ first: BigInt(first), last: BigInt(first + more) }));
const some = fc.array(span, { maxLength: 8 }).map(joinSpans);

const HALF = 2n ** 64n - 30n;
const single = (at: number): Span => ({ first: BigInt(at), last: BigInt(at) });

/** The reference model: a set of numbers. */
function setOf(spans: Spans): Set<bigint> {
  const all = new Set<bigint>();
  for (const { first, last } of spans) for (let at = first; at <= last; at++) all.add(at);
  return all;
}

/** Few spans or as many as the core keeps, of IPv4, of IPv6, and on both sides of 2^64. */
const kinds: [kind: string, spans: fc.Arbitrary<Spans>][] = [
  ["few spans of IPv4", some],
  [
    "few spans of IPv6",
    some.map((spans) => spans.map(({ first, last }) => ({ first: first + HALF, last: last + HALF }))),
  ],
  ["many spans", fc.array(fc.nat(999), { minLength: 150, maxLength: 250 }).map((all) => joinSpans(all.map(single)))],
];

test.each(kinds)("difference, intersection and size are those of sets: %s", (_kind, spans) => {
  fc.assert(
    fc.property(spans, spans, some, (a, c, few) => {
      const b = few.length % 2 === 0 ? c : few;
      const [as, bs] = [setOf(a), setOf(b)];
      expect(setOf(withoutSpans(a, b))).toEqual(as.difference(bs));
      expect(setOf(sharedSpans(a, b))).toEqual(as.intersection(bs));
      expect(setOf(joinSpans([...a, ...b]))).toEqual(as.union(bs));
      expect(sizeOf(a)).toBe(BigInt(as.size));
      expect(areSame(a, b)).toBe(as.symmetricDifference(bs).size === 0);
      expect(haveShared(a, b)).toBe(!as.isDisjointFrom(bs));
      expect(areContested([...a, ...b])).toBe(!as.isDisjointFrom(bs));
      for (const result of [withoutSpans(a, b), sharedSpans(a, b), a]) expect(joinSpans(result)).toEqual(result);
    }),
  );
});

/** `1-2 4` */
const spansOf = (text: string): Spans =>
  text.split(" ").map((each) => {
    const [first = "", last = first] = each.split("-");
    return { first: BigInt(first), last: BigInt(last) };
  });

test.each(rows`
  1-2 4 => 1-2 4
  1-2 3-4 => 1-4
  1-3 3-4 => 1-4
  1-9 3-4 6 => 1-9
  4 1-2 => 1-2 4
`)("joinSpans returns the fewest spans, ascending: %s", (given, joined) =>
  expect(joinSpans(spansOf(given))).toEqual(spansOf(joined)),
);

test("ranges contain the addresses between their ends, of their family", () => {
  const ranges = joinRanges(["10.6.0.9", "10.6.0.1-10.6.0.6"].map(range), 4);
  const isContained = (text: string) => rangesContain(ranges, ip(text));
  expect(["10.6.0.1", "10.6.0.6", "10.6.0.9"].map(isContained)).toEqual([true, true, true]);
  expect(["10.6.0.0", "10.6.0.7", "10.6.0.10", "::a06:1"].filter(isContained)).toEqual([]);
});

test("more spans than a set of the core holds may be contested", () => {
  const many = Array.from({ length: MAX_RANGES + 1 }, (_, at) => ({ first: BigInt(2 * at), last: BigInt(2 * at) }));
  expect(areContested(many)).toBe(false);
  expect(areContested(many.toReversed())).toBe(true);
});
