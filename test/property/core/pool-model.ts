/**
 * The reference model of a pool: slow, obvious, on BigInt and Set. It knows nothing of bits, chunks or sparse sets.
 */

export type Span = readonly [first: bigint, last: bigint];

/** The same addresses as few ascending spans. */
export function tidy(spans: readonly Span[]): Span[] {
  const sorted = [...spans].sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  const merged: Span[] = [];
  for (const [first, last] of sorted) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before[1] + 1n) {
      merged[merged.length - 1] = [before[0], before[1] > last ? before[1] : last];
    } else merged.push([first, last]);
  }
  return merged;
}

export function sizeOf(spans: readonly Span[]): bigint {
  return spans.reduce((sum, [first, last]) => sum + last - first + 1n, 0n);
}

export function holdsAddress(spans: readonly Span[], address: bigint): boolean {
  return spans.some(([first, last]) => first <= address && address <= last);
}

export function intersection(a: readonly Span[], b: readonly Span[]): Span[] {
  const both: Span[] = [];
  for (const x of a) {
    for (const y of b) {
      const first = x[0] > y[0] ? x[0] : y[0];
      const last = x[1] < y[1] ? x[1] : y[1];
      if (first <= last) both.push([first, last]);
    }
  }
  return tidy(both);
}

const MAX_WINDOW = 1n << 24n;

export class PoolModel {
  ranges: Span[];
  masks: Span[];
  readonly used = new Set<bigint>();
  cursor = 0;
  /** Addresses in the order of their release; undefined while that is not tracked. */
  freed: bigint[] | undefined;

  constructor(ranges: readonly Span[], masks: readonly Span[]) {
    this.ranges = tidy(ranges);
    this.masks = intersection(this.ranges, tidy(masks));
  }

  get size(): bigint {
    return sizeOf(this.ranges);
  }

  get window(): number {
    return Number(this.size < MAX_WINDOW ? this.size : MAX_WINDOW);
  }

  ordinalOf(address: bigint): bigint | undefined {
    let before = 0n;
    for (const [first, last] of this.ranges) {
      if (first <= address && address <= last) return before + address - first;
      before += last - first + 1n;
    }
    return undefined;
  }

  addressOf(ordinal: bigint): bigint {
    let rest = ordinal;
    for (const [first, last] of this.ranges) {
      if (rest <= last - first) return first + rest;
      rest -= last - first + 1n;
    }
    throw new Error(`no ordinal ${ordinal}`);
  }

  isFree(address: bigint): boolean {
    return !this.used.has(address) && !holdsAddress(this.masks, address);
  }

  contains(address: bigint): boolean {
    return this.ordinalOf(address) !== undefined && !holdsAddress(this.masks, address);
  }

  claim(address: bigint): boolean {
    if (this.used.has(address)) return false;
    this.used.add(address);
    if (this.freed !== undefined) this.freed = this.freed.filter((other) => other !== address);
    return true;
  }

  release(address: bigint): boolean {
    if (!this.used.delete(address)) return false;
    const ordinal = this.ordinalOf(address) ?? -1n;
    if (ordinal < BigInt(this.window)) this.freed?.push(address);
    return true;
  }

  /** The first free ordinal of `start` to `end` - 1, one by one but over masks. */
  #walk(start: bigint, end: bigint): bigint | undefined {
    let before = 0n;
    for (const [first, last] of this.ranges) {
      const begin = first + (start > before ? start - before : 0n);
      const stop = first + end - before;
      for (let address = begin; address < stop && address <= last; address++) {
        if (this.used.has(address)) continue;
        const mask = this.masks.find((each) => each[0] <= address && address <= each[1]);
        if (mask === undefined) return before + address - first;
        address = mask[1];
      }
      before += last - first + 1n;
    }
    return undefined;
  }

  find(start: number): number | undefined {
    if (this.window === 0) return undefined;
    const window = BigInt(this.window);
    const found = this.#walk(BigInt(start % this.window), window) ?? this.#walk(0n, window);
    return found === undefined ? undefined : Number(found);
  }

  /** The address that the hashed order over the whole pool gives. */
  findWide(seed: bigint): bigint | undefined {
    if (this.size === 0n) return undefined;
    const bits = BigInt((this.size - 1n).toString(2).replace(/^0$/, "").length);
    const low = seed & ((1n << bits) - 1n);
    const start = low < this.size ? low : low - this.size;
    const found = this.#walk(start, this.size) ?? this.#walk(0n, this.size);
    return found === undefined ? undefined : this.addressOf(found);
  }

  /** Never freed ones first, ascending; then in the order of release. */
  takeFreed(): number | undefined {
    const freed = this.freed ?? [];
    const waiting = new Set(freed);
    for (let ordinal = 0n; ordinal < BigInt(this.window); ordinal++) {
      const next = this.#walk(ordinal, BigInt(this.window));
      if (next === undefined) break;
      ordinal = next;
      if (!waiting.has(this.addressOf(next))) return Number(next);
    }
    while (freed.length > 0) {
      const address = freed.shift();
      if (address !== undefined && this.isFree(address)) return Number(this.ordinalOf(address));
    }
    return undefined;
  }

  /** Whether `count` ordinals from `first` on are free and lie side by side. */
  #isRun(first: number, count: number): boolean {
    const start = this.addressOf(BigInt(first));
    for (let offset = 0; offset < count; offset++) {
      const address = this.addressOf(BigInt(first + offset));
      if (address !== start + BigInt(offset) || !this.isFree(address)) return false;
    }
    return true;
  }

  findRun(start: number, count: number, alignBits: number): number | undefined {
    const window = this.window;
    const align = (1n << BigInt(alignBits)) - 1n;
    const from = (begin: number): number | undefined => {
      for (let first = begin; first + count <= window; first++) {
        if ((this.addressOf(BigInt(first)) & align) === 0n && this.#isRun(first, count)) return first;
      }
      return undefined;
    };
    return window === 0 ? undefined : (from(start % window) ?? from(0));
  }

  /** Another shape; addresses outside are forgotten. */
  edit(ranges: readonly Span[], masks: readonly Span[]): void {
    const cursorAddress = this.cursor < this.window ? this.addressOf(BigInt(this.cursor)) : undefined;
    this.freed = this.freed?.filter((address) => this.isFree(address));
    this.ranges = tidy(ranges);
    this.masks = intersection(this.ranges, tidy(masks));
    const inWindow = (address: bigint) => (this.ordinalOf(address) ?? MAX_WINDOW) < BigInt(this.window);
    for (const address of [...this.used]) if (this.ordinalOf(address) === undefined) this.used.delete(address);
    this.freed = this.freed?.filter(inWindow);
    this.cursor = cursorAddress !== undefined && inWindow(cursorAddress) ? Number(this.ordinalOf(cursorAddress)) : 0;
  }

  usedSpans(): Span[] {
    return tidy([...this.used].map((address) => [address, address] as const));
  }
}
