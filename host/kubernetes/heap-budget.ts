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

/** Share of the budget up to which objects are read again: otherwise each would take the place of the next. */
const REFILL_SHARE = 0.9;

/** Time from the first room to reading again: milliseconds. */
const REFILL_MS = 1_000;

/** The cache of one kind. */
export interface Collection {
  /** `NetworkAttachmentDefinitions` */
  readonly name: string;
  /** Keeps less of an object, or nothing if that was done before. Returns what is still kept: bytes. */
  readonly reduce: (key: string) => number;
  /** Reads an object again that is not used, and calls {@link Account.hold}. */
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
  readonly account: Account;
  readonly key: string;
  bytes: number;
}

interface Unused extends UnusedObject {
  readonly account: Account;
  readonly bytes: number;
}

/** What one namespace holds. */
class Share {
  bytes = 0;
  readonly entries = new Set<Entry>();

  add(entry: Entry): void {
    this.entries.add(entry);
    this.bytes += entry.bytes;
  }

  delete(entry: Entry): void {
    this.entries.delete(entry);
    this.bytes -= entry.bytes;
  }

  largest(): Entry | undefined {
    let largest: Entry | undefined;
    for (const entry of this.entries) if (largest === undefined || entry.bytes > largest.bytes) largest = entry;
    return largest;
  }
}

export class HeapBudget {
  readonly #options: HeapBudgetOptions;
  readonly #shares = new Map<string, Share>();
  readonly #accounts = new Set<Account>();
  /** By collection and key. */
  readonly #unused = new Map<string, Unused>();
  /** There are more than are known by name. */
  #isMore = false;
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
    return [...this.#unused.values()];
  }

  /** Those with an object that is not used. */
  get namespaces(): ReadonlySet<string> {
    return new Set(this.unused.map(({ key }) => namespaceOf(key)));
  }

  /** Sentences without a full stop, for each namespace and reason. */
  get problems(): readonly string[] {
    const groups = Map.groupBy(this.#unused.values(), ({ key, reason }) => `${reason} ${namespaceOf(key)}`);
    const mebibytes = this.#options.totalBytes >> 20;
    return [...groups.values()].flatMap(([first, ...others]) => {
      if (first === undefined) return [];
      const why =
        first.reason === "size"
          ? `decoded, each takes more than ${MAX_OBJECT_HEAP_BYTES} bytes of memory`
          : `what tenants write would take more than ${mebibytes} MiB of memory, and this namespace holds most; delete some of its objects`;
      return [`Of namespace ${namespaceOf(first.key)} are not used: ${this.#describe([first, ...others])}; ${why}`];
    });
  }

  #describe(unused: readonly UnusedObject[]): string {
    const shown = unused.slice(0, MAX_SHOWN).map(({ collection, key }) => `${collection} ${key}`);
    const more = unused.length - shown.length;
    return `${shown.join(", ")}${more === 0 ? "" : ` and ${more}${this.#isMore ? " or more" : ""} others`}`;
  }

  /** Returns the account of one kind. */
  open(collection: Collection): Account {
    const account = new Account(this, collection);
    this.#accounts.add(account);
    return account;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#refill);
  }

  /** Returns whether there is room, after other objects have given way. The entry is of `namespace`. */
  add(entry: Entry): boolean {
    const own = namespaceOf(entry.key);
    this.#put(own, entry);
    while (this.#usedBytes > this.#options.totalBytes) {
      const fullest = this.#fullest();
      if (fullest === undefined) return true;
      if (fullest === own) {
        this.remove(entry);
        return false;
      }
      this.#evictFrom(fullest);
    }
    return true;
  }

  remove(entry: Entry): void {
    const namespace = namespaceOf(entry.key);
    const share = this.#shareOf(namespace);
    share.delete(entry);
    this.#usedBytes -= entry.bytes;
    if (share.entries.size === 0) this.#shares.delete(namespace);
  }

  isUnused(account: Account, key: string): boolean {
    return this.#unused.has(idOf(account, key));
  }

  markUnused({ account, key, bytes }: Entry, reason: UnusedObject["reason"]): void {
    const id = idOf(account, key);
    if (this.#unused.size >= MAX_UNUSED_NAMED && !this.#unused.has(id)) {
      this.#isMore = true;
      return;
    }
    const namespace = namespaceOf(key);
    const isFirst = ![...this.#unused.values()].some((other) => namespaceOf(other.key) === namespace);
    this.#unused.set(id, { account, key, bytes, collection: account.collection.name, reason });
    if (isFirst) this.#options.onUnused?.(namespace);
  }

  unmark(account: Account, key: string): void {
    this.#unused.delete(idOf(account, key));
  }

  unmarkAll(account: Account): void {
    for (const [id, unused] of this.#unused) if (unused.account === account) this.#unused.delete(id);
  }

  end(account: Account): void {
    this.unmarkAll(account);
    this.#accounts.delete(account);
    this.freed();
  }

  /** Something was given back. */
  freed(): void {
    if (this.#isClosed || (this.#unused.size === 0 && !this.#isMore) || !this.#hasRoom(0)) return;
    this.#refill ??= setTimeout(() => void this.#readAgain(), REFILL_MS).unref();
  }

  async #readAgain(): Promise<void> {
    for (const { account, key, bytes, reason } of [...this.#unused.values()]) {
      if (this.#isClosed) return;
      if (reason === "size" || !this.isUnused(account, key) || !this.#hasRoom(bytes)) continue;
      await account.collection.readAgain(key).catch(() => {});
    }
    this.#refill = undefined;
    if (!this.#isMore || [...this.#unused.values()].some(({ reason }) => reason === "room")) return;
    this.#isMore = false;
    for (const { collection } of this.#accounts) collection.listAgain();
  }

  #hasRoom(bytes: number): boolean {
    return this.#usedBytes + bytes <= REFILL_SHARE * this.#options.totalBytes;
  }

  #shareOf(namespace: string): Share {
    const known = this.#shares.get(namespace);
    if (known !== undefined) return known;
    const share = new Share();
    this.#shares.set(namespace, share);
    return share;
  }

  /** The namespace that holds most; undefined if only the release's holds anything. */
  #fullest(): string | undefined {
    let fullest: string | undefined;
    let most = 0;
    for (const [namespace, { bytes }] of this.#shares)
      if (namespace !== this.#options.home && bytes > most) [fullest, most] = [namespace, bytes];
    return fullest;
  }

  #evictFrom(namespace: string): void {
    const entry = this.#shareOf(namespace).largest();
    if (entry === undefined) return;
    const { account, key, bytes } = entry;
    this.markUnused(entry, "room");
    const left = account.collection.reduce(key);
    this.remove(entry);
    if (left > 0 && left < bytes) this.#put(namespace, Object.assign(entry, { bytes: left }));
    else account.drop(key);
  }

  #put(namespace: string, entry: Entry): void {
    this.#shareOf(namespace).add(entry);
    this.#usedBytes += entry.bytes;
  }
}

/** What is kept of one kind. */
export class Account {
  readonly collection: Collection;
  readonly #budget: HeapBudget;
  readonly #entries = new Map<string, Entry>();

  constructor(budget: HeapBudget, collection: Collection) {
    this.#budget = budget;
    this.collection = collection;
  }

  /**
   * Returns whether the object may be kept, in place of its former state; others may have given way. Otherwise nothing
   * of it is held. `isReduced`: it is what is left of an object that is not used.
   */
  hold(key: string, bytes: number, isReduced = false): boolean {
    const before = this.drop(key);
    if (before !== undefined) this.#budget.remove(before);
    const entry = { account: this, key, bytes };
    const isSmall = bytes <= MAX_OBJECT_HEAP_BYTES;
    const isHeld = isSmall && this.#budget.add(entry);
    if (isHeld) this.#entries.set(key, entry);
    if (isHeld && !isReduced) this.#budget.unmark(this, key);
    if (!isHeld && !isReduced) this.#budget.markUnused(entry, isSmall ? "room" : "size");
    if ((before?.bytes ?? 0) > (isHeld ? bytes : 0)) this.#budget.freed();
    return isHeld;
  }

  /** The object is gone. */
  release(key: string): void {
    this.#budget.unmark(this, key);
    const before = this.drop(key);
    if (before === undefined) return;
    this.#budget.remove(before);
    this.#budget.freed();
  }

  /** All are listed: those that are not used will be found again. */
  forgetUnused(): void {
    this.#budget.unmarkAll(this);
  }

  close(): void {
    for (const entry of this.#entries.values()) this.#budget.remove(entry);
    this.#entries.clear();
    this.#budget.end(this);
  }

  isUnused(key: string): boolean {
    return this.#budget.isUnused(this, key);
  }

  /** For the budget. */
  drop(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    return entry;
  }
}

function idOf({ collection }: Account, key: string): string {
  return `${collection.name} ${key}`;
}

/** Namespaces belong to themselves. */
function namespaceOf(key: string): string {
  const end = key.indexOf("/");
  return end < 0 ? key : key.slice(0, end);
}
