/**
 * When to retry a collection that the API server does not know: at once when its kind is installed, else rarely.
 *
 * An optional kind may be installed at any time, and pods that need it start a second later. Retrying every second
 * would be 5,000 requests a second in a cluster of 5,000 nodes, for ever if the kind is never installed. So the one
 * CustomResourceDefinition that would create it is watched by name, with metadata only: an idle watch, and only while
 * the kind is missing. After an event the nodes' retries are spread, since all receive it at the same moment. Kinds
 * without such an object, and servers that refuse the watch, are retried every MISSING_KIND_RETRY_MS.
 */

import { Latch } from "../lib/latch.ts";
import { pause, pauseMs } from "./http/retry.ts";
import { ApiError, type KubeApi, METADATA, type WatchEvent } from "./kube-api.ts";
import { collectionPath, type Resource } from "./paths.ts";

/**
 * Time over which nodes' retries are spread after a kind was installed: milliseconds. Further retries follow after
 * twice that time, four times, and so on.
 */
export const KIND_RETRY_SPREAD_MS = 500;

const DEFINITIONS: Resource = { apiVersion: "apiextensions.k8s.io/v1", plural: "customresourcedefinitions" };

/** Kinds of Kubernetes itself are not installed by a definition. */
const BUILT_IN = /(?:^|\.)k8s\.io$/;

/**
 * Returns the name of the definition behind `/apis/GROUP/VERSION/PLURAL`, `PLURAL.GROUP`; undefined if there can be
 * none.
 */
function definitionOf(path: string): string | undefined {
  const [, group, plural] = /^\/apis\/([^/]+)\/[^/]+\/([^/]+)$/.exec(path) ?? [];
  if (group === undefined || !group.includes(".") || BUILT_IN.test(group)) return undefined;
  return `${plural}.${group}`;
}

interface KindArrivalOptions {
  readonly api: KubeApi;
  /** Path of the missing collection. */
  readonly path: string;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

export class KindArrival {
  readonly #options: KindArrivalOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** Whether the definition exists, so that the collection should follow soon. */
  #isDefined = false;
  /** Failed retries since the last event. */
  #retries = 0;
  #hasNews = false;
  #arrived = new Latch();

  /** Starts to watch. */
  constructor(options: KindArrivalOptions) {
    this.#options = options;
    const name = definitionOf(options.path);
    this.#running = name === undefined ? Promise.resolve() : this.#run(name);
  }

  /** Resolves when the next retry is worthwhile, at the latest after `longestMs`. Rejects with the signal's reason. */
  async next(longestMs: number, signal: AbortSignal): Promise<void> {
    const waitMs = this.#isDefined ? Math.min(KIND_RETRY_SPREAD_MS * 2 ** this.#retries++, longestMs) : longestMs;
    if (!this.#hasNews && !(await this.#hasArrived(waitMs, signal))) return;
    this.#hasNews = false;
    this.#retries = 0;
    await pause(this.#options.random() * KIND_RETRY_SPREAD_MS, signal);
  }

  /** Resolves when the watch has ended. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The kind was found"));
    await this.#running;
  }

  /** Returns whether there was an event of the definition within so many milliseconds. */
  async #hasArrived(waitMs: number, signal: AbortSignal): Promise<boolean> {
    const ended = new AbortController();
    const either = AbortSignal.any([signal, ended.signal]);
    this.#arrived = new Latch();
    const arrival = this.#arrived.wait(either).then(() => true);
    const quiet = pause(waitMs, either).then(() => false);
    try {
      return await Promise.race([arrival, quiet]);
    } finally {
      ended.abort();
      await Promise.allSettled([arrival, quiet]);
    }
  }

  async #run(name: string): Promise<void> {
    const { signal } = this.#closing;
    let failures = 0;
    while (!signal.aborted) {
      const waitMs = await this.#watch(name).then(
        () => pauseMs(0, this.#options.random()),
        (error: unknown) => (isRefusal(error) ? MISSING_KIND_RETRY_MS : pauseMs(failures++, this.#options.random())),
      );
      await pause(waitMs, signal).catch(() => {});
    }
  }

  /** Without a start version, the server reports an existing definition as well. */
  async #watch(name: string): Promise<void> {
    const { api, random } = this.#options;
    const timeoutSeconds = Math.floor(WATCH_LIFE_S * (1 + random()));
    await api.watch({
      path: collectionPath(DEFINITIONS),
      accept: METADATA,
      query: {
        fieldSelector: `metadata.name=${name}`,
        resourceVersion: "0",
        allowWatchBookmarks: true,
        timeoutSeconds,
      },
      onEvent: (event) => this.#take(event),
      signal: this.#closing.signal,
    });
  }

  #take({ type }: WatchEvent): void {
    if (type === "BOOKMARK") return;
    this.#isDefined = type !== "DELETED";
    if (!this.#isDefined) return;
    this.#hasNews = true;
    this.#arrived.open();
  }
}

/** Returns whether the server would answer the same soon. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && ![410, 429].includes(error.status);
}

/** Retry interval for a collection whose kind is not installed: milliseconds. */
export const MISSING_KIND_RETRY_MS = 30_000;

/**
 * Shortest life of a watch: seconds. The server ends it after a random time up to twice as long, so that agents do
 * not reconnect all at once.
 */
export const WATCH_LIFE_S = 300;
