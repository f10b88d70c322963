/** The free addresses of a Subnet, to fill pools: next to a pool's own addresses, else where it can grow. */
import type { Span } from "../../../core/module.ts";
import { joinSpans, type Spans, sizeOf, withoutSpans } from "../../../core/spans.ts";

/** Returns the addresses in use. A new pool skips those outside of all pools. */
export type HeldIn = (spans: Spans) => Spans;

export class FreeSpans {
  spans: Spans;

  constructor(spans: Spans) {
    this.spans = spans;
  }

  remove({ first, last }: Span): void {
    const at = this.spans.findIndex((span) => span.last >= first);
    if (at < 0) return;
    const end = this.spans.findIndex((span) => span.first > last);
    const hit = this.spans.slice(at, end < 0 ? undefined : end);
    const left = hit.flatMap((span) => [
      ...(span.first < first ? [{ first: span.first, last: first - 1n }] : []),
      ...(span.last > last ? [{ first: last + 1n, last: span.last }] : []),
    ]);
    this.spans = this.spans.toSpliced(at, hit.length, ...left);
  }

  /** Takes up to `count` addresses for a pool that has `own`: its gaps, then after it, before it, and elsewhere. */
  take(own: Spans, count: number, heldIn: HeldIn): Spans {
    const taken = new Set<bigint>();
    const walk = (span: Span, isUpward: boolean): void => {
      for (let step = 0n; step <= span.last - span.first && taken.size < count; step++) {
        const address = isUpward ? span.first + step : span.last - step;
        if (heldIn([{ first: address, last: address }]).length === 0) taken.add(address);
      }
    };
    const [lowest] = own;
    if (lowest !== undefined) {
      const { last: highest } = own.at(-1) ?? lowest;
      for (const span of this.spans) if (span.first > lowest.first && span.last < highest) walk(span, true);
      const after = this.spans.find(({ first }) => first === highest + 1n);
      if (after !== undefined) walk(after, true);
      const before = this.spans.find(({ last }) => last === lowest.first - 1n);
      if (before !== undefined) walk(before, false);
    }
    this.#removeAll(taken);
    const place = this.#placeFor(BigInt(count - taken.size));
    const later = this.spans.map((span) => (span.first < place ? { ...span, first: place } : span));
    for (const span of [...later, ...this.spans]) walk(span, true);
    this.#removeAll(taken);
    return spansOfAddresses(taken);
  }

  #removeAll(addresses: ReadonlySet<bigint>): void {
    for (const span of spansOfAddresses(addresses)) this.remove(span);
  }

  /**
   * Returns the start for this number of addresses: a free block of the next power of two, so that the pool can grow;
   * else a contiguous place; else the first free address.
   */
  #placeFor(count: bigint): bigint {
    let slot = 1n;
    while (slot < count) slot *= 2n;
    let together: bigint | undefined;
    for (const { first, last } of this.spans) {
      const aligned = ((first + slot - 1n) / slot) * slot;
      if (aligned + slot - 1n <= last) return aligned;
      if (together === undefined && last - first + 1n >= count) together = first;
    }
    return together ?? 0n;
  }
}

function spansOfAddresses(addresses: Iterable<bigint>): Spans {
  return joinSpans(Array.from(addresses, (address) => ({ first: address, last: address })));
}

export function firstOf(spans: Spans, count: number | bigint): Spans {
  let left = BigInt(count);
  return spans.flatMap(({ first, last }) => {
    if (left <= 0n) return [];
    const end = last - first + 1n > left ? first + left - 1n : last;
    left -= end - first + 1n;
    return [{ first, last: end }];
  });
}

/** Returns the rest of a pool that gives back `count` addresses: the highest unused ones go. */
export function giveBack(own: Spans, count: bigint, heldIn: HeldIn): { readonly left: Spans; readonly given: bigint } {
  const held = heldIn(own);
  const unused = withoutSpans(own, held);
  const kept = firstOf(unused, sizeOf(unused) - count);
  return { left: joinSpans([...held, ...kept]), given: sizeOf(unused) - sizeOf(kept) };
}
