/**
 * The Hilbert curve: which square of a grid has a number, and the reverse. Numbers that follow one another are
 * neighbours, and each aligned run of 4^n numbers is a square of 2^n cells a side.
 */

/**
 * The orientation of a part of the curve: 0 as drawn below, 1 transposed, 2 transposed at the other diagonal, 3
 * turned by half. One after the other is the exclusive or of both.
 *
 *      x 0 1
 *   y 0  0 3      digits of a square's quarters; quarter 0 is transposed, 3 transposed at the other diagonal
 *     1  1 2
 */
export type Orientation = 0 | 1 | 2 | 3;

const CHILD: readonly Orientation[] = [1, 0, 0, 2];

/** By orientation and digit: x | y << 1. */
const PLACE: readonly (readonly number[])[] = [
  [0b00, 0b10, 0b11, 0b01],
  [0b00, 0b01, 0b11, 0b10],
  [0b11, 0b10, 0b00, 0b01],
  [0b11, 0b01, 0b00, 0b10],
];

/** The inverse: by orientation and x | y << 1. */
const DIGIT: readonly (readonly number[])[] = PLACE.map((places) => [0, 1, 2, 3].map((place) => places.indexOf(place)));

interface Square {
  readonly x: number;
  readonly y: number;
  /** Orientation of the part of the curve inside of it. */
  readonly orientation: Orientation;
}

/**
 * Returns the square that has a number, `levels` below a curve of an orientation: x and y are below 2^levels, the
 * number below 4^levels.
 */
export function squareOf(number: number, levels: number, start: Orientation): Square {
  let x = 0;
  let y = 0;
  let orientation: Orientation = start;
  for (let level = levels - 1; level >= 0; level--) {
    const digit = Math.floor(number / 4 ** level) & 3;
    const place = PLACE[orientation]?.[digit] ?? 0;
    x = 2 * x + (place & 1);
    y = 2 * y + (place >> 1);
    orientation = (orientation ^ (CHILD[digit] ?? 0)) as Orientation;
  }
  return { x, y, orientation };
}

/** The inverse of {@link squareOf}. */
export function numberAt(x: number, y: number, levels: number, start: Orientation): number {
  let number = 0;
  let orientation = start;
  for (let level = levels - 1; level >= 0; level--) {
    const place = ((x >> level) & 1) | (((y >> level) & 1) << 1);
    const digit = DIGIT[orientation]?.[place] ?? 0;
    number = 4 * number + digit;
    orientation = (orientation ^ (CHILD[digit] ?? 0)) as Orientation;
  }
  return number;
}

/** Returns where the square of each number is, `levels` below: its place row by row. */
export function placesOf(levels: number, start: Orientation): Uint32Array {
  const side = 2 ** levels;
  const places = new Uint32Array(side * side);
  const fill = (level: number, x: number, y: number, first: number, orientation: Orientation): void => {
    if (level === 0) {
      places[first] = y * side + x;
      return;
    }
    const half = 2 ** (level - 1);
    for (let digit = 0; digit < 4; digit++) {
      const place = PLACE[orientation]?.[digit] ?? 0;
      const next = (orientation ^ (CHILD[digit] ?? 0)) as Orientation;
      fill(level - 1, x + (place & 1) * half, y + (place >> 1) * half, first + digit * 4 ** (level - 1), next);
    }
  };
  fill(levels, 0, 0, 0, start);
  return places;
}

/** In squares; `right` and `bottom` are the first beyond. */
interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Returns the smallest rectangle with all squares of the runs: each is cut into the largest aligned blocks. */
export function boxOf(
  runs: readonly (readonly [first: number, last: number])[],
  levels: number,
  orientation: Orientation,
): Box {
  const box = { left: Infinity, top: Infinity, right: 0, bottom: 0 };
  for (const [first, last] of runs) {
    for (let at = first; at <= last; ) {
      let level = 0;
      while (level < levels && at % 4 ** (level + 1) === 0 && at + 4 ** (level + 1) - 1 <= last) level++;
      const { x, y } = squareOf(at / 4 ** level, levels - level, orientation);
      const side = 2 ** level;
      box.left = Math.min(box.left, x * side);
      box.top = Math.min(box.top, y * side);
      box.right = Math.max(box.right, (x + 1) * side);
      box.bottom = Math.max(box.bottom, (y + 1) * side);
      at += 4 ** level;
    }
  }
  return box;
}
