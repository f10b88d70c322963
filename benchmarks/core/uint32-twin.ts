/**
 * What one would write in JavaScript instead of the core: a 32-ary hierarchical bitmap on Uint32Array, for one pool
 * without masks, without checks of handles and arguments.
 * Effects: none outside itself.
 */

const ALL = 0xffffffff;

export class Uint32Twin {
  /** Level 0 has the used bits; a bit of level n + 1 says that a word of level n is full. */
  readonly #levels: Uint32Array[] = [];
  readonly #size: number;

  constructor(bits: number) {
    this.#size = 2 ** bits;
    for (let count = this.#size; ; ) {
      const words = Math.ceil(count / 32);
      const level = new Uint32Array(words);
      if (count % 32 !== 0) level[words - 1] = (ALL << (count % 32)) >>> 0;
      this.#levels.push(level);
      if (words === 1) return;
      count = words;
    }
  }

  test(ordinal: number): boolean {
    return (((this.#levels[0]?.[ordinal >>> 5] ?? 0) >>> (ordinal & 31)) & 1) !== 0;
  }

  claim(ordinal: number): boolean {
    if (this.test(ordinal)) return false;
    let bit = ordinal;
    for (const level of this.#levels) {
      const word = (level[bit >>> 5] ?? 0) | (1 << (bit & 31));
      level[bit >>> 5] = word;
      if (word >>> 0 !== ALL) break;
      bit >>>= 5;
    }
    return true;
  }

  release(ordinal: number): boolean {
    if (!this.test(ordinal)) return false;
    let bit = ordinal;
    for (const level of this.#levels) {
      const word = level[bit >>> 5] ?? 0;
      level[bit >>> 5] = word & ~(1 << (bit & 31));
      if (word !== ALL) break;
      bit >>>= 5;
    }
    return true;
  }

  /** The first free ordinal at or after `start` modulo the size, wrapping once; -1 when there is none. */
  find(start: number): number {
    const found = this.#findFrom(start & (this.#size - 1));
    return found >= 0 ? found : this.#findFrom(0);
  }

  #findFrom(start: number): number {
    let bit = start;
    for (let height = 0; height < this.#levels.length; height++) {
      const level = this.#levels[height] as Uint32Array;
      const word = bit >>> 5;
      if (word >= level.length) return -1;
      const free = ~(level[word] as number) & (ALL << (bit & 31));
      if (free !== 0) return this.#descend(height, (word << 5) | (31 - Math.clz32(free & -free)));
      bit = word + 1;
    }
    return -1;
  }

  /** The first free ordinal below bit `bit` of level `height`, which is clear. */
  #descend(height: number, bit: number): number {
    let at = bit;
    for (let level = height - 1; level >= 0; level--) {
      const free = ~((this.#levels[level] as Uint32Array)[at] as number);
      at = (at << 5) | (31 - Math.clz32(free & -free));
    }
    return at;
  }
}
