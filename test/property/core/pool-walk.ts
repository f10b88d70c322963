/**
 * Random walks: every operation is done on the core (through the ABI) and on the model, and must give the same.
 * Effects: none outside its instances.
 */
import { expect } from "vitest";
import type { Seeded } from "../../world/seeded.ts";
import { NONE, OUTSIDE, PoolPair } from "./pool-pair.ts";
import { type Build, bytesOf, joinBytes, numberOf } from "./raw-core.ts";
import type { Shape } from "./shapes.ts";

export class PoolWalk {
  readonly #pair: PoolPair;
  operations = 0;

  constructor(build: Build, shape: Shape, random: Seeded) {
    this.#pair = new PoolPair(build, shape, random);
  }

  /** Everything that the core remembers now. */
  state(): Uint8Array {
    return this.#pair.core.state();
  }

  /** Does so many operations, and compares everything now and then. */
  run(operations: number): void {
    const target = this.operations + operations;
    while (this.operations < target) {
      const roll = this.#pair.random.u32() / 2 ** 32;
      if (roll < 0.55) this.#byAddress();
      else if (roll < 0.7) this.#byOrdinal();
      else if (roll < 0.9) this.#allocate();
      else if (roll < 0.93) this.#batch();
      else if (roll < 0.96) this.#wide();
      else if (roll < 0.985) this.#runs();
      else if (roll < 0.995) this.#pair.inventory();
      else this.#pair.reshape();
      this.operations++;
    }
    this.#pair.inventory();
  }

  #byAddress(): void {
    const address = this.#pair.address();
    const operation = this.#pair.random.pick(["claim", "claim", "release", "test", "contains"]);
    this.#pair.core.put(bytesOf(address, this.#pair.width));
    const got = this.#pair.core.call(`pool_${operation}`, this.#pair.pool);
    this.#pair.check(`${operation} ${address}`, got, this.#pair.expected(operation, address));
    if (operation === "claim" && got === 1) this.#pair.remember(address);
  }

  #byOrdinal(): void {
    const ordinal = this.#pair.ordinal();
    const operation = this.#pair.random.pick(["claim", "release", "test"]);
    const got = this.#pair.core.call(`pool_${operation}_at`, this.#pair.pool, ordinal | 0);
    if (ordinal >= this.#pair.model.window) {
      this.#pair.check(`${operation} at ${ordinal}`, got, OUTSIDE);
      return;
    }
    const address = this.#pair.model.addressOf(BigInt(ordinal));
    this.#pair.check(`${operation} at ${ordinal}`, got, this.#pair.expected(operation, address));
    this.#pair.core.put(bytesOf(0n, this.#pair.width));
    this.#pair.check("address", this.#pair.core.call("pool_address", this.#pair.pool, ordinal), 0);
    this.#pair.check("address", numberOf(this.#pair.core.take(this.#pair.width)), address);
    this.#pair.check("ordinal", this.#pair.core.call("pool_ordinal", this.#pair.pool), ordinal);
  }

  /** Policy, argument and the ordinal that the model would take next. */
  #policy(): { policy: number; argument: number; next: () => number | undefined } {
    const model = this.#pair.model;
    const policy = this.#pair.random.below(model.freed === undefined ? 3 : 4);
    const argument = this.#pair.random.u32();
    const starts = [
      () => model.find(0),
      () => model.find(model.cursor),
      () => model.find(argument),
      () => model.takeFreed(),
    ];
    return { policy, argument, next: starts[policy] ?? (() => undefined) };
  }

  #took(policy: number, ordinal: number): bigint {
    const address = this.#pair.model.addressOf(BigInt(ordinal));
    this.#pair.model.claim(address);
    if (policy === 1) this.#pair.model.cursor = ordinal + 1;
    this.#pair.remember(address);
    return address;
  }

  #allocate(): void {
    const { policy, argument, next } = this.#policy();
    if (this.#pair.random.chance(0.3)) {
      const found = this.#pair.core.call("pool_find", this.#pair.pool, argument | 0);
      this.#pair.check(`find ${argument}`, found, this.#pair.model.find(argument) ?? NONE);
      return;
    }
    const wanted = next();
    const got = this.#pair.core.call("pool_allocate", this.#pair.pool, policy, argument | 0);
    this.#pair.check(`allocate ${policy} ${argument}`, got, wanted ?? NONE);
    if (wanted !== undefined) this.#took(policy, wanted);
  }

  #batch(): void {
    if (this.#pair.random.chance(0.5)) {
      this.#allocateMany();
      return;
    }
    const operation = this.#pair.random.pick(["claim", "release", "test", "contains"]);
    const addresses = Array.from({ length: this.#pair.random.below(40) }, () => this.#pair.address());
    this.#pair.core.put(joinBytes(addresses.map((address) => bytesOf(address, this.#pair.width))));
    const done = this.#pair.core.call(`pool_${operation}_many`, this.#pair.pool, addresses.length);
    const wanted = addresses.map((address) => this.#pair.expected(operation, address));
    this.#pair.check(`${operation} many`, done, wanted.filter((result) => result === 1).length);
    expect([...this.#pair.core.take(addresses.length)]).toEqual(wanted.map((result) => result & 255));
  }

  #allocateMany(): void {
    const { policy, argument, next } = this.#policy();
    const count = this.#pair.random.below(this.#pair.random.chance(0.1) ? 300 : 70);
    const got = this.#pair.core.call("pool_allocate_many", this.#pair.pool, policy, argument | 0, count);
    const taken = this.#pair.core.take(Math.max(0, got) * this.#pair.width);
    let from = policy === 2 ? argument : undefined;
    for (let index = 0; index < count; index++) {
      const wanted = from === undefined ? next() : this.#pair.model.find(from);
      if (wanted === undefined) {
        this.#pair.check("allocate many", got, index);
        return;
      }
      const address = this.#took(policy, wanted);
      const bytes = taken.subarray(index * this.#pair.width, (index + 1) * this.#pair.width);
      this.#pair.check(
        `allocate many ${policy}, item ${index}`,
        bytes.length > 0 ? numberOf(bytes) : undefined,
        address,
      );
      if (from !== undefined) from = wanted + 1;
    }
    this.#pair.check("allocate many", got, count);
  }

  #wide(): void {
    const seed = this.#pair.random.belowBig(1n << 128n);
    this.#pair.core.put(bytesOf(seed, 16));
    const wanted = this.#pair.model.findWide(seed);
    this.#pair.check(
      `find wide ${seed}`,
      this.#pair.core.call("pool_find_wide", this.#pair.pool),
      wanted === undefined ? NONE : 0,
    );
    if (wanted === undefined) return;
    this.#pair.check(`find wide ${seed}`, numberOf(this.#pair.core.take(this.#pair.width)), wanted);
    this.#pair.check(
      "claim",
      this.#pair.core.call("pool_claim", this.#pair.pool),
      Number(this.#pair.model.claim(wanted)),
    );
    this.#pair.remember(wanted);
  }

  #runs(): void {
    if (this.#pair.model.window === 0) {
      this.#pair.check("find run", this.#pair.core.call("pool_find_run", this.#pair.pool, 0, 1, 0), NONE);
      return;
    }
    const count = 1 + this.#pair.random.below(this.#pair.random.chance(0.2) ? 200 : 20);
    const alignBits = this.#pair.random.below(this.#pair.random.chance(0.1) ? 14 : 6);
    const start = this.#pair.random.u32();
    if (this.#pair.model.window <= 5000) {
      const found = this.#pair.core.call("pool_find_run", this.#pair.pool, start | 0, count, alignBits);
      this.#pair.check(
        `find run ${start} ${count} ${alignBits}`,
        found,
        this.#pair.model.findRun(start, count, alignBits) ?? NONE,
      );
    }
    const first = this.#pair.ordinal();
    const operation = this.#pair.random.pick(["claim", "release"]);
    const got = this.#pair.core.call(`pool_${operation}_run`, this.#pair.pool, first | 0, count);
    if (first + count > this.#pair.model.window) {
      this.#pair.check(`${operation} run`, got, OUTSIDE);
      return;
    }
    const addresses = Array.from({ length: count }, (_, offset) => this.#pair.model.addressOf(BigInt(first + offset)));
    if (operation === "release") {
      const released = addresses.filter((address) => this.#pair.model.release(address)).length;
      this.#pair.check("release run", got, released);
      return;
    }
    const free = addresses.every((address) => this.#pair.model.isFree(address));
    this.#pair.check(`claim run ${first} ${count}`, got, Number(free));
    if (free) for (const address of addresses) this.#pair.model.claim(address);
  }
}
