/**
 * Bounds the memory for objects that tenants write: the length of each, and the heap of all kinds together, estimated
 * by their text. Objects beyond the budget are not used, those of the namespace with the most first; when there is
 * room, all of its kind is listed again after the watch that is open.
 */

/** Longest object of a tenant that is used, as JSON: characters. @limit */
export const MAX_OBJECT_LENGTH = 262_144;

/** Most objects that are named as not used. */
export const MAX_UNUSED_NAMED = 1_000;

/** Most objects of a namespace that one sentence names. */
const MAX_SHOWN = 5;

/** Most namespaces and reasons with a sentence of their own. */
const MAX_SENTENCES = 20;

/** Share of the budget up to which objects are listed again: otherwise each would take the place of the next. */
const REFILL_SHARE = 0.9;

/** Heap of an object besides its value, for the maps that it is in: bytes. */
const ENTRY_BYTES = 400;

/**
 * The same of a member or item: its place, and its part in the description of an object of this shape, which few
 * objects share if tenants choose the keys. In the text each of them, and each list or object, begins at one of `,{[`.
 */
const PLACE_BYTES = 128;

/** The cache of one kind. */
export interface Collection {
  /** `NetworkAttachmentDefinitions`; no other of the budget has it. */
  readonly name: string;
  /** Keeps less of an object than `bytes`, or nothing. Returns the kept rest: bytes. */
  readonly reduce: (key: string, bytes: number) => number;
}

export interface UnusedObject {
  /** The collection's name. */
  readonly collection: string;
  /** `namespace/name`, or a Namespace's name. */
  readonly key: string;
  readonly reason: "size" | "room";
}

export interface ObjectBudgetOptions {
  readonly totalBytes: number;
  /** The release's namespace: its objects do not give way. */
  readonly home: string;
  /** Called for each namespace that had none, when its first object is not used. */
  readonly onUnused?: ((namespace: string) => void) | undefined;
}

interface Entry {
  readonly collection: Collection;
  readonly key: string;
  readonly bytes: number;
}

/** One namespace's objects. */
interface Share {
  bytes: number;
  /** By collection and key. */
  readonly entries: Map<string, Entry>;
}

/** Returns an estimate of a JSON value's heap under its key, at least V8's need: bytes. */
export function heapBytesOf(key: string, value: unknown): number {
  const text = JSON.stringify(value) ?? "";
  let places = 0;
  for (const each of text) if (each === "," || each === "{" || each === "[") places++;
  return ENTRY_BYTES + 2 * (key.length + text.length) + PLACE_BYTES * places;
}

export class ObjectBudget {
  readonly #options: ObjectBudgetOptions;
  /** By namespace. */
  readonly #shares = new Map<string, Share>();
  /** By collection and key. */
  readonly #unused = new Map<string, UnusedObject & { readonly of: Collection }>();
  /** Those with more of them than are known by name. */
  readonly #crowded = new Set<Collection>();
  usedBytes = 0;

  constructor(options: ObjectBudgetOptions) {
    this.#options = options;
  }

  /** At most MAX_UNUSED_NAMED. */
  get unused(): readonly UnusedObject[] {
    return [...this.#unused.values()];
  }

  /** Those with an object that is not used. */
  get namespaces(): ReadonlySet<string> {
    return new Set(this.unused.map(({ key }) => namespaceOf(key)));
  }

  /** Sentences without a full stop, for each namespace and reason; of many the last tells how many more there are. */
  get problems(): readonly string[] {
    const groups = Map.groupBy(this.unused, ({ key, reason }) => `${reason} ${namespaceOf(key)}`);
    const reasons = {
      size: `each is longer than ${MAX_OBJECT_LENGTH} characters`,
      room: `what tenants write would take more than ${this.#options.totalBytes >> 20} MiB of memory, and this namespace holds most; delete some of its objects`,
    };
    const told = [...groups.values()].slice(0, MAX_SENTENCES).map((unused) => {
      const shown = unused.slice(0, MAX_SHOWN).map(({ collection, key }) => `${collection} ${key}`);
      const more = unused.length - shown.length;
      const others = more === 0 ? "" : ` and ${more}${this.#crowded.size > 0 ? " or more" : ""} others`;
      const { key = "", reason = "room" } = unused[0] ?? {};
      return `Of namespace ${namespaceOf(key)} are not used: ${shown.join(", ")}${others}; ${reasons[reason]}`;
    });
    const rest = groups.size - told.length;
    return rest === 0 ? told : [...told, `Objects of ${rest} more namespaces are not used for the same reasons`];
  }

  /**
   * Returns whether the object may be kept, in place of its former state; others may have given way. Otherwise nothing
   * of it is held. `bytes`: infinite for one that is too long. `isReduced`: it is the rest of an unused object.
   */
  hold(collection: Collection, key: string, bytes: number, isReduced = false): boolean {
    this.#take(collection, key);
    const isHeld = Number.isFinite(bytes) && this.#fit({ collection, key, bytes });
    if (isHeld && !isReduced) this.#unused.delete(idOf(collection, key));
    if (!isHeld && !isReduced) this.#markUnused(collection, key, Number.isFinite(bytes) ? "room" : "size");
    return isHeld;
  }

  /** The object is gone. */
  release(collection: Collection, key: string): void {
    this.#unused.delete(idOf(collection, key));
    this.#take(collection, key);
  }

  /** All are listed: those that are not used will be found again. */
  forgetUnused(collection: Collection): void {
    this.#crowded.delete(collection);
    for (const [id, { of }] of this.#unused) if (of === collection) this.#unused.delete(id);
  }

  /** Nothing of the collection is kept any more. */
  releaseAll(collection: Collection): void {
    this.forgetUnused(collection);
    for (const { entries } of this.#shares.values())
      for (const entry of entries.values()) if (entry.collection === collection) this.#take(collection, entry.key);
  }

  /** Returns whether there may be room for objects of the collection that had none. */
  hasRoomFor(collection: Collection): boolean {
    if (this.usedBytes > REFILL_SHARE * this.#options.totalBytes) return false;
    return (
      this.#crowded.has(collection) ||
      this.#unused.values().some(({ of, reason }) => of === collection && reason === "room")
    );
  }

  /** Returns whether there is room, after other objects have given way. */
  #fit(entry: Entry): boolean {
    const own = this.#put(entry);
    while (this.usedBytes > this.#options.totalBytes) {
      const fullest = this.#fullest();
      if (fullest === undefined) return true;
      if (fullest === own) {
        this.#take(entry.collection, entry.key);
        return false;
      }
      this.#evictFrom(fullest);
    }
    return true;
  }

  /** That of the namespace that holds most; undefined if only the release's holds anything. */
  #fullest(): Share | undefined {
    let fullest: Share | undefined;
    for (const [namespace, share] of this.#shares)
      if (namespace !== this.#options.home && share.bytes > (fullest?.bytes ?? 0)) fullest = share;
    return fullest;
  }

  #evictFrom({ entries }: Share): void {
    let largest: Entry | undefined;
    for (const entry of entries.values()) if (entry.bytes > (largest?.bytes ?? 0)) largest = entry;
    if (largest === undefined) return;
    const { collection, key, bytes } = largest;
    if (!this.#unused.has(idOf(collection, key))) this.#markUnused(collection, key, "room");
    this.#take(collection, key);
    const left = collection.reduce(key, bytes);
    if (left > 0) this.#put({ ...largest, bytes: left });
  }

  #put(entry: Entry): Share {
    const namespace = namespaceOf(entry.key);
    const share = this.#shares.getOrInsertComputed(namespace, () => ({ bytes: 0, entries: new Map<string, Entry>() }));
    share.entries.set(idOf(entry.collection, entry.key), entry);
    share.bytes += entry.bytes;
    this.usedBytes += entry.bytes;
    return share;
  }

  #take(collection: Collection, key: string): void {
    const [namespace, id] = [namespaceOf(key), idOf(collection, key)];
    const share = this.#shares.get(namespace);
    const bytes = share?.entries.get(id)?.bytes;
    if (share === undefined || bytes === undefined) return;
    share.entries.delete(id);
    share.bytes -= bytes;
    this.usedBytes -= bytes;
    if (share.entries.size === 0) this.#shares.delete(namespace);
  }

  #markUnused(of: Collection, key: string, reason: UnusedObject["reason"]): void {
    const id = idOf(of, key);
    if (this.#unused.size >= MAX_UNUSED_NAMED && !this.#unused.has(id)) {
      this.#crowded.add(of);
      return;
    }
    const namespace = namespaceOf(key);
    const isFirst = !this.#unused.values().some((each) => namespaceOf(each.key) === namespace);
    this.#unused.set(id, { of, collection: of.name, key, reason });
    if (isFirst) this.#options.onUnused?.(namespace);
  }
}

function idOf({ name }: Collection, key: string): string {
  return `${name} ${key}`;
}

/** Namespaces belong to themselves. */
function namespaceOf(key: string): string {
  const end = key.indexOf("/");
  return end < 0 ? key : key.slice(0, end);
}
