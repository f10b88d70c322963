import fc from "fast-check";
import { expect, test } from "vitest";
import {
  areSame,
  hasAddress,
  joinSpans,
  type Span,
  type Spans,
  sharedSpans,
  sizeOf,
  withoutSpans,
} from "../../../host/net/spans.ts";

const span = fc.tuple(fc.nat(60), fc.nat(12)).map(([first, more]): Span => ({ first: BigInt(first), last: BigInt(first + more) })); // biome-ignore format: one thought
const some = fc.array(span, { maxLength: 8 }).map(joinSpans);

/** The obvious twin: a set of numbers. */
function setOf(spans: Spans): Set<bigint> {
  const all = new Set<bigint>();
  for (const { first, last } of spans) for (let at = first; at <= last; at++) all.add(at);
  return all;
}

const addresses = Array.from({ length: 80 }, (_, at) => BigInt(at));

test("difference, intersection, size and membership are those of sets", () => {
  fc.assert(
    fc.property(some, some, (a, b) => {
      const [as, bs] = [setOf(a), setOf(b)];
      expect(setOf(withoutSpans(a, b))).toEqual(as.difference(bs));
      expect(setOf(sharedSpans(a, b))).toEqual(as.intersection(bs));
      expect(setOf(joinSpans([...a, ...b]))).toEqual(as.union(bs));
      expect(sizeOf(a)).toBe(BigInt(as.size));
      expect(addresses.filter((each) => hasAddress(a, each))).toEqual(addresses.filter((each) => as.has(each)));
      expect(areSame(a, b)).toBe(as.symmetricDifference(bs).size === 0);
      for (const result of [withoutSpans(a, b), sharedSpans(a, b), a]) expect(joinSpans(result)).toEqual(result);
    }),
  );
});
