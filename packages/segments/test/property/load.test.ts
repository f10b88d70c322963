/**
 * How many blocks a pool leases and returns under a load, and how long pods wait: the product's plan, a hub with enough
 * blocks for the share, and a clock.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BLOCK_WAIT_MS } from "../../../../host/agent/request/add-deadline.ts";
import type { BlockState } from "../../../../host/resources/pool-source.ts";
import { Seeded } from "../../../../test/world/seeded.ts";
import { planBlocks, REST_MS } from "../../controllers/plan-blocks.ts";

const PASS_MS = 15_000;
const HOUR_MS = 3_600_000;

interface Block {
  readonly name: string;
  state: BlockState;
  sinceMs: number;
  used: number;
}

/** Agents avoid drained blocks while there are others. */
const PREFERENCE: readonly (readonly BlockState[])[] = [["New", "Active"], ["Draining"]];

class LeasingPool {
  readonly size: number;
  readonly share: number;
  readonly #chance: Seeded;
  blocks: Block[] = [];
  nowMs = 0;
  /** When each block was leased. */
  readonly leasesMs: number[] = [];
  /** When each pod began to wait that waits. */
  waiting: number[] = [];
  longestWaitMs = 0;
  #serial = 0;
  #marking = 0;
  #surplusSinceMs: number | undefined;

  constructor({ size, share, seed }: { readonly size: number; readonly share: number; readonly seed: number }) {
    this.size = size;
    this.share = share;
    this.#chance = new Seeded(seed);
  }

  get load(): number {
    return this.waiting.length + this.blocks.reduce((sum, { used }) => sum + used, 0);
  }

  /** Pods come, or go from anywhere; time passes. */
  step(load: number): void {
    let change = load - this.load;
    for (; change < 0 && this.waiting.length > 0; change++) this.waiting.pop();
    while (change < 0) {
      const block = this.blocks[this.#chance.below(this.blocks.length)];
      if (block === undefined || block.used === 0) continue;
      block.used--;
      change++;
    }
    for (; change > 0; change--) this.waiting.push(this.nowMs);
    this.#place();
    // Each ADD marks the pool when it begins to wait, which wakes the controller.
    this.#marking = this.waiting.filter((sinceMs) => (this.nowMs - sinceMs) % BLOCK_WAIT_MS === 0).length;
    this.#pass();
    this.#place();
    this.nowMs += PASS_MS;
  }

  #place(): void {
    const [first = this.nowMs] = this.waiting;
    this.longestWaitMs = Math.max(this.longestWaitMs, this.nowMs - first);
    for (const states of PREFERENCE) {
      let from: Block[] = this.blocks.filter(({ state }) => states.includes(state));
      while (this.waiting.length > 0 && from.length > 0) {
        const block = this.#chance.pick(from);
        if (block.used < this.size) {
          block.used++;
          this.waiting.shift();
        } else from = from.filter(({ used }) => used < this.size);
      }
    }
  }

  #pass(): void {
    const { nowMs, size } = this;
    const byName = new Map(this.blocks.map((each) => [each.name, each]));
    const find = (name: string): Block => byName.get(name) as Block;
    const { blocks, giveBack, wants, isSurplus } = planBlocks({
      known: this.blocks.map(({ name, state, sinceMs }) => ({ block: name, state, ageMs: nowMs - sinceMs })),
      leased: this.blocks.map(({ name }) => name),
      ...{ isContested: false, isDisputed: () => false, mayReturn: true },
      isUsed: (name) => find(name).used > 0,
      isEmpty: (name) => find(name).used === 0,
      freeOf: (name) => size - find(name).used,
      ...{ size, isWanted: this.#marking > 0, waiting: this.#marking },
      surplusMs: this.#surplusSinceMs === undefined ? 0 : nowMs - this.#surplusSinceMs,
    });
    this.#surplusSinceMs = isSurplus ? (this.#surplusSinceMs ?? nowMs) : undefined;
    this.blocks = blocks
      .filter(({ block }) => !giveBack.includes(block))
      .map(({ block, state }) => {
        const before = find(block);
        return { ...before, state, sinceMs: before.state === state ? before.sinceMs : nowMs };
      });
    const count = Math.min(wants, this.share - this.blocks.length);
    for (let at = 0; at < count; at++) {
      this.blocks.push({ name: `b${this.#serial++}`, state: "Resting", sinceMs: nowMs, used: 0 });
      this.leasesMs.push(nowMs);
    }
  }
}

const sizes = fc.constantFrom(8, 16, 64);
const seeds = fc.integer({ min: 1, max: 2 ** 31 });

describe("a pool that leases ahead", () => {
  it("lets no pod of a steady growth wait", () => {
    // Within a rest and the passes around it, at most as many blocks as are leased ahead.
    const rates = fc.double({ min: 0.01, max: 1, noNaN: true });
    fc.assert(
      fc.property(sizes, rates, seeds, (size, rate, seed) => {
        const pool = new LeasingPool({ size, share: 200, seed });
        for (let at = 0; at < 10; at++) pool.step(0);
        const perPass = (rate * size) / (REST_MS / PASS_MS + 2);
        for (let at = 0; at < 400 && pool.blocks.length < 190; at++) {
          pool.step(Math.floor(at * perPass));
          expect(pool.longestWaitMs).toBe(0);
        }
      }),
      { numRuns: 30 },
    );
  });

  it("has every pod of a sudden load served after a few doublings, while its share has free blocks", () => {
    fc.assert(
      fc.property(sizes, fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 12 }), seeds, (size, loads, seed) => {
        const pool = new LeasingPool({ size, share: 2_048, seed });
        for (const load of loads) for (let at = 0; at < 40; at++) pool.step(load);
        // Each time it is found exhausted it doubles.
        const doublings = Math.ceil(Math.log2(400 / size)) + 1;
        expect(pool.longestWaitMs).toBeLessThanOrEqual((BLOCK_WAIT_MS + PASS_MS) * Math.max(1, doublings));
      }),
      { numRuns: 30 },
    );
  });
});

it("an ADD waits for a block that begins to rest at the next pass", () =>
  expect(BLOCK_WAIT_MS).toBeGreaterThanOrEqual(REST_MS + PASS_MS));

describe("an oscillating load", () => {
  const waves = fc.record({
    ...{ size: sizes, low: fc.integer({ min: 0, max: 50 }), rise: fc.integer({ min: 1, max: 150 }) },
    ...{ seed: seeds, isSudden: fc.boolean() },
  });
  type Wave = typeof waves extends fc.Arbitrary<infer Each> ? Each : never;

  /** Returns when blocks were leased after the first two waves. */
  function leasesOf({ size, low, rise, seed, isSudden }: Wave, periodMs: number, hours: number): number[] {
    const pool = new LeasingPool({ size, share: 2_048, seed });
    const startMs = 2 * periodMs + 2 * HOUR_MS;
    while (pool.nowMs < startMs + hours * HOUR_MS) {
      const phase = (pool.nowMs % periodMs) / periodMs;
      const height = isSudden ? Number(phase >= 0.5) : 1 - Math.abs(2 * phase - 1);
      pool.step(Math.round(low + rise * height));
    }
    return pool.leasesMs.filter((atMs) => atMs >= startMs);
  }

  it("leases at most once an hour, whatever its height", () => {
    const periods = fc.integer({ min: 2, max: 120 }).map((minutes) => minutes * 60_000);
    fc.assert(
      fc.property(waves, periods, (wave, periodMs) => {
        const leases = leasesOf(wave, periodMs, 8);
        for (const [at, leasedMs] of leases.entries())
          if (at > 0) expect(leasedMs - (leases[at - 1] as number)).toBeGreaterThanOrEqual(HOUR_MS);
      }),
      { numRuns: 10 },
    );
  });

  it("leases at most once an hour on average, however slow it is", () => {
    const periods = fc.integer({ min: 2, max: 12 }).map((hours) => hours * HOUR_MS);
    fc.assert(
      fc.property(waves, periods, (wave, periodMs) => {
        expect(leasesOf(wave, periodMs, 24).length).toBeLessThanOrEqual(24 + periodMs / HOUR_MS);
      }),
      { numRuns: 10 },
    );
  });
});
