/** A map in the order of its keys, whatever the order in which they came. A new key, and one that goes, cost a search and a shift. */
export class SortedMap<V> extends Map<string, V> {
  readonly #order: string[] = [];

  override set(key: string, value: V): this {
    if (!this.has(key)) this.#order.splice(this.#placeOf(key), 0, key);
    return super.set(key, value);
  }

  override delete(key: string): boolean {
    if (!super.delete(key)) return false;
    this.#order.splice(this.#placeOf(key), 1);
    return true;
  }

  override clear(): void {
    super.clear();
    this.#order.length = 0;
  }

  override *keys(): Generator<string, undefined> {
    yield* this.#order;
  }

  override *values(): Generator<V, undefined> {
    for (const key of this.#order) yield this.get(key) as V;
  }

  override *entries(): Generator<[string, V], undefined> {
    for (const key of this.#order) yield [key, this.get(key) as V];
  }

  override [Symbol.iterator](): Generator<[string, V], undefined> {
    return this.entries();
  }

  override forEach(use: (value: V, key: string, map: Map<string, V>) => void): void {
    for (const [key, value] of this.entries()) use(value, key, this);
  }

  /** Where the key stands, or would stand. */
  #placeOf(key: string): number {
    let low = 0;
    let high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#order[middle] ?? "") < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
