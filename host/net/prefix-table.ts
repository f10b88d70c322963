/** Values by prefix, found by search: in canonical form, any of which may contain others. */
import type { Family, Ip } from "./ip.ts";
import { firstIp, lastIp, maskPrefix, type Prefix } from "./prefix.ts";

interface Entry<T> {
  readonly prefix: Prefix;
  readonly value: T;
}

export class PrefixTable<T> {
  /** By first address; of those that begin at the same one the widest first. */
  readonly #entries: Readonly<Record<Family, Entry<T>[]>> = { 4: [], 6: [] };
  /** Lengths that a prefix has had. */
  readonly #lengths: Readonly<Record<Family, Set<number>>> = { 4: new Set(), 6: new Set() };

  get(prefix: Prefix): T | undefined {
    return this.#at(prefix)?.value;
  }

  /** The prefix has no value yet. */
  add(prefix: Prefix, value: T): void {
    const { family } = prefix.ip;
    this.#entries[family].splice(this.#placeOf(prefix), 0, { prefix, value });
    this.#lengths[family].add(prefix.length);
  }

  delete(prefix: Prefix): void {
    if (this.#at(prefix) === undefined) return;
    this.#entries[prefix.ip.family].splice(this.#placeOf(prefix), 1);
  }

  /** Returns the values of the prefixes with this address, the widest first. */
  find(ip: Ip): readonly T[] {
    const found = [...this.#lengths[ip.family]].flatMap((length) => this.#at(maskPrefix({ ip, length })) ?? []);
    return found.sort((a, b) => a.prefix.length - b.prefix.length).map(({ value }) => value);
  }

  /** The values of all prefixes that overlap this one, directly or through others. */
  relativesOf(prefix: Prefix): readonly T[] {
    const root = this.#widestAround(prefix);
    const entries = this.#entries[prefix.ip.family];
    const last = lastIp(root).value;
    const end = firstAfter(entries, ({ ip }) => ip.value <= last);
    return entries.slice(this.#placeOf(root), end).map(({ value }) => value);
  }

  #widestAround(prefix: Prefix): Prefix {
    const lengths = [...this.#lengths[prefix.ip.family]].filter((length) => length < prefix.length);
    for (const length of lengths.sort((a, b) => a - b)) {
      const wider = this.#at({ ip: firstIp({ ip: prefix.ip, length }), length });
      if (wider !== undefined) return wider.prefix;
    }
    return prefix;
  }

  #at(prefix: Prefix): Entry<T> | undefined {
    const found = this.#entries[prefix.ip.family][this.#placeOf(prefix)];
    const isSame = found?.prefix.ip.value === prefix.ip.value && found.prefix.length === prefix.length;
    return isSame ? found : undefined;
  }

  /** Returns the place of the prefix, or the place where it would be inserted. */
  #placeOf({ ip: { family, value }, length }: Prefix): number {
    return firstAfter(
      this.#entries[family],
      (each) => each.ip.value < value || (each.ip.value === value && each.length < length),
    );
  }
}

/** Returns the place of the first entry that is not before; those that are stand in front. */
function firstAfter<T>(entries: readonly Entry<T>[], isBefore: (prefix: Prefix) => boolean): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entries[middle];
    if (entry !== undefined && isBefore(entry.prefix)) low = middle + 1;
    else high = middle;
  }
  return low;
}
