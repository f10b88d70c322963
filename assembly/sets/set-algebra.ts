/**
 * Algebra on range sets: walks over two sorted lists at once. The sets are of one family; results are new sets.
 * Effects: linear memory; may grow it.
 */

import { addHi, less, lessAt, subHi } from "../numbers/u128";
import {
  countOf,
  createSet,
  endOf,
  entryAt,
  FIRST,
  familyOf,
  findAtOrBefore,
  firstBelow,
  firstHiOf,
  firstLoOf,
  LAST,
  lastHiOf,
  lastLoOf,
  nextEntry,
  normalise,
  push,
  pushAll,
  total,
} from "./range-set";

/** The addresses of both sets; 0 when there is no memory. */
export function union(a: usize, b: usize): usize {
  const set = createSet(familyOf(a), countOf(a) + countOf(b));
  if (set == 0) return 0;
  pushAll(set, a);
  pushAll(set, b);
  normalise(set);
  return set;
}

/** The addresses that are in both sets; 0 when there is no memory. */
export function intersect(a: usize, b: usize): usize {
  const set = createSet(familyOf(a), countOf(a) + countOf(b));
  if (set == 0) return 0;
  let x = entryAt(a, 0);
  let y = entryAt(b, 0);
  while (x < endOf(a) && y < endOf(b)) {
    const start = firstBelow(x, y) ? y : x;
    const xEndsFirst = lessAt(x + LAST, y + LAST);
    const end = xEndsFirst ? x : y;
    if (!lessAt(end + LAST, start + FIRST)) {
      push(set, firstHiOf(start), firstLoOf(start), lastHiOf(end), lastLoOf(end));
    }
    if (xEndsFirst) x = nextEntry(x);
    else y = nextEntry(y);
  }
  total(set);
  return set;
}

/** The addresses of `a` that are not in `b`; 0 when there is no memory. */
export function subtract(a: usize, b: usize): usize {
  const set = createSet(familyOf(a), countOf(a) + countOf(b));
  if (set == 0) return 0;
  let cut = entryAt(b, 0);
  for (let range = entryAt(a, 0); range < endOf(a); range = nextEntry(range)) {
    let hi = firstHiOf(range);
    let lo = firstLoOf(range);
    let open = true;
    while (cut < endOf(b) && !lessAt(range + LAST, cut + FIRST)) {
      const cutHi = firstHiOf(cut);
      const cutLo = firstLoOf(cut);
      if (less(hi, lo, cutHi, cutLo)) push(set, hi, lo, subHi(cutHi, cutLo, 0, 1), cutLo - 1);
      open = lessAt(cut + LAST, range + LAST);
      if (!open) break;
      if (!lessAt(cut + LAST, range + FIRST)) {
        hi = addHi(lastHiOf(cut), lastLoOf(cut), 0, 1);
        lo = lastLoOf(cut) + 1;
      }
      cut = nextEntry(cut);
    }
    if (open) push(set, hi, lo, lastHiOf(range), lastLoOf(range));
  }
  total(set);
  return set;
}

/**
 * Whether each range of `b` (all), or one of them (not all), lies in `a` (all), or shares an address with it (not all).
 */
function relate(a: usize, b: usize, all: bool): bool {
  for (let range = entryAt(b, 0); range < endOf(b); range = nextEntry(range)) {
    const near = range + (all ? FIRST : LAST);
    const far = range + (all ? LAST : FIRST);
    const found = findAtOrBefore(a, load<u64>(near), load<u64>(near, 8));
    const holds = found != 0 && !lessAt(found + LAST, far);
    if (holds != all) return holds;
  }
  return all;
}

/** Whether the sets share an address. */
export function overlaps(a: usize, b: usize): bool {
  return relate(a, b, false);
}

/** Whether every address of `b` is in `a`. */
export function includes(a: usize, b: usize): bool {
  return relate(a, b, true);
}
