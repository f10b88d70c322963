/**
 * The picture of a map on a canvas: its viewpoint, the painted tiles, and the user's actions with pointer and keys.
 * Positions are in squares of the map; scale is pixels of the screen per square.
 */
import { boxOf, numberAt, type Orientation, squareOf } from "./hilbert.ts";
import type { Block, MapModel } from "./map-model.ts";
import { drawChosen, drawPrefixes, drawRings, findQuarantined } from "./overlay.ts";
import { DEEPEST, type Palette, TILE, TilePainter } from "./tiles.ts";

/** Number of tiles that are kept; more if so many are in view. */
const KEPT_TILES = 64;

/**
 * Time for which a frame may paint new tiles: milliseconds. A missing part is shown from a coarser tile until then.
 */
const PAINT_MS = 3;

/** Pixels of the screen per square when one address fills the view's grid. */
const MAX_SCALE = 64;

/** Ranges of a pool among which its first view looks for a place. */
const MAX_RUNS = 1_000;

/** Squares of the first view at least. */
const MIN_SIDE = 8;

interface Tile {
  readonly canvas: OffscreenCanvas;
  isStale: boolean;
}

interface ViewEvents {
  /** The part of the map in view has changed. */
  readonly onMove: () => void;
  /** The pointer is over an address; undefined: over none. */
  readonly onHover: (number: number | undefined) => void;
  readonly onChoose: (number: number) => void;
}

/** Returns the part of a tile `up` levels above that shows the tile: left, top, width, height. */
function partOf(up: number, x: number, y: number) {
  const [side, part] = [TILE / 2 ** up, 2 ** up - 1];
  return [(x & part) * side, (y & part) * side, side, side] as const;
}

/** The level on which one tile shows the whole map. */
function coarsestOf({ levels }: MapModel): number {
  return levels - Math.log2(TILE);
}

export class MapView {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #events: ViewEvents;
  #model: MapModel | undefined;
  #painter: TilePainter | undefined;
  #palette: Palette;
  /** By `level/x/y`; those used last are at the end. */
  readonly #tiles = new Map<string, Tile>();
  readonly #image = new ImageData(TILE, TILE);
  readonly #pixels = new Uint32Array(this.#image.data.buffer);
  #room = KEPT_TILES;
  #x = 0;
  #y = 0;
  #scale = 1;
  #frame = 0;
  /** Undefined: to be found again. */
  #quarantined: readonly number[] | undefined;
  #chosen: number | undefined;
  readonly #pointers = new Map<number, { x: number; y: number }>();
  #isDrag = false;
  /** Whether the next frame is a map's first: it shows the coarse tile alone. */
  #isFirst = false;

  constructor(canvas: HTMLCanvasElement, palette: Palette, events: ViewEvents) {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null) throw new Error("The browser has no canvas");
    this.#canvas = canvas;
    this.#context = context;
    this.#palette = palette;
    this.#events = events;
    // Keys go to the map, not to a screen reader's own navigation.
    canvas.role = "application";
    canvas.ariaRoleDescription = "map";
    this.#listen();
    new ResizeObserver(() => this.#resize()).observe(canvas);
    this.#resize();
  }

  get model(): MapModel | undefined {
    return this.#model;
  }

  /** Shows another map, or the same one read again. */
  show(model: MapModel): void {
    const isSame = this.#model?.header.pool === model.header.pool && this.#model.size === model.size;
    this.#model = model;
    this.#painter = new TilePainter(model, this.#palette);
    for (const tile of this.#tiles.values()) tile.isStale = true;
    this.#quarantined = undefined;
    if (!isSame) {
      this.#tiles.clear();
      this.#chosen = undefined;
      this.fit({ first: 0, bits: 2 * model.levels });
      // One tile shows all coarsely until the others are painted.
      this.#tile(coarsestOf(model), 0, 0, false);
      this.#isFirst = true;
    }
    this.draw();
  }

  set palette(palette: Palette) {
    this.#palette = palette;
    this.#tiles.clear();
    if (this.#model !== undefined) this.show(this.#model);
  }

  set chosen(number: number | undefined) {
    this.#chosen = number;
    this.draw();
  }

  /** The addresses of these numbers have changed in the model. Of coarse tiles only their pixels are painted again. */
  touch(numbers: readonly number[]): void {
    const model = this.#model;
    if (model === undefined) return;
    this.#quarantined = undefined;
    for (const [key, tile] of this.#tiles) {
      if (tile.isStale) continue;
      const [level = 0, x = 0, y = 0] = key.split("/").map(Number);
      const above = model.levels - 8 - level;
      const each = 4 ** (8 + level);
      const index = numberAt(x, y, above, model.orientation);
      const inside = numbers.filter((number) => Math.floor(number / each) === index);
      if (inside.length === 0) continue;
      if (level < 0) tile.isStale = true;
      else this.#touchPixels(tile, inside, level, squareOf(index, above, model.orientation).orientation);
    }
    this.draw();
  }

  #touchPixels({ canvas }: Tile, numbers: readonly number[], level: number, part: Orientation): void {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null) return;
    for (const number of numbers) {
      const { x, y } = squareOf(Math.floor(number / 4 ** level) % 4 ** 8, 8, part);
      const pixel = this.#painter?.pixelAt(Math.floor(number / 4 ** level) * 4 ** level, level) ?? 0;
      context.fillStyle = `rgb(${pixel & 0xff} ${(pixel >>> 8) & 0xff} ${(pixel >>> 16) & 0xff})`;
      context.fillRect(x, y, 1, 1);
    }
  }

  /** Moves so that the block fills the view. */
  fit({ first, bits }: Block): void {
    const model = this.#model;
    if (model === undefined) return;
    const level = Math.ceil(bits / 2);
    const { x, y } = squareOf(Math.floor(first / 4 ** level), model.levels - level, model.orientation);
    const side = 2 ** level;
    const [wide, high] = this.#gridOf(model);
    const [width, height] = side > Math.min(wide, high) ? [wide, high] : [side, side];
    const { width: across, height: down } = this.#canvas;
    this.#scale = this.#limit(Math.min(across / width, down / height) * 0.96);
    this.#x = x * side + width / 2 - across / this.#scale / 2;
    this.#y = y * side + height / 2 - down / this.#scale / 2;
    this.#moved();
  }

  /** Moves so that these runs of addresses fill the view, if they are a small part of the map. */
  fitRuns(runs: readonly (readonly [first: number, last: number])[]): void {
    const model = this.#model;
    if (model === undefined || runs.length === 0 || runs.length > MAX_RUNS) return;
    const box = boxOf(runs, model.levels, model.orientation);
    const side = Math.max(box.right - box.left, box.bottom - box.top, MIN_SIDE);
    if (side > Math.min(...this.#gridOf(model)) / 2) return;
    const { width: across, height: down } = this.#canvas;
    this.#scale = this.#limit((Math.min(across, down) / side) * 0.96);
    this.#x = (box.left + box.right) / 2 - across / this.#scale / 2;
    this.#y = (box.top + box.bottom) / 2 - down / this.#scale / 2;
    this.#moved();
  }

  /** The largest aligned block whose middle is the view's, and that the view does not exceed much. */
  get block(): Block {
    const model = this.#model;
    if (model === undefined) return { first: 0, bits: 0 };
    const side = Math.min(this.#canvas.width, this.#canvas.height) / this.#scale;
    const level = Math.max(0, Math.min(model.levels, Math.round(Math.log2(side))));
    const bits = 2 * level;
    const number = this.#numberAt(this.#canvas.width / 2, this.#canvas.height / 2) ?? 0;
    if (2 ** bits >= model.size) return { first: 0, bits: Math.ceil(Math.log2(Math.max(1, model.size))) };
    return { first: Math.floor(number / 4 ** level) * 4 ** level, bits };
  }

  /** Zooms by a factor at a point of the canvas; default: its middle. */
  zoom(factor: number, x = this.#canvas.width / 2, y = this.#canvas.height / 2): void {
    const scale = this.#limit(this.#scale * factor);
    this.#x += x / this.#scale - x / scale;
    this.#y += y / this.#scale - y / scale;
    this.#scale = scale;
    this.#moved();
  }

  /** Moves by parts of the view. */
  pan(across: number, down: number): void {
    this.#x += (across * this.#canvas.width) / this.#scale;
    this.#y += (down * this.#canvas.height) / this.#scale;
    this.#moved();
  }

  /** Draws with the next frame. */
  draw(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.drawNow();
    });
  }

  /** Draws at once. */
  drawNow(): void {
    const context = this.#context;
    const model = this.#model;
    context.fillStyle = `#${this.#palette.empty.toString(16).padStart(6, "0")}`;
    context.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
    if (model === undefined) return;
    const coarsest = coarsestOf(model);
    const wanted = Math.floor(-Math.log2(this.#scale) + 0.01);
    const level = Math.max(DEEPEST, Math.min(coarsest, wanted));
    const cells = TILE * 2 ** level;
    const size = cells * this.#scale;
    context.imageSmoothingEnabled = size < TILE;
    const until = performance.now() + (this.#isFirst ? 0 : PAINT_MS);
    this.#isFirst = false;
    let isComplete = true;
    const tiles = [...this.#tilesInView(cells)];
    // With the coarsest one.
    this.#room = Math.max(KEPT_TILES, tiles.length + 1);
    for (const { x, y } of tiles) {
      const left = Math.round((x * cells - this.#x) * this.#scale);
      const top = Math.round((y * cells - this.#y) * this.#scale);
      const right = Math.round(((x + 1) * cells - this.#x) * this.#scale);
      const bottom = Math.round(((y + 1) * cells - this.#y) * this.#scale);
      const shown = performance.now() >= until ? this.#findShown(level, x, y, coarsest) : undefined;
      const tile = this.#tile(level, x, y, shown !== undefined);
      const place = [left, top, right - left, bottom - top] as const;
      if (tile !== undefined) context.drawImage(tile.canvas, ...place);
      else if (shown !== undefined) context.drawImage(shown.tile.canvas, ...partOf(shown.up, x, y), ...place);
      if (tile === undefined || tile.isStale) isComplete = false;
    }
    this.#drawOver(model);
    if (!isComplete) this.draw();
  }

  #drawOver(model: MapModel): void {
    const { width, height, clientWidth } = this.#canvas;
    const ratio = width / Math.max(1, clientWidth);
    const isDark = this.#palette.empty < 0x80_00_00;
    const sight = { x: this.#x, y: this.#y, scale: this.#scale, width, height, ratio, isDark };
    this.#quarantined ??= findQuarantined(model);
    drawPrefixes(this.#context, model, sight);
    drawRings(this.#context, model, sight, this.#quarantined);
    if (this.#chosen !== undefined) drawChosen(this.#context, model, sight, this.#chosen);
  }

  *#tilesInView(cells: number): Generator<{ readonly x: number; readonly y: number }> {
    const model = this.#model;
    if (model === undefined) return;
    const [wide, high] = this.#gridOf(model);
    const last = (end: number, all: number) => Math.min(Math.ceil(end / cells), Math.ceil(all / cells));
    const [right, bottom] = [
      last(this.#x + this.#canvas.width / this.#scale, wide),
      last(this.#y + this.#canvas.height / this.#scale, high),
    ];
    for (let y = Math.max(0, Math.floor(this.#y / cells)); y < bottom; y++) {
      for (let x = Math.max(0, Math.floor(this.#x / cells)); x < right; x++) yield { x, y };
    }
  }

  /** Returns the tile; an unpainted or stale one unchanged if there is no time. */
  #tile(level: number, x: number, y: number, isLate: boolean): Tile | undefined {
    const key = `${level}/${x}/${y}`;
    const known = this.#tiles.get(key);
    if (known !== undefined && (!known.isStale || isLate)) {
      this.#tiles.delete(key);
      this.#tiles.set(key, known);
      return known;
    }
    if (known === undefined && isLate) return undefined;
    const tile = known ?? this.#takeTile();
    this.#painter?.paint(this.#pixels, level, x, y);
    tile.canvas.getContext("2d", { alpha: false })?.putImageData(this.#image, 0, 0);
    tile.isStale = false;
    this.#tiles.delete(key);
    this.#tiles.set(key, tile);
    return tile;
  }

  /** Returns a new tile, or the least recently used one if there are enough. */
  #takeTile(): Tile {
    const [oldest] = this.#tiles;
    if (oldest === undefined || this.#tiles.size < this.#room) {
      return { canvas: new OffscreenCanvas(TILE, TILE), isStale: false };
    }
    this.#tiles.delete(oldest[0]);
    return oldest[1];
  }

  /** Returns the tile, which may be stale, else a coarser one, `up` levels above. */
  #findShown(level: number, x: number, y: number, coarsest: number) {
    for (let up = 0; level + up <= coarsest && up <= 8; up++) {
      const tile = this.#tiles.get(`${level + up}/${x >> up}/${y >> up}`);
      if (tile !== undefined) return { tile, up };
    }
    return undefined;
  }

  /**
   * Squares in a row and in a column of the smallest block that has all addresses: a square, or two beside or below
   * one another.
   */
  #gridOf({ levels, size, orientation }: MapModel): readonly [number, number] {
    const bits = Math.ceil(Math.log2(Math.max(1, size)));
    const side = 2 ** Math.floor(bits / 2);
    if (bits % 2 === 0) return [side, side];
    return squareOf(side * side, levels, orientation).x === 0 ? [side, 2 * side] : [2 * side, side];
  }

  #limit(scale: number): number {
    const model = this.#model;
    if (model === undefined) return scale;
    const whole = Math.min(this.#canvas.width, this.#canvas.height) / 2 ** model.levels;
    return Math.max(Math.min(whole / 2, MAX_SCALE), Math.min(MAX_SCALE, scale));
  }

  #moved(): void {
    const model = this.#model;
    if (model === undefined) return;
    // The middle of the view stays on the map.
    const [wide, high] = this.#gridOf(model);
    const [halfX, halfY] = [this.#canvas.width / this.#scale / 2, this.#canvas.height / this.#scale / 2];
    this.#x = Math.min(Math.max(this.#x, -halfX), wide - halfX);
    this.#y = Math.min(Math.max(this.#y, -halfY), high - halfY);
    this.draw();
    this.#events.onMove();
  }

  #resize(): void {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.#canvas;
    const [width, height] = [
      Math.max(1, Math.round(clientWidth * ratio)),
      Math.max(1, Math.round(clientHeight * ratio)),
    ];
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    const { block } = this;
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.fit(block);
  }

  #numberAt(x: number, y: number): number | undefined {
    const model = this.#model;
    if (model === undefined) return undefined;
    const [column, row] = [Math.floor(this.#x + x / this.#scale), Math.floor(this.#y + y / this.#scale)];
    const side = 2 ** model.levels;
    if (column < 0 || row < 0 || column >= side || row >= side) return undefined;
    const number = numberAt(column, row, model.levels, model.orientation);
    return number < model.size ? number : undefined;
  }

  #pointOf({ offsetX, offsetY }: MouseEvent): { x: number; y: number } {
    const ratio = this.#canvas.width / Math.max(1, this.#canvas.clientWidth);
    return { x: offsetX * ratio, y: offsetY * ratio };
  }

  #listen(): void {
    const canvas = this.#canvas;
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const { x, y } = this.#pointOf(event);
        this.zoom(2 ** (-event.deltaY / 240), x, y);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, this.#pointOf(event));
      if (this.#pointers.size === 1) this.#isDrag = false;
    });
    canvas.addEventListener("pointermove", (event) => this.#movePointer(event));
    for (const end of ["pointerup", "pointercancel"] as const) {
      canvas.addEventListener(end, (event) => {
        const isClick = this.#pointers.size === 1 && !this.#isDrag && end === "pointerup";
        this.#pointers.delete(event.pointerId);
        const { x, y } = this.#pointOf(event);
        const number = isClick ? this.#numberAt(x, y) : undefined;
        if (number !== undefined) this.#events.onChoose(number);
      });
    }
    canvas.addEventListener("pointerleave", () => this.#events.onHover(undefined));
    canvas.addEventListener("dblclick", (event) => {
      const { x, y } = this.#pointOf(event);
      this.zoom(4, x, y);
    });
    canvas.addEventListener("keydown", (event) => this.#press(event));
  }

  #movePointer(event: PointerEvent): void {
    const now = this.#pointOf(event);
    const before = this.#pointers.get(event.pointerId);
    if (before === undefined) {
      this.#events.onHover(this.#numberAt(now.x, now.y));
      return;
    }
    const [dx, dy] = [now.x - before.x, now.y - before.y];
    if (!this.#isDrag && Math.hypot(dx, dy) < 4) return;
    this.#isDrag = true;
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.#pointers.set(event.pointerId, now);
    if (other !== undefined) {
      const [far, was] = [
        Math.hypot(now.x - other.x, now.y - other.y),
        Math.hypot(before.x - other.x, before.y - other.y),
      ];
      this.zoom(far / Math.max(1, was), other.x, other.y);
      return;
    }
    this.#x -= dx / this.#scale;
    this.#y -= dy / this.#scale;
    this.#moved();
  }

  #press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const moves: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => this.pan(-0.2, 0),
      ArrowRight: () => this.pan(0.2, 0),
      ArrowUp: () => this.pan(0, -0.2),
      ArrowDown: () => this.pan(0, 0.2),
      "+": () => this.zoom(2),
      "=": () => this.zoom(2),
      "-": () => this.zoom(0.5),
      Home: () => this.#model && this.fit({ first: 0, bits: 2 * this.#model.levels }),
      Enter: () => {
        const number = this.#numberAt(this.#canvas.width / 2, this.#canvas.height / 2);
        if (number !== undefined) this.#events.onChoose(number);
      },
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  }
}
