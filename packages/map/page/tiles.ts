/**
 * Pictures of parts of a map: square tiles of 256 pixels. On level 0 a pixel is one address; on level n > 0 it is 4^n
 * of them, on level -n an address has 2^n pixels a side, from -3 on with a pattern.
 */
import { numberAt, type Orientation, placesOf, squareOf } from "./hilbert.ts";
import { KINDS, type MapModel, popCount } from "./map-model.ts";

export const TILE = 256;
const TILE_LEVELS = 8;

/** An address has 32 pixels a side on the tiles of this level. */
export const DEEPEST = -5;

/** As 0xRRGGBB: the ground of each kind in the order of KINDS, and the ink of its pattern. */
export interface Palette {
  readonly ground: readonly number[];
  readonly ink: readonly number[];
  /** Past the end of the map, and between squares. */
  readonly empty: number;
}

/** By kind, a picture of 8 × 8: bit x of row y is ink. So that no kind is told by its colour alone. */
const PATTERNS: readonly (readonly number[])[] = [
  [0, 0, 0, 0, 0, 0, 0, 0],
  [0, 0, 0, 0, 0, 0, 0, 0],
  [0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88],
  [0, 0x66, 0x66, 0, 0, 0x66, 0x66, 0],
  [0x81, 0x42, 0x24, 0x18, 0x18, 0x24, 0x42, 0x81],
  [0, 0x7e, 0x42, 0x42, 0x42, 0x42, 0x7e, 0],
  [0xff, 0, 0, 0, 0xff, 0, 0, 0],
  [0x88, 0x44, 0x22, 0x11, 0x88, 0x44, 0x22, 0x11],
  [0x01, 0, 0, 0, 0x10, 0, 0, 0],
];

/** A pixel that stands for several addresses shows this kind if only one of them is of it. */
const ALARMING = 4;

/** The kinds that states hide, in their order. */
const HIDDEN = [6, 7, 8] as const;

const PLACES = new Map<string, Uint32Array>();

/** The pixel of each number inside a square. */
function placesIn(levels: number, orientation: Orientation): Uint32Array {
  const key = `${levels}/${orientation}`;
  const places = PLACES.get(key) ?? placesOf(levels, orientation);
  PLACES.set(key, places);
  return places;
}

/** Returns a pixel as it stands in memory: red, green, blue, opaque. */
function pixelOf(colour: number): number {
  return (0xff000000 | ((colour & 0xff) << 16) | (colour & 0xff00) | (colour >>> 16)) >>> 0;
}

/** Returns the mixture of colours; their weights are whole numbers whose sum is 2^`bits`. */
function mix(colours: readonly number[], weights: ArrayLike<number>, bits: number): number {
  const half = (1 << bits) >> 1;
  let red = half;
  let green = half;
  let blue = half;
  for (let at = 0; at < weights.length; at++) {
    const weight = weights[at] ?? 0;
    if (weight === 0) continue;
    const colour = colours[at] ?? 0;
    red += weight * (colour >>> 16);
    green += weight * ((colour >>> 8) & 0xff);
    blue += weight * (colour & 0xff);
  }
  return ((red >>> bits) << 16) | ((green >>> bits) << 8) | (blue >>> bits);
}

export class TilePainter {
  readonly #model: MapModel;
  readonly #palette: Palette;
  /** By level: the pixel of a number of Bound addresses among free ones. */
  readonly #ramps: (Uint32Array | undefined)[] = [];
  readonly #empty: number;
  readonly #grounds: Uint32Array;
  readonly #inks: Uint32Array;
  readonly #counts = new Int32Array(KINDS.length);

  constructor(model: MapModel, palette: Palette) {
    this.#model = model;
    this.#palette = palette;
    this.#grounds = Uint32Array.from(palette.ground, pixelOf);
    this.#inks = Uint32Array.from(palette.ink, pixelOf);
    this.#empty = pixelOf(palette.empty);
  }

  /** Writes 16 × 16 pixels of a kind as the map shows it from close by. */
  static swatch(pixels: Uint32Array, { ground, ink }: Palette, kind: number): void {
    for (let at = 0; at < 256; at++) {
      const isInk = (((PATTERNS[kind]?.[at >> 5] ?? 0) >> ((at & 15) >> 1)) & 1) === 1;
      pixels[at] = pixelOf((isInk ? ink : ground)[kind] ?? 0);
    }
  }

  /** Writes the pixels of the tile in column `x` and row `y` of a level: TILE × TILE. */
  paint(pixels: Uint32Array, level: number, x: number, y: number): void {
    const { levels, orientation } = this.#model;
    const above = levels - (TILE_LEVELS + level);
    const number = numberAt(x, y, above, orientation);
    const part = squareOf(number, above, orientation).orientation;
    const first = number * 4 ** (TILE_LEVELS + level);
    if (level >= 0) this.#paintMany(pixels, first, level, part);
    else this.#paintSingle(pixels, first, -level, part);
  }

  /**
   * Writes one pixel for each address, or for 4^level of them. The most frequent, of free and bound addresses alone,
   * are written right here.
   */
  #paintMany(pixels: Uint32Array, first: number, level: number, part: Orientation): void {
    const places = placesIn(TILE_LEVELS, part);
    const { size, planes, others } = this.#model;
    const bits = 2 * level;
    const bound = planes[1] ?? new Uint32Array();
    const ramp = this.#rampOf(level);
    const words = (1 << bits) >>> 5;
    const mask = (1 << (1 << bits)) - 1;
    for (let at = 0; at < places.length; at++) {
      const start = first + (at << bits);
      const word = start >>> 5;
      let used = 0;
      let other = 0;
      if (words === 0) {
        used = popCount(((bound[word] ?? 0) >>> (start & 31)) & mask);
        other = ((others[word] ?? 0) >>> (start & 31)) & mask;
      } else {
        for (let next = word; next < word + words; next++) {
          used += popCount(bound[next] ?? 0);
          other |= others[next] ?? 0;
        }
      }
      pixels[places[at] ?? 0] = other === 0 && start < size ? (ramp[used] ?? 0) : this.pixelAt(start, level);
    }
  }

  /** Returns the pixel of 4^level addresses from a multiple of that on; `level` is at least 0. */
  pixelAt(start: number, level: number): number {
    const { size, planes } = this.#model;
    if (start >= size) return this.#empty;
    if (level === 0) return this.#grounds[this.#model.kindAt(start)] ?? 0;
    const counts = this.#counts;
    const each = 1 << (2 * level);
    let others = 0;
    for (let kind = 1; kind < KINDS.length; kind++) {
      const plane = planes[kind];
      const count = plane === undefined ? 0 : countBits(plane, start, level);
      counts[kind] = count;
      if (kind > 1) others += count;
    }
    const bound = counts[1] ?? 0;
    if (others === 0) return this.#rampOf(level)[bound] ?? 0;
    if ((counts[ALARMING] ?? 0) > 0) return this.#grounds[ALARMING] ?? 0;
    // Addresses that are reserved, other clusters' or outside take the places that the states leave.
    const used = bound + (counts[2] ?? 0) + (counts[3] ?? 0) + (counts[5] ?? 0);
    let left = each - used;
    for (const kind of HIDDEN) {
      counts[kind] = Math.min(counts[kind] ?? 0, left);
      left -= counts[kind];
    }
    counts[0] = left;
    return pixelOf(mix(this.#palette.ground, counts, 2 * level));
  }

  #paintSingle(pixels: Uint32Array, first: number, zoom: number, part: Orientation): void {
    const levels = TILE_LEVELS - zoom;
    const places = placesIn(levels, part);
    const side = 2 ** levels;
    const cell = 2 ** zoom;
    const empty = this.#empty;
    for (let at = 0; at < places.length; at++) {
      const number = first + at;
      const place = places[at] ?? 0;
      const isEmpty = number >= this.#model.size;
      const kind = isEmpty ? 0 : this.#model.kindAt(number);
      const ground = isEmpty ? empty : (this.#grounds[kind] ?? 0);
      const ink = isEmpty ? empty : (this.#inks[kind] ?? 0);
      const pattern = zoom < 3 ? PATTERNS[0] : PATTERNS[kind];
      const start = Math.floor(place / side) * cell * TILE + (place % side) * cell;
      for (let y = 0; y < cell; y++) {
        const row = pattern?.[(y << 3) >> zoom] ?? 0;
        for (let x = 0; x < cell; x++) {
          // A line between squares, where there is room for it.
          const isLine = zoom >= 3 && (x === 0 || y === 0);
          const isInk = ((row >> ((x << 3) >> zoom)) & 1) === 1;
          pixels[start + y * TILE + x] = isLine ? empty : isInk ? ink : ground;
        }
      }
    }
  }

  #rampOf(level: number): Uint32Array {
    const known = this.#ramps[level];
    if (known !== undefined) return known;
    const each = 4 ** level;
    const { ground } = this.#palette;
    const ramp = Uint32Array.from({ length: each + 1 }, (_, used) => {
      // One address among thousands is still to be seen.
      const share = used === 0 ? 0 : Math.max(used, Math.ceil(each / 5));
      return pixelOf(mix(ground.slice(0, 2), [each - share, share], 2 * level));
    });
    this.#ramps[level] = ramp;
    return ramp;
  }
}

/** Counts the bits of 4^level addresses from a multiple of that on. */
export function countBits(plane: Uint32Array, start: number, level: number): number {
  const word = plane[start >>> 5] ?? 0;
  if (level === 0) return (word >>> (start & 31)) & 1;
  if (level === 1) return popCount((word >>> (start & 31)) & 0xf);
  if (level === 2) return popCount((word >>> (start & 31)) & 0xffff);
  let sum = popCount(word);
  const end = (start >>> 5) + 4 ** level / 32;
  for (let at = (start >>> 5) + 1; at < end; at++) sum += popCount(plane[at] ?? 0);
  return sum;
}
