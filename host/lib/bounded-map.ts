/**
 * A map that forgets the entry set longest ago when it would exceed its limit. `set` counts as new also for a key
 * that is present; `get` does not.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #maxSize: number;

  constructor(maxSize: number) {
    super();
    this.#maxSize = maxSize;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    for (const oldest of this.keys()) {
      if (this.size <= this.#maxSize) break;
      this.delete(oldest);
    }
    return this;
  }

  /** Map's own would not use `set`. */
  override getOrInsertComputed(key: K, compute: (key: K) => V): V {
    if (!this.has(key)) this.set(key, compute(key));
    return this.get(key) as V;
  }
}
