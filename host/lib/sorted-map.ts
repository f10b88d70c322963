import { countLeading } from "./search.ts";

/** A map in the order of its keys, of any order of insertion. A new or deleted key costs a search and a shift. */
export class SortedMap<V> extends Map<string, V> {
  readonly #keys: string[] = [];
  /** Values in the order of the keys: a loop over all values does not search for each. */
  readonly #values: V[] = [];

  override set(key: string, value: V): this {
    const at = this.#placeOf(key);
    if (this.has(key)) this.#values[at] = value;
    else {
      this.#keys.splice(at, 0, key);
      this.#values.splice(at, 0, value);
    }
    return super.set(key, value);
  }

  override delete(key: string): boolean {
    if (!super.delete(key)) return false;
    const at = this.#placeOf(key);
    this.#keys.splice(at, 1);
    this.#values.splice(at, 1);
    return true;
  }

  override clear(): void {
    super.clear();
    this.#keys.length = 0;
    this.#values.length = 0;
  }

  override keys(): MapIterator<string> {
    return this.#keys.values();
  }

  override values(): MapIterator<V> {
    return this.#values.values();
  }

  override *entries(): Generator<[string, V], undefined> {
    for (const [at, key] of this.#keys.entries()) yield [key, this.#values[at] as V];
  }

  override [Symbol.iterator](): Generator<[string, V], undefined> {
    return this.entries();
  }

  override forEach(use: (value: V, key: string, map: Map<string, V>) => void): void {
    for (const [key, value] of this.entries()) use(value, key, this);
  }

  /** Returns the place of the key, or the place where it would be inserted. */
  #placeOf(key: string): number {
    return countLeading(this.#keys, (each) => each < key);
  }
}
