/**
 * What this process has written and the watch has not brought yet: the next round goes on from there instead of failing on an old version.
 */

interface Versioned {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

interface Newest<T> {
  readonly object: T;
  /** The versions that were written upon. None: the object was created. */
  readonly upon: ReadonlySet<string>;
}

export class OwnWrites<T extends Versioned> {
  readonly #newest = new Map<string, Newest<T>>();
  /** UIDs of objects that the watch has told to be gone since the last look. */
  readonly #gone = new Set<string>();

  /** `before` undefined: it was created. The answer may come after the watch has told that the object is gone: then it says nothing any more. */
  wrote(before: T | undefined, now: T): void {
    if (this.#gone.has(now.uid)) return;
    const earlier = this.#newest.get(now.name)?.upon ?? [];
    this.#newest.set(now.name, {
      object: now,
      upon: before === undefined ? new Set() : new Set([...earlier, before.resourceVersion]),
    });
  }

  /** The watch says that the object is gone. */
  gone({ name, uid }: T): void {
    this.#gone.add(uid);
    this.#newest.delete(name);
  }

  /** A write was refused: the watch alone knows. */
  forget(name: string): void {
    this.#newest.delete(name);
  }

  /** The objects as they are, as far as this process knows. To be asked when no write is under way. */
  applyTo(items: ReadonlyMap<string, T>): T[] {
    this.#gone.clear();
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
