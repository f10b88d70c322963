/**
 * Writes of this process that the watch has not brought yet, so that the next pass continues from them instead of
 * failing on an old version.
 */

interface Versioned {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

interface Newest<T> {
  readonly object: T;
  /** The versions that were replaced; empty for a created object. */
  readonly upon: ReadonlySet<string>;
}

export class OwnWrites<T extends Versioned> {
  readonly #newest = new Map<string, Newest<T>>();
  /** UIDs of objects whose deletion the watch has reported since the last pass. */
  readonly #gone = new Set<string>();
  #hasWritten = false;

  /** Something was written since the last {@link OwnWrites.applyTo}. */
  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  /**
   * `before` is undefined for a created object. An answer that arrives after the watch has reported the deletion is
   * ignored.
   */
  wrote(before: T | undefined, now: T): void {
    if (this.#gone.has(now.uid)) return;
    this.#hasWritten = true;
    const earlier = this.#newest.get(now.name)?.upon ?? [];
    this.#newest.set(now.name, {
      object: now,
      upon: before === undefined ? new Set() : new Set([...earlier, before.resourceVersion]),
    });
  }

  /** The watch has reported the deletion. */
  gone({ name, uid }: T): void {
    this.#gone.add(uid);
    this.#newest.delete(name);
  }

  /** Whether this process has made the object what it is: it knows of the change. */
  isOwn({ name, resourceVersion }: T): boolean {
    const newest = this.#newest.get(name);
    return newest?.object.resourceVersion === resourceVersion || newest?.upon.has(resourceVersion) === true;
  }

  /** A write was refused: only the watch knows the object. */
  forget(name: string): void {
    this.#newest.delete(name);
  }

  /** Returns the objects as this process knows them. Call it when no write is under way. */
  applyTo(items: ReadonlyMap<string, T>): T[] {
    this.#gone.clear();
    this.#hasWritten = false;
    const known = [...items].map(([name, seen]) => {
      const newest = this.#newest.get(name);
      if (newest?.upon.has(seen.resourceVersion)) return newest.object;
      this.#newest.delete(name);
      return seen;
    });
    const created = [...this.#newest.values()].filter(({ object }) => !items.has(object.name));
    return [...known, ...created.map(({ object }) => object)];
  }
}
