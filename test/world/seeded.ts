/** Repeatable chance: the same seed gives the same walk. */

export class Seeded {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** Any 32-bit unsigned number (mulberry32). */
  u32(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor((this.u32() / 2 ** 32) * limit);
  }

  chance(probability: number): boolean {
    return this.u32() < probability * 2 ** 32;
  }

  /** 0 to `limit` - 1, for limits up to 2^128. */
  belowBig(limit: bigint): bigint {
    const wide =
      (BigInt(this.u32()) << 96n) | (BigInt(this.u32()) << 64n) | (BigInt(this.u32()) << 32n) | BigInt(this.u32());
    return ((wide << 32n) | BigInt(this.u32())) % limit;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }
}
