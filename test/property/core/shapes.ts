/** Shapes of pools to walk over: those that break things, then random ones. */

import type { Seeded } from "../../world/seeded.ts";
import type { Span } from "./pool-model.ts";

export interface Shape {
  readonly name: string;
  readonly family: 4 | 6;
  readonly ranges: readonly Span[];
  readonly masks: readonly Span[];
}

const LAST: Record<4 | 6, bigint> = { 4: (1n << 32n) - 1n, 6: (1n << 128n) - 1n };
const BASE: Record<4 | 6, bigint> = { 4: 0x0a000000n, 6: 0x20010db8n << 96n };

function shape(name: string, family: 4 | 6, ranges: readonly Span[], masks: readonly Span[] = []): Shape {
  return { name, family, ranges, masks };
}

/** A block of `size` addresses at the family's usual place, with the first and last masked. */
function block(name: string, family: 4 | 6, size: bigint): Shape {
  const first = BASE[family];
  const last = first + size - 1n;
  return shape(
    name,
    family,
    [[first, last]],
    size > 2n
      ? [
          [first, first],
          [last, last],
        ]
      : [],
  );
}

/** One shape per way in which a bitmap, a range or an address space can end. */
export function edgeShapes(): Shape[] {
  const sizes = [
    1n,
    2n,
    4n,
    63n,
    64n,
    65n,
    255n,
    256n,
    4095n,
    4096n,
    4097n,
    8192n,
    65536n,
    (1n << 18n) - 1n,
    1n << 18n,
    (1n << 18n) + 1n,
  ];
  return [
    ...sizes.map((size) => block(`IPv4 of ${size}`, 4, size)),
    block("IPv4 /8", 4, 1n << 24n),
    block("IPv4 /8 less one", 4, (1n << 24n) - 1n),
    shape("IPv4 /8 and one more", 4, [[BASE[4], BASE[4] + (1n << 24n)]]),
    shape("all of IPv4", 4, [[0n, LAST[4]]], [[0n, 0n]]),
    shape(
      "both ends of IPv4",
      4,
      [
        [0n, 9n],
        [LAST[4] - 9n, LAST[4]],
      ],
      [[LAST[4], LAST[4]]],
    ),
    block("IPv6 /120", 6, 256n),
    block("IPv6 of one", 6, 1n),
    block("IPv6 /104, the window", 6, 1n << 24n),
    shape("IPv6 /64", 6, [[BASE[6], BASE[6] + (1n << 64n) - 1n]], [[BASE[6] + (1n << 40n), BASE[6] + (1n << 41n)]]),
    shape("all of IPv6", 6, [[0n, LAST[6]]]),
    shape("all of IPv6 but its middle", 6, [[0n, LAST[6]]], [[1n << 30n, LAST[6] - 5000n]]),
    shape("both ends of IPv6", 6, [
      [0n, 99n],
      [LAST[6] - 99n, LAST[6]],
    ]),
    shape("over the middle of 128 bits", 6, [[(1n << 64n) - 500n, (1n << 64n) + 500n]]),
    shape(
      "a /8, nearly all masked",
      4,
      [[BASE[4], BASE[4] + (1n << 24n) - 1n]],
      [[BASE[4] + 100n, BASE[4] + (1n << 24n) - 100n]],
    ),
    shape(
      "a masked window and 200 beyond",
      6,
      [[BASE[6], BASE[6] + (1n << 24n) + 199n]],
      [[BASE[6], BASE[6] + (1n << 24n) - 1n]],
    ),
    shape("all masked", 4, [[BASE[4], BASE[4] + 299n]], [[0n, LAST[4]]]),
    shape("no range", 4, []),
  ];
}

/** Up to 40 spans near each other, of a size that `scale` bounds. */
export function randomSpans(random: Seeded, family: 4 | 6, scale: bigint, most: number): Span[] {
  const origin = random.pick([
    BASE[family],
    0n,
    LAST[family] - scale,
    family === 6 && scale < 1n << 64n ? (1n << 64n) - scale / 2n : BASE[family],
  ]);
  return Array.from({ length: random.below(most) }, () => {
    const first = origin + random.belowBig(scale);
    const wanted = first + random.belowBig(scale / BigInt(1 + random.below(20)) + 1n);
    return [first, wanted < LAST[family] ? wanted : LAST[family]] as const;
  });
}

export function randomShape(random: Seeded): Shape {
  const family = random.pick([4, 6] as const);
  const scale = 1n << BigInt(2 + random.below(family === 4 ? 23 : random.pick([12, 24, 70])));
  const ranges = randomSpans(random, family, scale, 40);
  const masks = randomSpans(random, family, scale, 6);
  return shape(`random IPv${family}, scale ${scale}`, family, ranges, masks);
}
