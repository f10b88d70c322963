/**
 * Mirrors one collection of the API server: a list, then watches from there. The map outlives an outage; `problems`
 * says when it may be out of date.
 */
import { Latch } from "../lib/latch.ts";
import { describeFailure, LARGE_EVENT_PAUSE, pause, pauseMs } from "./http/retry.ts";
import { ApiError, type KubeApi, type KubeCall, METADATA, METADATA_LIST, type WatchEvent } from "./kube-api.ts";
import { listPages, type Page } from "./list.ts";
import { type Change, isVersion, Mirror, type MirrorOptions, versionOf } from "./mirror.ts";

/**
 * Time for which one page of a list is tried: milliseconds. Then the reflector reports that the server cannot be
 * reached, and keeps trying.
 */
const LIST_PATIENCE_MS = 10_000;

/**
 * Time for which a watch may lack a known change after an outage: milliseconds. Then everything is listed: etcd may
 * have been restored from a backup.
 */
const MISSED_CHANGE_MS = 2_000;

/** Retry interval for a collection whose kind is not installed: milliseconds, less a random half. */
export const MISSING_KIND_RETRY_MS = 10_000;

/**
 * Shortest life of a watch: seconds. The server ends it after a random time up to twice as long, so that agents do
 * not reconnect all at once.
 */
const WATCH_LIFE_S = 300;

/** A watch that ends sooner counts as a failure, with a pause: milliseconds. */
const WATCH_SHORT_MS = 2_000;

/** Silence of a watch after which it may have missed changes: milliseconds. Bookmarks come every minute. */
const GAP_MS = 480_000;

/** Decoding an object of a list that took longer is followed by a pause, as with a large event: milliseconds. */
const LONG_DECODING_MS = 2;

/** Longest such pause: milliseconds. On a busy machine a time is mostly that of others, and a list has to end. */
const LONGEST_PAUSE_MS = 10;

export interface ReflectorOptions<T> extends MirrorOptions<T> {
  readonly api: KubeApi;
  /** Path of the collection: `/api/v1/pods`. */
  readonly path: string;
  /** `spec.nodeName=n1` */
  readonly fieldSelector?: string | undefined;
  /** `component in (a,b)` */
  readonly labelSelector?: string | undefined;
  /** Requests only the objects' metadata. */
  readonly metadataOnly?: boolean;
  /** A collection that the server does not know counts as empty until its kind is installed. */
  readonly optional?: boolean;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

export interface ReflectorStats {
  /** Received by watches. */
  readonly bytes: number;
  /** Complete ones. */
  readonly lists: number;
  readonly watches: number;
  readonly events: number;
  /** When an event, a bookmark or a complete list came last, by the wall clock; undefined if none has. */
  readonly lastEventMs: number | undefined;
}

export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #mirror: Mirror<T>;
  readonly items: ReadonlyMap<string, T>;
  readonly unknown: ReadonlySet<string>;
  readonly #closing = new AbortController();
  readonly #synced = new Latch();
  readonly #onSynced: (() => void)[] = [];
  readonly #counts = { bytes: 0, lists: 0, watches: 0, events: 0 };
  #lastEventMs: number | undefined;
  #heardSinceMs = 0;
  /** When the server last answered after a failure, by the monotonic clock: milliseconds. */
  answeredMs = Number.NEGATIVE_INFINITY;
  /** Whether the map has been complete once. */
  isSynced = false;
  /** Version from which to watch; undefined if a list is due. */
  #version: string | undefined;
  /** All changes up to this version were told; "" before the first list. */
  version = "";
  /** Of the last attempt: the server may be another one when it answers again. */
  #lastFailure: unknown;
  /** Key of an object that is known to have changed, until the watch reports it. */
  #missing: string | undefined;
  /** Failures since the last event, or since a watch that lasted. */
  #failures = 0;
  #unreachable: string | undefined;
  /** Open while a watch is. */
  #watching = new Latch();
  /** Since when none is, by the wall clock; undefined while one is. */
  #silentSinceMs: number | undefined = Date.now();
  #running: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#mirror = new Mirror(options);
    this.items = this.#mirror.items;
    this.unknown = this.#mirror.unknown;
  }

  /** As {@link Mirror.subscribe}. */
  subscribe(listener: (change: Change<T>) => void): () => void {
    return this.#mirror.subscribe(listener);
  }

  /** Sentences without a full stop: why the map may be incomplete or out of date. */
  get problems(): readonly string[] {
    return [...(this.#unreachable === undefined ? [] : [this.#unreachable]), ...this.#mirror.problems];
  }

  get stats(): ReflectorStats {
    return { ...this.#counts, lastEventMs: this.#lastEventMs };
  }

  /** Calls the listener once, when the first list is complete. */
  onSynced(listener: () => void): void {
    this.#onSynced.push(listener);
  }

  /** Resolves when the map is complete for the first time. Rejects when the signal ends or the reflector is closed. */
  synced(signal?: AbortSignal): Promise<void> {
    return this.#synced.wait(signal);
  }

  /** Whether a watch is open: changes on the server are known, or will be at once. */
  get isWatching(): boolean {
    return this.#silentSinceMs === undefined;
  }

  /** A sentence without a full stop: since when no watch is open, and why. */
  get silence(): string {
    const since = new Date(this.#silentSinceMs ?? this.#lastEventMs ?? Date.now()).toISOString();
    const what = this.#lastFailure instanceof ApiError ? "refused this node's watch" : "not answered";
    const why = this.#lastFailure === undefined ? "" : `: ${describeFailure(this.#lastFailure)}`;
    return `The API server has ${what} since ${since}${why}`;
  }

  /** Resolves when a watch is open. Rejects when the signal ends or the reflector is closed. */
  watching(signal?: AbortSignal): Promise<void> {
    return this.#watching.wait(signal);
  }

  /** Since when events have come without a gap of eight minutes, by the wall clock: milliseconds. Now, after one. */
  get heardSinceMs(): number {
    return this.#isGap ? Date.now() : this.#heardSinceMs;
  }

  /** Call it once. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when it has disconnected; no change is reported any more. */
  async close(): Promise<void> {
    const closed = new Error(`The reflector of ${this.#options.name} was closed`);
    this.#closing.abort(closed);
    this.#synced.fail(closed);
    this.#watching.fail(closed);
    await this.#running;
    this.#mirror.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const waitMs = await this.#turn().catch((error: unknown) => this.#waitAfter(error));
      if (waitMs > 0) await pause(waitMs, signal).catch(() => {});
    }
  }

  /** Lists if a list is due, and watches until the watch ends. Returns the pause before the next turn: milliseconds. */
  async #turn(): Promise<number> {
    const mayBeAnother = this.#lastFailure !== undefined && this.#version !== undefined;
    if (this.#mirror.mayHaveRoom || (mayBeAnother && (await this.#hasGoneBack()))) this.#version = undefined;
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
   * Whether etcd was restored from a backup. The server then accepts a watch from a version that it does not have yet,
   * and is silent until it has it; or it has overtaken that version, and never reports lost changes. So the newest
   * object is read. If it differs from the known one, the watch must report that soon.
   */
  async #hasGoneBack(): Promise<boolean> {
    const newest = this.#mirror.newest();
    // One attempt: the owner should hear of its failure.
    for await (const page of this.#pages(this.#selecting(newest?.key), 0)) {
      if (isEarlier(page.resourceVersion, this.version)) return true;
      const isKnown = page.items.some((item) => versionOf(item) === newest?.version);
      this.#missing = isKnown ? undefined : newest?.key;
    }
    return false;
  }

  /** Selects the one object, if there is a key. */
  #selecting(key: string | undefined): KubeCall["query"] {
    const [name, namespace] = key?.split("/").reverse() ?? [];
    const one = { "metadata.name": name, "metadata.namespace": namespace };
    const fields = Object.entries(one).flatMap(([field, value]) => (value === undefined ? [] : [`${field}=${value}`]));
    const fieldSelector = [this.#options.fieldSelector ?? [], fields].flat().join(",") || undefined;
    return { limit: 1, fieldSelector };
  }

  async *#pages(query: KubeCall["query"] = {}, patienceMs = LIST_PATIENCE_MS): AsyncGenerator<Page> {
    const { api, path, fieldSelector, labelSelector, metadataOnly = false } = this.#options;
    const { signal } = this.#closing;
    const accept = metadataOnly ? METADATA_LIST : undefined;
    const selected = { fieldSelector, labelSelector, ...query };
    const { history } = api;
    // A list of all may come from a cache that is behind.
    const before = selected.fieldSelector === undefined ? undefined : history?.version;
    for await (const page of listPages(api, { path, query: selected, accept, patienceMs, signal })) {
      history?.answered(page.resourceVersion, before);
      yield page;
    }
  }

  async #list(): Promise<string> {
    const { log, name } = this.#options;
    const seen = new Set<string>();
    this.#missing = undefined;
    this.#mirror.forgetUnused();
    let version = "";
    for await (const page of this.#pages()) {
      if (isEarlier(page.resourceVersion, this.version)) this.#mirror.forgetVersions();
      this.version = page.resourceVersion;
      for (const item of page.items) {
        const startedMs = performance.now();
        const key = this.#mirror.set(item);
        if (key !== undefined) seen.add(key);
        const tookMs = performance.now() - startedMs;
        if (tookMs > LONG_DECODING_MS)
          await pause(Math.min(LARGE_EVENT_PAUSE * tookMs, LONGEST_PAUSE_MS), this.#closing.signal);
      }
      version = page.resourceVersion;
    }
    this.#mirror.keepOnly(seen);
    this.#counts.lists++;
    this.#heard();
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
        onOpen: () => {
          this.#silentSinceMs = undefined;
          this.#watching.open();
          this.#reached();
        },
        onEvent: (event) => this.#take(event),
        onBytes: (bytes) => {
          this.#counts.bytes += bytes;
        },
        signal: AbortSignal.any([this.#closing.signal, untold.signal]),
      });
    } finally {
      clearTimeout(timer);
      if (this.isWatching) this.#watching = new Latch();
      this.#silentSinceMs ??= Date.now();
    }
  }

  #take({ type, object }: WatchEvent): void {
    this.#counts.events++;
    this.#heard();
    if (type !== "BOOKMARK" && this.#options.keyOf(object) === this.#missing) this.#missing = undefined;
    if (type === "DELETED") this.#mirror.delete(object);
    else if (type !== "BOOKMARK") this.#mirror.set(object);
    this.version = versionOf(object) ?? this.version;
    this.#options.api.history?.answered(this.version);
    this.#version = this.version;
    this.#failures = 0;
    this.#reached();
  }

  /** Also if the machine was suspended, or its clock has jumped. */
  get #isGap(): boolean {
    return Math.abs(Date.now() - (this.#lastEventMs ?? 0)) >= GAP_MS;
  }

  #heard(): void {
    if (this.#isGap) this.#heardSinceMs = Date.now();
    this.#lastEventMs = Date.now();
  }

  /** The server has answered: the outage is over. */
  #reached(): void {
    if (this.#lastFailure !== undefined) this.answeredMs = performance.now();
    this.#lastFailure = undefined;
    if (this.#unreachable === undefined) return;
    this.#unreachable = undefined;
    this.#options.log.info({ collection: this.#options.name }, "The API server answers again");
  }

  #complete(): void {
    if (this.isSynced) return;
    this.isSynced = true;
    this.#synced.open();
    for (const listener of this.#onSynced) listener();
  }

  /** Handles a failed turn. Returns the pause before the next one. */
  #waitAfter(error: unknown): number {
    if (this.#closing.signal.aborted) return 0;
    const { optional = false, random, log, name } = this.#options;
    this.#lastFailure = error;
    if (error instanceof ApiError && error.status === 404 && optional) {
      this.#version = undefined;
      this.#mirror.keepOnly(new Set());
      this.#failures = 0;
      this.#reached();
      this.#complete();
      return MISSING_KIND_RETRY_MS * (0.5 + random() / 2);
    }
    const waitMs = pauseMs(this.#failures++, random());
    // The server no longer has the version to watch from, or never had it.
    if (error instanceof MissedChange || (error instanceof ApiError && error.status === 410)) {
      this.#version = undefined;
      // Expected once: the server keeps events for minutes.
      return this.#failures === 1 ? 0 : waitMs;
    }
    // One broken connection that is reopened at once is not a problem.
    if (this.#unreachable === undefined && (this.#failures > 1 || !this.isSynced))
      log.warn({ collection: name, reason: describeFailure(error) }, "Watching the API server failed; retrying");
    if (this.#failures > 1 || !this.isSynced) this.#unreachable = `Cannot follow ${name}: ${describeFailure(error)}`;
    return waitMs;
  }
}

/** Versions grow, unless etcd was restored from a backup. */
function isEarlier(version: string, seen: string): boolean {
  return isVersion(version) && isVersion(seen) && BigInt(version) < BigInt(seen);
}

/** A change that the watch, of another history, does not report, but a list shows. */
class MissedChange extends Error {
  constructor(key: string) {
    super(`No event told what became of ${key}`);
  }
}
