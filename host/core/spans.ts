/**
 * Sets of addresses of one family as sorted spans, which are plain values; union, difference and intersection are the
 * core's. None of it lists addresses, so that a /8 costs no more than a /24.
 * Effects: the memory of the process's instance of the core.
 */

import { BoundedMap } from "../lib/bounded-map.ts";
import { countLeading } from "../lib/search.ts";
import type { Family, Ip } from "../net/ip.ts";
import { type Range, rangeContains } from "../net/range.ts";
import { type CoreExports, MAX_RANGES } from "./core-exports.ts";
import { coreInstance } from "./instance.ts";
import { readAddress, readSize, type Span, widthOf } from "./module.ts";

/** Ascending; no two overlap or touch. */
export type Spans = readonly Span[];

/**
 * Lists of so many spans and more stay in the core for a while, because a Subnet's list is compared with each of its
 * pools. Lists are never changed.
 */
const KEPT_SPANS = 64;

/** Most lists that stay in the core. */
const MAX_KEPT_SETS = 16;

const LAST_IPV4 = 0xffffffffn;

/** Returns the narrowest form that has room for all of them. */
function familyOf(spans: readonly Span[]): Family {
  return spans.some(({ last }) => last > LAST_IPV4) ? 6 : 4;
}

/** Reads the set and drops it. */
function takeSpans(handle: number, family: Family): Spans {
  const core = coreInstance();
  const count = core.check("set_ranges", core.exports.set_ranges(handle));
  const view = core.output();
  const width = widthOf(family);
  const spans = Array.from({ length: count }, (_, at) => ({
    first: readAddress(view, 2 * at * width, family),
    last: readAddress(view, (2 * at + 1) * width, family),
  }));
  core.exports.drop(handle);
  return spans;
}

/** The sets of the long lists used last. */
class KeptSets extends BoundedMap<Spans, { readonly family: Family; readonly handle: number }> {
  override delete(list: Spans): boolean {
    const kept = this.get(list);
    if (kept !== undefined) coreInstance().exports.drop(kept.handle);
    return super.delete(list);
  }
}

const keptSets = new KeptSets(MAX_KEPT_SETS);

/** Calls `use` with the handle of a list's set. */
function withSet<T>(spans: Spans, family: Family, use: (handle: number) => T): T {
  if (spans.length >= KEPT_SPANS) {
    const kept = keptSets.get(spans);
    if (kept?.family === family) return use(kept.handle);
    const handle = coreInstance().createSet(family, spans);
    keptSets.set(spans, { family, handle });
    return use(handle);
  }
  const handle = coreInstance().createSet(family, spans);
  try {
    return use(handle);
  } finally {
    coreInstance().exports.drop(handle);
  }
}

type Operation = "set_subtract" | "set_intersect";

function combine(name: Operation, a: Spans, b: Spans): Spans {
  const family = familyOf([...a.slice(-1), ...b.slice(-1)]);
  const core = coreInstance();
  const operation: CoreExports[Operation] = core.exports[name];
  return withSet(a, family, (x) => withSet(b, family, (y) => takeSpans(core.check(name, operation(x, y)), family)));
}

/** Returns the spans that hold the same addresses. The given spans may be in any order and overlap. */
export function joinSpans(spans: readonly Span[]): Spans {
  if (areJoined(spans)) return spans;
  const family = familyOf(spans);
  return takeSpans(coreInstance().createSet(family, spans), family);
}

/** Returns the addresses of `from` that are not in `taken`. */
export function withoutSpans(from: Spans, taken: Spans): Spans {
  if (areApart(from, taken)) return from;
  return areSame(from, taken) ? [] : combine("set_subtract", from, taken);
}

/** Returns the addresses that are in both. */
export function sharedSpans(a: Spans, b: Spans): Spans {
  if (areApart(a, b)) return [];
  if (isInOneOf(a, b) || areSame(a, b)) return a;
  return isInOneOf(b, a) ? b : combine("set_intersect", a, b);
}

/** Returns whether the lists share an address. */
export function haveShared(a: Spans, b: Spans): boolean {
  if (areApart(a, b)) return false;
  const family = familyOf([...a.slice(-1), ...b.slice(-1)]);
  const core = coreInstance();
  return withSet(a, family, (x) =>
    withSet(b, family, (y) => core.check("set_overlaps", core.exports.set_overlaps(x, y)) === 1),
  );
}

/** Returns whether an address is in more than one of the spans; true as well if a set of the core cannot hold them. */
export function areContested(spans: readonly Span[]): boolean {
  if (areJoined(spans)) return false;
  if (spans.length > MAX_RANGES) return true;
  const core = coreInstance();
  const handle = core.createSet(familyOf(spans), spans);
  try {
    core.check("set_size", core.exports.set_size(handle));
    return readSize(core.output(), 0) < sizeOf(spans);
  } finally {
    core.exports.drop(handle);
  }
}

/** Returns whether the spans are ascending, and no two overlap or touch. */
function areJoined(spans: readonly Span[]): boolean {
  let before: Span | undefined;
  for (const span of spans) {
    if (before !== undefined && before.last + 1n >= span.first) return false;
    before = span;
  }
  return true;
}

/** Returns whether one of them ends before the other begins. Compares only the ends. */
function areApart(a: Spans, b: Spans): boolean {
  const first = a[0];
  const last = a.at(-1);
  const otherFirst = b[0];
  const otherLast = b.at(-1);
  if (first === undefined || last === undefined || otherFirst === undefined || otherLast === undefined) return true;
  return last.last < otherFirst.first || otherLast.last < first.first;
}

/** Returns whether `whole` is one span, in which all of `part` lies. */
function isInOneOf(part: Spans, wholes: Spans): boolean {
  const whole = wholes[0];
  const first = part[0];
  const last = part.at(-1);
  if (whole === undefined || wholes.length > 1 || first === undefined || last === undefined) return false;
  return whole.first <= first.first && last.last <= whole.last;
}

export function spansOf(ranges: readonly Range[]): Spans {
  return joinSpans(ranges.map(({ first, last }) => ({ first: first.value, last: last.value })));
}

export function rangesOf(spans: Spans, family: Family): Range[] {
  return spans.map(({ first, last }) => ({ first: { family, value: first }, last: { family, value: last } }));
}

/** Returns the ranges that hold the same addresses, ascending; no two touch. All are of the family. */
export function joinRanges(ranges: readonly Range[], family: Family): Range[] {
  return rangesOf(spansOf(ranges), family);
}

/** Returns whether one of the ranges, which are as {@link joinRanges} returns them, has the address. */
export function rangesContain(ranges: readonly Range[], ip: Ip): boolean {
  const near = ranges[countLeading(ranges, ({ first }) => first.value <= ip.value) - 1];
  return near !== undefined && rangeContains(near, ip);
}

/** Returns the number of addresses; one that is in several spans counts in each. */
export function sizeOf(spans: readonly Span[]): bigint {
  return spans.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
}

export function areSame(a: Spans, b: Spans): boolean {
  return a.length === b.length && a.every(({ first, last }, at) => first === b[at]?.first && last === b[at]?.last);
}
