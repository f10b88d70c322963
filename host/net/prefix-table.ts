/** Values by prefix, found by search: in canonical form, any of which may contain others. */
import { bitsOf, type Family, type Ip } from "./ip.ts";
import { firstIp, lastIp, type Prefix } from "./prefix.ts";

interface Entry<T> {
  readonly prefix: Prefix;
  readonly value: T;
}

export class PrefixTable<T> {
  /** By first address; of those that begin at the same one the widest first. */
  readonly #entries: Readonly<Record<Family, Entry<T>[]>> = { 4: [], 6: [] };
  /** Lengths that a prefix has had, ascending. */
  readonly #lengths: Record<Family, readonly number[]> = { 4: [], 6: [] };

  get(prefix: Prefix): T | undefined {
    return this.#at(prefix)?.value;
  }

  /** The prefix has no value yet. */
  add(prefix: Prefix, value: T): void {
    const { family } = prefix.ip;
    this.#entries[family].splice(this.#placeOf(prefix), 0, { prefix, value });
    const others = this.#lengths[family].filter((length) => length !== prefix.length);
    this.#lengths[family] = [...others, prefix.length].sort((a, b) => a - b);
  }

  delete(prefix: Prefix): void {
    if (this.#at(prefix) === undefined) return;
    this.#entries[prefix.ip.family].splice(this.#placeOf(prefix), 1);
  }

  /** Returns the values of the prefixes with this address, the widest first. */
  find(ip: Ip): readonly T[] {
    const found: T[] = [];
    for (const length of this.#lengths[ip.family]) {
      const entry = this.#at({ ip: firstIp({ ip, length }), length });
      if (entry !== undefined) found.push(entry.value);
    }
    return found;
  }

  /** The values of all prefixes that overlap this one, directly or through others. */
  relativesOf(prefix: Prefix): readonly T[] {
    const root = this.#widestAround(prefix);
    const { family } = prefix.ip;
    const end = this.#placeOf({ ip: lastIp(root), length: bitsOf(family) + 1 });
    return this.#entries[family].slice(this.#placeOf(root), end).map(({ value }) => value);
  }

  #widestAround({ ip, length: ownLength }: Prefix): Prefix {
    for (const length of this.#lengths[ip.family]) {
      if (length >= ownLength) break;
      const wider = this.#at({ ip: firstIp({ ip, length }), length });
      if (wider !== undefined) return wider.prefix;
    }
    return { ip, length: ownLength };
  }

  #at(prefix: Prefix): Entry<T> | undefined {
    const found = this.#entries[prefix.ip.family][this.#placeOf(prefix)];
    const isSame = found?.prefix.ip.value === prefix.ip.value && found.prefix.length === prefix.length;
    return isSame ? found : undefined;
  }

  /** Returns the place of the prefix, or the place where it would be inserted. */
  #placeOf({ ip: { family, value }, length }: Prefix): number {
    const entries = this.#entries[family];
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const each = entries[middle]?.prefix;
      if (each === undefined || each.ip.value > value || (each.ip.value === value && each.length >= length))
        high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
