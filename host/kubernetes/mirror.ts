/**
 * The map of a reflector: objects as they came to values, changes told once, objects that cannot be decoded reported.
 */
import { messageOf } from "../lib/describe.ts";
import type { Log } from "../lib/log.ts";
import type { KubeObject } from "./kube-api.ts";

export type Change<T> =
  /** `before` is undefined for an object that is new. */
  | { readonly kind: "set"; readonly key: string; readonly value: T; readonly before: T | undefined }
  | { readonly kind: "gone"; readonly key: string; readonly before: T };

export interface MirrorOptions<T> {
  readonly name: string;
  readonly decode: (object: KubeObject, before: T | undefined) => T | undefined;
  readonly keyOf: (object: KubeObject) => string;
  readonly onChange: (change: Change<T>) => void;
  readonly log: Log;
}

export class Mirror<T> {
  readonly #options: MirrorOptions<T>;
  readonly #items = new Map<string, T>();
  /** Resource versions of all objects that are wanted, also of those that cannot be decoded. */
  readonly #versions = new Map<string, string>();
  readonly #undecodable = new Set<string>();
  /** Why, per key of `#undecodable`. */
  readonly #faults = new Map<string, string>();

  constructor(options: MirrorOptions<T>) {
    this.#options = options;
  }

  get items(): ReadonlyMap<string, T> {
    return this.#items;
  }

  get undecodable(): ReadonlySet<string> {
    return this.#undecodable;
  }

  get problems(): readonly string[] {
    return [...this.#faults.values()];
  }

  /** Takes an object as it is now; gives its key, or undefined for one that is not wanted. The same version again changes nothing. */
  set(object: KubeObject): string | undefined {
    const { keyOf, decode, log, name } = this.#options;
    const key = keyOf(object);
    const version = this.versionOf(object);
    if (version !== undefined && this.#versions.get(key) === version) return key;
    this.#versions.set(key, version ?? "");
    const before = this.#items.get(key);
    let value: T | undefined;
    try {
      value = decode(object, before);
    } catch (error) {
      const reason = messageOf(error);
      log.warn({ collection: name, key, reason }, "An object is invalid; its last valid state stays in use");
      this.#undecodable.add(key);
      this.#faults.set(key, `Of ${name}, ${key} cannot be used: ${reason}`);
      return key;
    }
    if (value === undefined) {
      this.#forget(key);
      return undefined;
    }
    this.#undecodable.delete(key);
    this.#faults.delete(key);
    this.#items.set(key, value);
    this.#tell({ kind: "set", key, value, before });
    return key;
  }

  delete(object: KubeObject): void {
    this.#forget(this.#options.keyOf(object));
  }

  /** Takes no version for known any more: the server has gone back in time, and gives versions out again. */
  forgetVersions(): void {
    for (const key of this.#versions.keys()) this.#versions.set(key, "");
  }

  /** Forgets what is not among `keys`. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of [...this.#versions.keys()]) if (!keys.has(key)) this.#forget(key);
  }

  /** The object that was written last of all that are there: its key and version. */
  newest(): { readonly key: string; readonly version: string } | undefined {
    let newest: { key: string; version: string } | undefined;
    for (const [key, version] of this.#versions)
      if (isVersion(version) && (newest === undefined || BigInt(version) > BigInt(newest.version)))
        newest = { key, version };
    return newest;
  }

  /** `metadata.resourceVersion` */
  versionOf({ metadata }: KubeObject): string | undefined {
    const isThere = typeof metadata === "object" && metadata !== null && "resourceVersion" in metadata;
    if (!isThere || typeof metadata.resourceVersion !== "string" || metadata.resourceVersion === "") return undefined;
    return metadata.resourceVersion;
  }

  #forget(key: string): void {
    this.#versions.delete(key);
    this.#undecodable.delete(key);
    this.#faults.delete(key);
    const before = this.#items.get(key);
    if (before === undefined) return;
    this.#items.delete(key);
    this.#tell({ kind: "gone", key, before });
  }

  /** An owner that throws has a bug, which must not keep the others from their news. */
  #tell(change: Change<T>): void {
    try {
      this.#options.onChange(change);
    } catch (error) {
      const { log, name } = this.#options;
      log.error({ err: error, collection: name, key: change.key }, "Internal error while handling a change");
    }
  }
}

/** Versions are numbers, as far as anybody may know. */
export function isVersion(text: string): boolean {
  return /^[0-9]+$/.test(text);
}
