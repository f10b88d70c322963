/**
 * Bounds what a process keeps of objects that tenants write, in bytes of the heap: of each object, and of all kinds
 * together. What does not fit is not used, of the namespace that holds most first; it is read again when there is room.
 * Effects: a timer while there may be room for what is not used.
 */

/**
 * Most that is kept of one object that tenants write, as the heap has it: bytes. A larger one is not used. @limit
 */
export const MAX_OBJECT_HEAP_BYTES = 65_536;

/** Most objects that are named as not used, and read again when there is room. */
export const MAX_UNUSED_NAMED = 1_000;

/** Most objects of a namespace that one sentence names. */
const MAX_SHOWN = 5;

/** Most namespaces and reasons with a sentence of their own. */
const MAX_SENTENCES = 20;

/** Share of the budget up to which objects are read again: otherwise each would take the place of the next. */
const REFILL_SHARE = 0.9;

/** Time from the first room to reading again: milliseconds. */
const REFILL_MS = 1_000;

/** The same where a collection may have to be listed again, of which tenants decide how long it is: milliseconds. */
const LIST_AGAIN_MS = 60_000;

/** The cache of one kind. */
export interface Collection {
  /** `NetworkAttachmentDefinitions`; no other of the budget has it. */
  readonly name: string;
  /** Keeps less of an object than `bytes`, or nothing. Returns what is still kept: bytes. */
  readonly reduce: (key: string, bytes: number) => number;
  /** Reads an object again that is not used, and calls {@link HeapBudget.hold}. */
  readonly readAgain: (key: string) => Promise<void>;
  /** Lists all again: not all that is not used is known by name. */
  readonly listAgain: () => void;
}

export interface UnusedObject {
  /** The collection's name. */
  readonly collection: string;
  /** `namespace/name`, or a Namespace's name. */
  readonly key: string;
  readonly reason: "size" | "room";
}

export interface HeapBudgetOptions {
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

type Unused = Entry & Pick<UnusedObject, "reason">;

/** What one namespace holds. */
interface Share {
  bytes: number;
  /** By collection and key. */
  readonly entries: Map<string, Entry>;
}

export class HeapBudget {
  readonly #options: HeapBudgetOptions;
  /** By namespace. */
  readonly #shares = new Map<string, Share>();
  /** By collection and key. */
  readonly #unused = new Map<string, Unused>();
  /** Those with more of them than are known by name. */
  readonly #crowded = new Set<Collection>();
  #usedBytes = 0;
  #refill: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: HeapBudgetOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** At most MAX_UNUSED_NAMED. */
  get unused(): readonly UnusedObject[] {
    return [...this.#unused.values()].map(({ collection, key, reason }) => ({
      collection: collection.name,
      key,
      reason,
    }));
  }

  /** Those with an object that is not used. */
  get namespaces(): ReadonlySet<string> {
    return new Set([...this.#unused.values()].map(({ key }) => namespaceOf(key)));
  }

  /** Sentences without a full stop, for each namespace and reason; of many the last tells how many more there are. */
  get problems(): readonly string[] {
    const groups = Map.groupBy(this.#unused.values(), ({ key, reason }) => `${reason} ${namespaceOf(key)}`);
    const room = `what tenants write would take more than ${this.#options.totalBytes >> 20} MiB of memory, and this namespace holds most; delete some of its objects`;
    const size = `decoded, each takes more than ${MAX_OBJECT_HEAP_BYTES} bytes of memory`;
    const told = [...groups].slice(0, MAX_SENTENCES).map(([group, unused]) => {
      const [reason, namespace] = group.split(" ");
      const shown = unused.slice(0, MAX_SHOWN).map(({ collection, key }) => `${collection.name} ${key}`);
      const more = unused.length - shown.length;
      const others = more === 0 ? "" : ` and ${more}${this.#crowded.size > 0 ? " or more" : ""} others`;
      return `Of namespace ${namespace} are not used: ${shown.join(", ")}${others}; ${reason === "size" ? size : room}`;
    });
    const rest = groups.size - told.length;
    return rest === 0 ? told : [...told, `Objects of ${rest} more namespaces are not used for the same reasons`];
  }

  /**
   * Returns whether the object may be kept, in place of its former state; others may have given way. Otherwise nothing
   * of it is held. `isReduced`: it is what is left of an object that is not used.
   */
  hold(collection: Collection, key: string, bytes: number, isReduced = false): boolean {
    const before = this.#take(collection, key);
    const entry = { collection, key, bytes };
    const isSmall = bytes <= MAX_OBJECT_HEAP_BYTES;
    const isHeld = isSmall && this.#fit(entry);
    if (isHeld && !isReduced) this.#unused.delete(idOf(collection, key));
    if (!isHeld && !isReduced) this.#markUnused({ ...entry, reason: isSmall ? "room" : "size" });
    if (before > (isHeld ? bytes : 0)) this.#freed();
    return isHeld;
  }

  /** The object is gone. */
  release(collection: Collection, key: string): void {
    this.#unused.delete(idOf(collection, key));
    if (this.#take(collection, key) > 0) this.#freed();
  }

  isUnused(collection: Collection, key: string): boolean {
    return this.#unused.has(idOf(collection, key));
  }

  /** All are listed: those that are not used will be found again. */
  forgetUnused(collection: Collection): void {
    this.#crowded.delete(collection);
    for (const [id, unused] of this.#unused) if (unused.collection === collection) this.#unused.delete(id);
  }

  /** Nothing of the collection is kept any more. */
  releaseAll(collection: Collection): void {
    this.forgetUnused(collection);
    for (const { entries } of this.#shares.values())
      for (const entry of entries.values()) if (entry.collection === collection) this.#take(collection, entry.key);
    this.#freed();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#refill);
  }

  /** Returns whether there is room, after other objects have given way. */
  #fit(entry: Entry): boolean {
    const own = this.#put(entry);
    while (this.#usedBytes > this.#options.totalBytes) {
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
    if (!this.isUnused(collection, key)) this.#markUnused({ ...largest, reason: "room" });
    this.#take(collection, key);
    const left = collection.reduce(key, bytes);
    if (left > 0) this.#put({ ...largest, bytes: left });
  }

  #put(entry: Entry): Share {
    const namespace = namespaceOf(entry.key);
    const share = this.#shares.get(namespace) ?? { bytes: 0, entries: new Map<string, Entry>() };
    this.#shares.set(namespace, share);
    share.entries.set(idOf(entry.collection, entry.key), entry);
    share.bytes += entry.bytes;
    this.#usedBytes += entry.bytes;
    return share;
  }

  /** Returns what was held: bytes. */
  #take(collection: Collection, key: string): number {
    const [namespace, id] = [namespaceOf(key), idOf(collection, key)];
    const share = this.#shares.get(namespace);
    const bytes = share?.entries.get(id)?.bytes;
    if (share === undefined || bytes === undefined) return 0;
    share.entries.delete(id);
    share.bytes -= bytes;
    this.#usedBytes -= bytes;
    if (share.entries.size === 0) this.#shares.delete(namespace);
    return bytes;
  }

  #markUnused(unused: Unused): void {
    const id = idOf(unused.collection, unused.key);
    if (this.#unused.size >= MAX_UNUSED_NAMED && !this.#unused.has(id)) {
      this.#crowded.add(unused.collection);
      return;
    }
    const namespace = namespaceOf(unused.key);
    const isFirst = !this.namespaces.has(namespace);
    this.#unused.set(id, unused);
    if (isFirst) this.#options.onUnused?.(namespace);
  }

  /** Something was given back. */
  #freed(): void {
    if (this.#isClosed || this.#unused.size + this.#crowded.size === 0 || !this.#hasRoom(0)) return;
    const delayMs = this.#crowded.size > 0 ? LIST_AGAIN_MS : REFILL_MS;
    this.#refill ??= setTimeout(() => void this.#readAgain(), delayMs).unref();
  }

  async #readAgain(): Promise<void> {
    for (const { collection, key, bytes, reason } of [...this.#unused.values()]) {
      if (this.#isClosed) return;
      if (reason === "size" || !this.isUnused(collection, key) || !this.#hasRoom(bytes)) continue;
      await collection.readAgain(key).catch(() => {});
    }
    this.#refill = undefined;
    if ([...this.#unused.values()].every(({ reason }) => reason === "size"))
      for (const { listAgain } of this.#crowded) listAgain();
  }

  #hasRoom(bytes: number): boolean {
    return this.#usedBytes + bytes <= REFILL_SHARE * this.#options.totalBytes;
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
