/** Equal values that very many objects have are held once. */

/** Most texts and values of a kind that are shared between all objects. */
const MAX_SHARED_VALUES = 65_536;

export class SharedValues<T> {
  readonly #values = new Map<string, T>();

  /** Returns the value with this key, which is made if there is none. */
  of(key: string, make: () => T): T {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    // Values in use come back with the next object that has them.
    if (this.#values.size >= MAX_SHARED_VALUES) this.#values.clear();
    const value = make();
    this.#values.set(key, value);
    return value;
  }
}

export class SharedTexts {
  readonly #texts = new SharedValues<string>();

  of(text: string): string {
    return this.#texts.of(text, () => text);
  }
}
