/**
 * One collection of the API server as a map that follows it: a list, then watches from there, for as long as it is open.
 * Effects: calls and watches; tells its owner of each change.
 */
import { Latch } from "../lib/latch.ts";
import type { Log } from "../lib/log.ts";
import { pause } from "./http/deadline.ts";
import { describeFailure, pauseMs } from "./http/retry.ts";
import { KindArrival } from "./kind-arrival.ts";
import {
  ApiError,
  type KubeApi,
  type KubeCall,
  type KubeObject,
  METADATA,
  METADATA_LIST,
  type WatchEvent,
} from "./kube-api.ts";
import { listPages, type Page } from "./list.ts";
import { type Change, isVersion, Mirror } from "./mirror.ts";

/** After how long the server ends a watch at the earliest: seconds. It is a random time up to twice as long, so that not all agents come back at once. @limit */
export const WATCH_LIFE_S = 300;

/** How often a collection that the server does not know is looked for again when no event says that its kind was installed: milliseconds. @limit */
export const MISSING_KIND_RETRY_MS = 30_000;

/** How long one page of a list is tried: milliseconds. Then its reflector says that the server cannot be reached, and goes on trying. @limit */
export const LIST_PATIENCE_MS = 10_000;

/** How long after an outage a watch may keep silent about an object that has changed meanwhile: milliseconds. Then all are listed: etcd may be an older copy. @limit */
export const MISSED_CHANGE_MS = 2_000;

/** A watch that ends sooner counts as a failure, after which there is a pause: milliseconds. @limit */
export const WATCH_SHORT_MS = 2_000;

export interface ReflectorOptions<T> {
  readonly api: KubeApi;
  /** For problems and logs: `pods of this node`. */
  readonly name: string;
  /** Of the collection: `/api/v1/pods`. */
  readonly path: string;
  /** `spec.nodeName=n1` */
  readonly fieldSelector?: string | undefined;
  /** `component in (a,b)` */
  readonly labelSelector?: string | undefined;
  /** Asks for nothing but the metadata of the objects. */
  readonly metadataOnly?: boolean;
  /** Throws for an object that cannot be used; its last good value then stays. Undefined: it counts as not there, and costs no memory. */
  readonly decode: (object: KubeObject, before: T | undefined) => T | undefined;
  readonly keyOf: (object: KubeObject) => string;
  /** Told in order, after `items` has changed. */
  readonly onChange: (change: Change<T>) => void;
  /** Told once, when the first list is complete. */
  readonly onSynced?: () => void;
  /** A collection that the server does not know counts as empty, until its kind is installed (kind-arrival.ts). */
  readonly optional?: boolean;
  /** How often such a collection is looked for without news of its kind: milliseconds. Default MISSING_LOOK_MS. */
  readonly missingKindRetryMs?: number | undefined;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface ReflectorStats {
  /** Of watches. */
  readonly bytes: number;
  /** That were complete. */
  readonly lists: number;
  readonly watches: number;
  readonly events: number;
}

export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #mirror: Mirror<T>;
  readonly #closing = new AbortController();
  readonly #synced = new Latch();
  readonly #counts = { bytes: 0, lists: 0, watches: 0, events: 0 };
  #isSynced = false;
  /** From where the next watch tells; undefined: a list is due. */
  #version: string | undefined;
  /** The last one that was known. */
  #seenVersion = "";
  /** Whether the server may be another one than before: the last turn failed. */
  #needsVersionCheck = false;
  /** The key of an object that is no longer as it was: the watch has yet to say so. */
  #missing: string | undefined;
  /** Failures since the last event, or since a watch lasted. */
  #failures = 0;
  #unreachable: string | undefined;
  /** While the server does not know the collection. */
  #arrival: KindArrival | undefined;
  #running: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#mirror = new Mirror(options);
  }

  get items(): ReadonlyMap<string, T> {
    return this.#mirror.items;
  }

  /** Whether the map was complete once. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Keys of objects that `decode` refused. */
  get undecodable(): ReadonlySet<string> {
    return this.#mirror.undecodable;
  }

  /** Sentences without their end: why the map may be incomplete or old. */
  get problems(): readonly string[] {
    return [...(this.#unreachable === undefined ? [] : [this.#unreachable]), ...this.#mirror.problems];
  }

  get stats(): ReflectorStats {
    return { ...this.#counts };
  }

  /** Resolves when the map is complete for the first time. Rejects when the signal ends or the reflector is closed. */
  synced(signal?: AbortSignal): Promise<void> {
    return this.#synced.wait(signal);
  }

  /** Once. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when it has let go of the server; nothing is told any more. */
  async close(): Promise<void> {
    const closed = new Error(`The reflector of ${this.#options.name} was closed`);
    this.#closing.abort(closed);
    this.#synced.fail(closed);
    await this.#running;
    await this.#arrival?.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const waitMs = await this.#turn().catch((error: unknown) => this.#waitAfter(error));
      if (this.#arrival !== undefined) await this.#arrival.next(waitMs, signal).catch(() => {});
      else if (waitMs > 0) await pause(waitMs, signal).catch(() => {});
    }
  }

  /** A list when one is due, and a watch until its end. Gives the pause before the next turn, in milliseconds. */
  async #turn(): Promise<number> {
    if (this.#needsVersionCheck && this.#version !== undefined && (await this.#hasGoneBack()))
      this.#version = undefined;
    this.#needsVersionCheck = false;
    this.#version ??= await this.#list();
    const startedMs = performance.now();
    const isShort = () => performance.now() - startedMs < WATCH_SHORT_MS;
    try {
      await this.#watch(this.#version);
    } finally {
      if (!isShort()) this.#failures = 0;
    }
    return isShort() ? pauseMs(this.#failures++, this.#options.random()) : 0;
  }

  /**
   * Whether etcd was restored from a copy. The server then takes a watch from a version that it does not have yet, and is silent until it
   * has; or it has overtaken us, and never tells what was undone. So the newest object is asked for. If it is not the one that we know,
   * the watch must tell of that soon.
   */
  async #hasGoneBack(): Promise<boolean> {
    const newest = this.#mirror.newest();
    const [name, namespace] = newest?.key.split("/").reverse() ?? [];
    const one = { "metadata.name": name, "metadata.namespace": namespace };
    const fields = Object.entries(one).flatMap(([field, value]) => (value === undefined ? [] : [`${field}=${value}`]));
    const fieldSelector = [this.#options.fieldSelector ?? [], fields].flat().join(",") || undefined;
    // One attempt: whether it fails is what our owner wants to hear of.
    for await (const page of this.#pages({ limit: 1, fieldSelector }, 0)) {
      if (isEarlier(page.resourceVersion, this.#seenVersion)) return true;
      const isKnown = page.items.some((item) => this.#mirror.versionOf(item) === newest?.version);
      this.#missing = isKnown ? undefined : newest?.key;
    }
    return false;
  }

  #pages(query: KubeCall["query"] = {}, patienceMs = LIST_PATIENCE_MS): AsyncGenerator<Page> {
    const { api, path, fieldSelector, labelSelector, metadataOnly = false } = this.#options;
    const { signal } = this.#closing;
    const accept = metadataOnly ? METADATA_LIST : undefined;
    return listPages(api, { path, query: { fieldSelector, labelSelector, ...query }, accept, patienceMs, signal });
  }

  async #list(): Promise<string> {
    const { log, name } = this.#options;
    const seen = new Set<string>();
    this.#missing = undefined;
    let version = "";
    for await (const page of this.#pages()) {
      if (isEarlier(page.resourceVersion, this.#seenVersion)) this.#mirror.forgetVersions();
      this.#seenVersion = page.resourceVersion;
      for (const item of page.items) {
        const key = this.#mirror.set(item);
        if (key !== undefined) seen.add(key);
      }
      version = page.resourceVersion;
    }
    this.#mirror.keepOnly(seen);
    this.#counts.lists++;
    void this.#arrival?.close();
    this.#arrival = undefined;
    log.debug({ collection: name, objects: seen.size, resourceVersion: version }, "Listed");
    this.#reached();
    this.#complete();
    return version;
  }

  async #watch(version: string): Promise<void> {
    const { api, path, fieldSelector, labelSelector, metadataOnly = false, random } = this.#options;
    this.#counts.watches++;
    const untold = new AbortController();
    const timer = setTimeout(() => {
      if (this.#missing !== undefined) untold.abort(new MissedChange(this.#missing));
    }, MISSED_CHANGE_MS);
    try {
      await api.watch({
        path,
        accept: metadataOnly ? METADATA : undefined,
        query: {
          fieldSelector,
          labelSelector,
          resourceVersion: version,
          allowWatchBookmarks: true,
          timeoutSeconds: Math.floor(WATCH_LIFE_S * (1 + random())),
        },
        onOpen: () => this.#reached(),
        onEvent: (event) => this.#take(event),
        onBytes: (bytes) => {
          this.#counts.bytes += bytes;
        },
        signal: AbortSignal.any([this.#closing.signal, untold.signal]),
      });
    } finally {
      clearTimeout(timer);
    }
  }

  #take({ type, object }: WatchEvent): void {
    this.#counts.events++;
    if (type !== "BOOKMARK" && this.#options.keyOf(object) === this.#missing) this.#missing = undefined;
    if (type === "DELETED") this.#mirror.delete(object);
    else if (type !== "BOOKMARK") this.#mirror.set(object);
    this.#seenVersion = this.#mirror.versionOf(object) ?? this.#seenVersion;
    this.#version = this.#seenVersion;
    this.#failures = 0;
    this.#reached();
  }

  /** The server has answered: there is no outage. */
  #reached(): void {
    if (this.#unreachable === undefined) return;
    this.#unreachable = undefined;
    this.#options.log.info({ collection: this.#options.name }, "The API server answers again");
  }

  #complete(): void {
    if (this.#isSynced) return;
    this.#isSynced = true;
    this.#synced.open();
    this.#options.onSynced?.();
  }

  /** What follows from a failed turn, and the pause before the next one. */
  #waitAfter(error: unknown): number {
    if (this.#closing.signal.aborted) return 0;
    const { optional = false, missingKindRetryMs = MISSING_KIND_RETRY_MS, random, log, name } = this.#options;
    this.#needsVersionCheck = true;
    if (error instanceof ApiError && error.status === 404 && optional) {
      this.#version = undefined;
      this.#mirror.keepOnly(new Set());
      this.#failures = 0;
      this.#reached();
      this.#complete();
      this.#arrival ??= new KindArrival(this.#options);
      return missingKindRetryMs;
    }
    const waitMs = pauseMs(this.#failures++, random());
    if (isOutdated(error)) {
      this.#version = undefined;
      // The first time is how things go: events are kept for minutes.
      return this.#failures === 1 ? 0 : waitMs;
    }
    // One broken connection that is opened again at once is no problem.
    if (this.#unreachable === undefined && (this.#failures > 1 || !this.#isSynced))
      log.warn({ collection: name, reason: describeFailure(error) }, "Watching the API server failed; retrying");
    if (this.#failures > 1 || !this.#isSynced) this.#unreachable = `Cannot follow ${name}: ${describeFailure(error)}`;
    return waitMs;
  }
}

/** Versions are numbers that grow, unless etcd was restored from a copy. */
function isEarlier(version: string, seen: string): boolean {
  return isVersion(version) && isVersion(seen) && BigInt(version) < BigInt(seen);
}

/** Whether the version to watch from is one that the server no longer has, or never had. */
function isOutdated(error: unknown): boolean {
  return error instanceof MissedChange || (error instanceof ApiError && error.status === 410);
}

/** An object has changed, and a watch from before says nothing of it: history is another one. */
class MissedChange extends Error {
  constructor(key: string) {
    super(`No event told what became of ${key}`);
  }
}
