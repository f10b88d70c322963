/**
 * Sets of addresses of one family as sorted spans: union, difference, intersection, size. None of it lists addresses, so that a /8 costs what
 * a /24 does.
 */
import type { Family } from "./ip.ts";
import type { Range } from "./range.ts";

/** Both ends belong to the span; `first` ≤ `last`. */
export interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

/** Ascending; no two overlap or touch. */
export type Spans = readonly Span[];

/** The spans may stand in any order and overlap. */
export function joinSpans(spans: readonly Span[]): Spans {
  const joined: Span[] = [];
  for (const span of spans.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const before = joined.at(-1);
    if (before === undefined || span.first > before.last + 1n) joined.push(span);
    else if (span.last > before.last) joined[joined.length - 1] = { first: before.first, last: span.last };
  }
  return joined;
}

export function spansOf(ranges: readonly Range[]): Spans {
  return joinSpans(ranges.map(({ first, last }) => ({ first: first.value, last: last.value })));
}

export function rangesOf(spans: Spans, family: Family): Range[] {
  return spans.map(({ first, last }) => ({ first: { family, value: first }, last: { family, value: last } }));
}

export function sizeOf(spans: Spans): bigint {
  return spans.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
}

export function areSame(a: Spans, b: Spans): boolean {
  return a.length === b.length && a.every(({ first, last }, at) => first === b[at]?.first && last === b[at]?.last);
}

/** The place of the first span that does not end before the address. */
function placeOf(spans: Spans, address: bigint): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle] as Span).last < address) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function hasAddress(spans: Spans, address: bigint): boolean {
  const span = spans[placeOf(spans, address)];
  return span !== undefined && span.first <= address;
}

/** What of `from` is not in `taken`. */
export function withoutSpans(from: Spans, taken: Spans): Spans {
  return from.flatMap(({ first, last }) => {
    const left: Span[] = [];
    let next = first;
    for (let at = placeOf(taken, first); next <= last; at++) {
      const hole = taken[at];
      if (hole === undefined || hole.first > last) {
        left.push({ first: next, last });
        break;
      }
      if (hole.first > next) left.push({ first: next, last: hole.first - 1n });
      next = hole.last + 1n;
    }
    return left;
  });
}

/** What is in both. */
export function sharedSpans(a: Spans, b: Spans): Spans {
  return a.flatMap(({ first, last }) => {
    const shared: Span[] = [];
    for (let at = placeOf(b, first); ; at++) {
      const other = b[at];
      if (other === undefined || other.first > last) return shared;
      shared.push({ first: first > other.first ? first : other.first, last: last < other.last ? last : other.last });
    }
  });
}
