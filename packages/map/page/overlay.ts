/**
 * Draws over the map's squares: borders and names of its prefixes, rings around addresses in quarantine, the square
 * that is chosen.
 */
import { numberAt, squareOf } from "./hilbert.ts";
import { KINDS, type MapModel } from "./map-model.ts";

/** The viewer's position on the map. */
interface Sight {
  /** In squares of the map: the upper left corner. */
  readonly x: number;
  readonly y: number;
  /** Pixels of the screen for each square. */
  readonly scale: number;
  /** Width of the screen: pixels. */
  readonly width: number;
  readonly height: number;
  /** Pixels of the screen for each of the page. */
  readonly ratio: number;
  readonly isDark: boolean;
}

/** Shortest side of a prefix whose name is written: pixels of the page. */
const NAMED_SIDE = 110;

/** Most rings; of more addresses in quarantine, the lowest have one. */
const MAX_RINGS = 256;

type Context = CanvasRenderingContext2D;

/**
 * Draws the borders of the smallest prefixes whose names have room, and the names. The table beside the map has the
 * same names.
 */
export function drawPrefixes(context: Context, model: MapModel, sight: Sight): void {
  const { scale, ratio, isDark } = sight;
  const [ink, halo] = isDark ? ["#fff", "#000"] : ["#000", "#fff"];
  const level = Math.max(1, Math.ceil(Math.log2((NAMED_SIDE * ratio) / scale)));
  if (level >= model.levels) return;
  const side = 2 ** level;
  const [left, top] = [Math.max(0, Math.floor(sight.x / side)), Math.max(0, Math.floor(sight.y / side))];
  const all = 2 ** (model.levels - level);
  const right = Math.min(all, Math.ceil((sight.x + sight.width / scale) / side));
  const bottom = Math.min(all, Math.ceil((sight.y + sight.height / scale) / side));
  context.lineWidth = ratio;
  context.strokeStyle = "rgb(0 0 0 / 45%)";
  context.textBaseline = "top";
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  const names: (readonly [name: string, x: number, y: number])[] = [];
  for (let row = top; row < bottom; row++) {
    for (let column = left; column < right; column++) {
      const first = numberAt(column, row, model.levels - level, model.orientation) * 4 ** level;
      if (first >= model.size) continue;
      const x = Math.round((column * side - sight.x) * scale) + 0.5;
      const y = Math.round((row * side - sight.y) * scale) + 0.5;
      context.strokeRect(x, y, side * scale, side * scale);
      names.push([model.nameOf({ first, bits: 2 * level }), x + 5 * ratio, y + 5 * ratio]);
    }
  }
  context.lineWidth = 3 * ratio;
  context.lineJoin = "round";
  context.strokeStyle = halo;
  context.fillStyle = ink;
  for (const [name, x, y] of names) {
    context.strokeText(name, x, y);
    context.fillText(name, x, y);
  }
}

/** Returns the numbers of the lowest addresses in quarantine. */
export function findQuarantined(model: MapModel): readonly number[] {
  const plane = model.planes[KINDS.indexOf("Quarantined")] ?? new Uint32Array();
  const found: number[] = [];
  for (let word = 0; word < plane.length && found.length < MAX_RINGS; word++) {
    for (let bits = plane[word] ?? 0; bits !== 0; bits &= bits - 1) {
      found.push(32 * word + 31 - Math.clz32(bits & -bits));
    }
  }
  return found;
}

/** Draws a ring around each of the addresses that is too small to be seen by itself. */
export function drawRings(context: Context, model: MapModel, sight: Sight, numbers: readonly number[]): void {
  const { scale, ratio } = sight;
  if (scale > 12 * ratio) return;
  for (const number of numbers) {
    const { x, y } = squareOf(number, model.levels, model.orientation);
    const [left, top] = [(x + 0.5 - sight.x) * scale, (y + 0.5 - sight.y) * scale];
    if (left < 0 || top < 0 || left > sight.width || top > sight.height) continue;
    context.beginPath();
    context.arc(left, top, 7 * ratio, 0, 2 * Math.PI);
    strokeTwice(context, ratio, "#fff", "#b00020");
  }
}

/** Draws the square of the address that is chosen. */
export function drawChosen(context: Context, model: MapModel, sight: Sight, number: number): void {
  const { x, y } = squareOf(number, model.levels, model.orientation);
  const side = Math.max(10 * sight.ratio, sight.scale);
  context.beginPath();
  context.rect((x + 0.5 - sight.x) * sight.scale - side / 2, (y + 0.5 - sight.y) * sight.scale - side / 2, side, side);
  strokeTwice(context, sight.ratio, "#fff", "#000");
}

/** A line that is seen on any ground. */
function strokeTwice(context: Context, ratio: number, outer: string, inner: string): void {
  for (const [width, colour] of [
    [5, outer],
    [2, inner],
  ] as const) {
    context.lineWidth = width * ratio;
    context.strokeStyle = colour;
    context.stroke();
  }
}
