/** The curve of the address map: every number has one square, neighbours touch, and parts are squares. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boxOf, numberAt, type Orientation, placesOf, squareOf } from "../../page/hilbert.ts";

const orientation = fc.integer({ min: 0, max: 3 }).map((value) => value as Orientation);
const levels = fc.integer({ min: 1, max: 12 });

/** A number of a curve of so many levels. */
const place = levels.chain((count) =>
  fc.record({ count: fc.constant(count), number: fc.integer({ min: 0, max: 4 ** count - 1 }), start: orientation }),
);

describe("the Hilbert curve", () => {
  it("gives each number a square, and the square the number", () =>
    fc.assert(
      fc.property(place, ({ count, number, start }) => {
        const { x, y } = squareOf(number, count, start);
        expect(x).toBeLessThan(2 ** count);
        expect(y).toBeLessThan(2 ** count);
        expect(numberAt(x, y, count, start)).toBe(number);
      }),
      { numRuns: 2_000 },
    ));

  it("leads from each square to one beside it", () =>
    fc.assert(
      fc.property(place, ({ count, number, start }) => {
        fc.pre(number > 0);
        const [a, b] = [squareOf(number - 1, count, start), squareOf(number, count, start)];
        expect(Math.abs(a.x - b.x) + Math.abs(a.y - b.y)).toBe(1);
      }),
      { numRuns: 2_000 },
    ));

  it("lies in a part as the part's orientation says", () =>
    fc.assert(
      fc.property(place, fc.integer({ min: 0, max: 4 }), ({ count, number, start }, below) => {
        const part = squareOf(number, count, start);
        const side = 2 ** below;
        for (const inside of [0, 4 ** below - 1, (4 ** below) >> 1]) {
          const whole = squareOf(number * 4 ** below + inside, count + below, start);
          const own = squareOf(inside, below, part.orientation);
          expect([whole.x, whole.y]).toEqual([part.x * side + own.x, part.y * side + own.y]);
        }
      }),
      { numRuns: 500 },
    ));

  it("has the places in a list that it has square by square", () => {
    for (const start of [0, 1, 2, 3] as const) {
      const wanted = Array.from({ length: 256 }, (_, number) => {
        const { x, y } = squareOf(number, 4, start);
        return 16 * y + x;
      });
      expect([...placesOf(4, start)]).toEqual(wanted);
    }
  });

  it("fills the upper half first if it is transposed", () => {
    expect(Math.max(...Array.from({ length: 128 }, (_, number) => squareOf(number, 4, 1).y))).toBe(7);
  });
});

it("the box of some runs of numbers is the smallest with all their squares", () => {
  const levels = 4;
  const run = fc.tuple(fc.nat(4 ** levels - 1), fc.nat(40)).map(([first, more]) => {
    return [first, Math.min(first + more, 4 ** levels - 1)] as const;
  });
  fc.assert(
    fc.property(
      fc.array(run, { minLength: 1, maxLength: 3 }),
      fc.constantFrom<Orientation>(0, 1),
      (runs, orientation) => {
        const squares = runs.flatMap(([first, last]) =>
          Array.from({ length: last - first + 1 }, (_, at) => squareOf(first + at, levels, orientation)),
        );
        const [xs, ys] = [squares.map(({ x }) => x), squares.map(({ y }) => y)];
        expect(boxOf(runs, levels, orientation)).toEqual({
          left: Math.min(...xs),
          top: Math.min(...ys),
          right: Math.max(...xs) + 1,
          bottom: Math.max(...ys) + 1,
        });
      },
    ),
  );
});
