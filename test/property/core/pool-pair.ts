/** A pool of the core beside its model: the next step, the model's expectation, and everything compared at once. */
import { expect } from "vitest";
import type { Seeded } from "../../world/seeded.ts";
import { holdsAddress, PoolModel, type Span } from "./pool-model.ts";
import { type Build, bytesOf, joinBytes, numberOf, RawCore } from "./raw-core.ts";
import { randomSpans, type Shape } from "./shapes.ts";

export const OUTSIDE = -8;
export const NONE = -9;

export function putSpans(core: RawCore, family: 4 | 6, spans: readonly Span[]): number {
  const width = family === 4 ? 4 : 16;
  core.put(joinBytes(spans.flatMap(([first, last]) => [bytesOf(first, width), bytesOf(last, width)])));
  return core.call("set_create", family, spans.length);
}

export class PoolPair {
  core: RawCore;
  readonly random: Seeded;
  readonly width: number;
  readonly model: PoolModel;
  pool: number;
  readonly #build: Build;
  readonly #family: 4 | 6;
  readonly #recent: bigint[] = [];

  constructor(build: Build, shape: Shape, random: Seeded) {
    this.core = new RawCore(build);
    this.random = random;
    this.width = shape.family === 4 ? 4 : 16;
    this.model = new PoolModel(shape.ranges, shape.masks);
    this.#build = build;
    this.#family = shape.family;
    this.pool = this.#withSets(shape.ranges, shape.masks, (r, m) => this.core.call("pool_create", r, m));
    expect(this.pool).toBeGreaterThan(0);
    if (this.model.window <= 5000 && random.chance(0.5)) this.#track();
  }

  check(what: string, got: unknown, wanted: unknown): void {
    if (Object.is(got, wanted)) return; // expect() takes microseconds
    expect(got, what).toEqual(wanted);
  }

  #withSets(ranges: readonly Span[], masks: readonly Span[], use: (r: number, m: number) => number): number {
    const r = putSpans(this.core, this.#family, ranges);
    const m = putSpans(this.core, this.#family, masks);
    const result = use(r, m);
    for (const set of [r, m]) this.check("drop", this.core.call("drop", set), 0);
    return result;
  }

  #track(): void {
    this.check("track", this.core.call("pool_track_freed", this.pool), 0);
    this.model.freed ??= [];
  }

  /** An address to try: recent, inside, or at and past the ends of a range. */
  address(): bigint {
    const random = this.random;
    if (this.#recent.length > 0 && random.chance(0.5)) return random.pick(this.#recent);
    const last = (1n << BigInt(8 * this.width)) - 1n;
    if (this.model.ranges.length === 0 || random.chance(0.02)) return random.belowBig(last + 1n);
    const range = random.pick(this.model.ranges);
    if (random.chance(0.1)) {
      const near = random.pick(range) + BigInt(random.below(5) - 2);
      return near < 0n ? 0n : near > last ? last : near;
    }
    const span = range[1] - range[0] + 1n;
    return range[0] + random.belowBig(random.chance(0.3) && span > 200n ? 200n : span);
  }

  remember(address: bigint): void {
    if (this.#recent.length < 400) this.#recent.push(address);
    else this.#recent[this.random.below(400)] = address;
  }

  /** Returns the model's answer to one of the four operations. */
  expected(operation: string, address: bigint): number {
    if (operation === "contains") return Number(this.model.contains(address));
    if (this.model.ordinalOf(address) === undefined) return OUTSIDE;
    if (operation === "test") return Number(this.model.used.has(address));
    return Number(operation === "claim" ? this.model.claim(address) : this.model.release(address));
  }

  ordinal(): number {
    const window = this.model.window;
    const near = this.random.pick([0, 63, 64, 4095, 4096, 1 << 18, window - 1, window]) + this.random.below(3) - 1;
    return this.random.chance(0.1) ? near >>> 0 : this.random.below(window + 1);
  }

  /** Counts, the set of used addresses, and a snapshot into a clone. */
  inventory(): void {
    const model = this.model;
    this.check("counts", this.core.call("pool_counts", this.pool), 72);
    const view = new DataView(this.core.take(72).buffer);
    const inWindow = [...model.used].filter(
      (address) => (model.ordinalOf(address) ?? 0n) < BigInt(model.window),
    ).length;
    const masked = [...model.used].filter((address) => holdsAddress(model.masks, address)).length;
    const numbers = [36, 40, 44, 48].map((at) => view.getUint32(at, true));
    expect(numbers).toEqual([model.window, model.used.size, masked, model.used.size - inWindow]);
    this.check("size", numberOf(new Uint8Array(view.buffer, 0, 17)), model.size);
    const used = this.core.call("pool_used", this.pool);
    const count = this.core.call("set_ranges", used);
    const spans = model.usedSpans();
    this.check("used ranges", count, spans.length);
    const bytes = this.core.take(count * 2 * this.width);
    const wanted = joinBytes(spans.flatMap((span) => span.map((end) => bytesOf(end, this.width))));
    this.check("used", Buffer.compare(bytes, wanted), 0);
    this.check("drop", this.core.call("drop", used), 0);
  }

  reshape(): void {
    const roll = this.random.below(4);
    if (roll === 0) {
      this.#saveAndLoad();
      return;
    }
    if (roll === 1) {
      this.core = this.core.clone(this.#build);
      return;
    }
    const model = this.model;
    const scale = model.size > 0n && model.size < 1n << 26n ? model.size : 1n << 12n;
    const extra = randomSpans(this.random, this.#family, scale < 4n ? 4n : scale, 5);
    const kept = model.ranges.filter(() => this.random.chance(0.9));
    const ranges = this.random.chance(0.3) ? model.ranges : [...kept, ...extra];
    const masks = this.random.chance(0.5) ? model.masks : [...model.masks.slice(1), ...extra.slice(1)];
    const edit = (r: number, m: number) => this.core.call("pool_edit", this.pool, r, m);
    this.check("edit", this.#withSets(ranges, masks, edit), 0);
    model.edit(ranges, masks);
    if (model.window > 5000 && model.freed !== undefined) this.#untrack();
  }

  /** The model's order of release is too slow for large pools: goes on with a pool that does not track it. */
  #untrack(): void {
    const length = this.core.call("pool_save", this.pool);
    const bytes = this.core.take(length);
    const ranges = this.core.call("pool_ranges", this.pool);
    const masks = this.core.call("pool_masks", this.pool);
    this.check("drop", this.core.call("drop", this.pool), 0);
    this.pool = this.core.call("pool_create", ranges, masks);
    for (const set of [ranges, masks]) this.check("drop", this.core.call("drop", set), 0);
    this.core.put(bytes);
    this.check("load", this.core.call("pool_load", this.pool, length), 0);
    this.model.freed = undefined;
  }

  #saveAndLoad(): void {
    const length = this.core.call("pool_save", this.pool);
    const saved = this.core.take(length);
    for (let address = 0; address < 5; address++) this.#byAddressOnCoreOnly();
    this.core.put(saved);
    this.check("load", this.core.call("pool_load", this.pool, length), 0);
    this.check("save again", this.core.call("pool_save", this.pool), length);
    this.check("save again", Buffer.compare(this.core.take(length), saved), 0);
    if (this.model.freed !== undefined) this.model.freed = [];
  }

  /** Disorder that the load must undo. */
  #byAddressOnCoreOnly(): void {
    this.core.put(bytesOf(this.address(), this.width));
    this.core.call(this.random.pick(["pool_claim", "pool_release"]), this.pool);
  }
}
