/** The map of a reflector: decodes objects, reports each change once, and notes objects that it cannot decode. */
import { messageOf } from "../lib/describe.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Log } from "../lib/log.ts";
import { type Collection, heapBytesOf, MAX_OBJECT_LENGTH, type ObjectBudget } from "../lib/object-budget.ts";
import type { KubeObject } from "./kube-api.ts";

export type Change<T> =
  /** `before` is undefined for a new object. */
  | { readonly kind: "set"; readonly key: string; readonly value: T; readonly before: T | undefined }
  | { readonly kind: "gone"; readonly key: string; readonly before: T };

/** Returns the object after the change; undefined if it is gone. */
export const valueAfter = <T>(change: Change<T>): T | undefined => (change.kind === "set" ? change.value : undefined);

/** For a collection that tenants write. */
interface Budgeted<T> {
  readonly budget: ObjectBudget;
  /** The kept part of an unused object; default: nothing, and it counts as absent. */
  readonly reduce?: (value: T) => T;
}

/** Longest time until an object that ends is looked at again, as clocks are set: milliseconds. */
const END_LOOK_MS = 60_000;

export interface MirrorOptions<T> {
  /** For problems and logs: `pods of this node`. */
  readonly name: string;
  /**
   * Throws for an invalid object, whose last valid value then stays. Returns undefined for an object that counts as
   * absent, and costs no memory.
   */
  readonly decode: (object: KubeObject, before: T | undefined) => T | undefined;
  readonly keyOf: (object: KubeObject) => string;
  /** The first subscriber. Default: none. */
  readonly onChange?: (change: Change<T>) => void;
  readonly log: Log;
  /** Whether the last value of this key's object stays in force when it is gone (rule known-stays). Default: none. */
  readonly keepsLast?: ((key: string) => boolean) | undefined;
  /** The end of an object by the wall clock, and its replacement then; undefined: none. Default: no object ends. */
  readonly ending?: ((value: T) => { readonly atMs: number; readonly left: T | undefined } | undefined) | undefined;
  /** Set for a collection that tenants write. */
  readonly budgeted?: Budgeted<T> | undefined;
}

export class Mirror<T> {
  readonly #options: MirrorOptions<T>;
  readonly #items = new Map<string, T>();
  readonly items: ReadonlyMap<string, T> = this.#items;
  /** Resource versions of wanted objects, including those that cannot be decoded; "" if it is forgotten. */
  readonly #versions = new Map<string, string>();
  readonly #unknown = new Set<string>();
  /** Keys of objects that were never valid. */
  readonly unknown: ReadonlySet<string> = this.#unknown;
  readonly #faults = new Map<string, string>();
  readonly #collection: Collection;

  /** An error of one must not keep changes from the others. */
  readonly #listeners: Listeners<Change<T>>;

  constructor(options: MirrorOptions<T>) {
    this.#options = options;
    const { log, name, onChange } = options;
    this.#listeners = new Listeners((error, { key }) =>
      log.error({ err: error, collection: name, key }, "Internal error while handling a change"),
    );
    if (onChange !== undefined) this.subscribe(onChange);
    this.#collection = { name: options.name, reduce: (key, bytes) => this.#reduce(key, bytes) };
  }

  /** Calls the listener in order, after `items` has changed. Returns the function that ends the subscription. */
  subscribe(listener: (change: Change<T>) => void): () => void {
    return this.#listeners.add(listener);
  }

  get problems(): readonly string[] {
    return [...this.#faults.values()];
  }

  /** Takes an object. Returns its key; undefined for an unwanted one. The same version again changes nothing. */
  set(object: KubeObject): string | undefined {
    const { keyOf, decode, log, name } = this.#options;
    const key = keyOf(object);
    const version = versionOf(object) ?? "";
    if (version !== "" && this.#versions.get(key) === version) return key;
    const before = this.#items.get(key);
    let value: T | undefined;
    try {
      value = decode(object, before);
      if (value !== undefined) value = this.#current(key, value);
    } catch (error) {
      const reason = messageOf(error);
      log.warn({ collection: name, key, reason }, "An object is invalid; its last valid state stays in use");
      if (!this.#hold(key, [before, reason])) return this.#forget(key);
      this.#versions.set(key, version);
      if (before === undefined) this.#unknown.add(key);
      this.#faults.set(key, `Of ${name}, ${key} cannot be used: ${reason}`);
      return key;
    }
    if (value === undefined) return this.#release(key);
    const kept = this.#fit(key, value, object);
    if (kept === undefined) return this.#forget(key);
    // An object that is not used is decoded again when it is listed.
    this.#keep(key, kept, kept === value ? version : "");
    return key;
  }

  #keep(key: string, value: T, version: string): void {
    const before = this.#items.get(key);
    this.#versions.set(key, version);
    this.#unknown.delete(key);
    this.#faults.delete(key);
    this.#items.set(key, value);
    this.#listeners.tell({ kind: "set", key, value, before });
  }

  /** Returns the object's value now. Its end schedules the change to the replacement. */
  #current(key: string, value: T): T | undefined {
    const end = this.#options.ending?.(value);
    if (end === undefined) return value;
    const restMs = end.atMs - Date.now();
    if (restMs <= 0) return end.left;
    const look = (): void => {
      const current = this.#items.get(key) === value ? this.#current(key, value) : value;
      if (current === undefined) this.#forget(key);
      else if (current !== value) this.#keep(key, current, this.#versions.get(key) ?? "");
    };
    setTimeout(look, Math.min(restMs, END_LOOK_MS)).unref();
    return value;
  }

  /** Returns the part of the object that may be kept; undefined if nothing may. */
  #fit(key: string, value: T, object: KubeObject): T | undefined {
    const { budgeted } = this.#options;
    if (budgeted === undefined) return value;
    const isTooLong = JSON.stringify(object).length > MAX_OBJECT_LENGTH;
    if (budgeted.budget.hold(this.#collection, key, isTooLong ? Number.POSITIVE_INFINITY : heapBytesOf(key, value)))
      return value;
    const left = budgeted.reduce?.(value);
    return left !== undefined && this.#hold(key, left, true) ? left : undefined;
  }

  #hold(key: string, value: unknown, isReduced = false): boolean {
    const { budgeted } = this.#options;
    return budgeted === undefined || budgeted.budget.hold(this.#collection, key, heapBytesOf(key, value), isReduced);
  }

  /** For the budget: another object takes this one's place. */
  #reduce(key: string, most: number): number {
    const value = this.#items.get(key);
    const left = value && this.#options.budgeted?.reduce?.(value);
    const bytes = heapBytesOf(key, left);
    if (left === undefined || bytes >= most) {
      this.#forget(key);
      return 0;
    }
    this.#keep(key, left, "");
    return bytes;
  }

  /** Gives back its part of the budget. */
  close(): void {
    this.#options.budgeted?.budget.releaseAll(this.#collection);
  }

  /** Whether a list may find room for objects that had none. */
  get mayHaveRoom(): boolean {
    return this.#options.budgeted?.budget.hasRoomFor(this.#collection) === true;
  }

  /** A list begins. */
  forgetUnused(): void {
    this.#options.budgeted?.budget.forgetUnused(this.#collection);
  }

  delete(object: KubeObject): void {
    this.#release(this.#options.keyOf(object));
  }

  /** Forgets all versions: the server has gone back in time, and assigns versions again. */
  forgetVersions(): void {
    for (const key of this.#versions.keys()) this.#versions.set(key, "");
  }

  /** Forgets objects that are not among `keys`. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of this.#versions.keys()) if (!keys.has(key)) this.#release(key);
  }

  /** Returns key and version of the object that was written last. */
  newest(): { readonly key: string; readonly version: string } | undefined {
    let newest: { key: string; version: string } | undefined;
    for (const [key, version] of this.#versions)
      if (isVersion(version) && (newest === undefined || BigInt(version) > BigInt(newest.version)))
        newest = { key, version };
    return newest;
  }

  #release(key: string): undefined {
    const { keepsLast, log, name } = this.#options;
    if (keepsLast?.(key) === true && this.#items.has(key)) {
      this.#versions.set(key, "");
      this.#faults.set(key, `Of ${name}, ${key} is missing: its last content stays in force`);
      log.warn({ collection: name, key }, "An object is missing; its last content stays in force");
      return;
    }
    this.#forget(key);
    this.#options.budgeted?.budget.release(this.#collection, key);
  }

  #forget(key: string): undefined {
    this.#versions.delete(key);
    this.#unknown.delete(key);
    this.#faults.delete(key);
    const before = this.#items.get(key);
    if (before === undefined) return;
    this.#items.delete(key);
    this.#listeners.tell({ kind: "gone", key, before });
  }
}

/** `metadata.resourceVersion` */
export function versionOf({ metadata }: KubeObject): string | undefined {
  const isThere = typeof metadata === "object" && metadata !== null && "resourceVersion" in metadata;
  if (!isThere || typeof metadata.resourceVersion !== "string" || metadata.resourceVersion === "") return undefined;
  return metadata.resourceVersion;
}

/** Versions are numbers in practice. */
export function isVersion(text: string): boolean {
  return /^[0-9]+$/.test(text);
}
