/**
 * All writes to a range of etcd's keys in their order, and places in that order that a test can wait for.
 *
 *   const stream = openStream(etcd, { range, markKey, fromRevision, onKey, onFailure });
 *   await stream.mark();                              // all writes up to now have been passed on
 *
 * A place is marked by writing a key of its own, the last of the range: what was written before the mark comes before
 * it in the watch.
 * Effects: a watch of etcd; a key beside the API server's.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Etcd, type EtcdKey, type EtcdRange, WatchEnded } from "./etcd.ts";

export interface StreamOptions {
  /** With the mark's key in it. */
  readonly range: EtcdRange;
  readonly markKey: string;
  /** The first one that is passed on. */
  readonly fromRevision: number;
  onKey(key: EtcdKey): void;
  /** Nothing is passed on any more. */
  onFailure(error: unknown): void;
}

export interface Stream {
  /** Resolves when all writes before the call have been passed on. Rejects if etcd fails. */
  mark(): Promise<void>;
  close(): void;
}

/** How long etcd may be away. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 100;

/** The caller closes `etcd` after the stream. */
export function openStream(etcd: Etcd, options: StreamOptions): Stream {
  const { markKey, onFailure } = options;
  const marks = new Marks(etcd, markKey);
  const following = new AbortController();
  const onKey = (key: EtcdKey): void => {
    if (key.key === markKey) marks.reached(Number(key.value));
    else options.onKey(key);
  };
  follow(etcd, { ...options, onKey }, following.signal).catch((error: unknown) => {
    if (!following.signal.aborted) onFailure(error);
    marks.fail(error);
  });
  return { mark: () => marks.next(), close: () => following.abort() };
}

/** Watches for as long as it is wanted; an etcd that has been away is asked for what came after the last write seen. */
async function follow(
  etcd: Etcd,
  { range, fromRevision, onKey }: Pick<StreamOptions, "range" | "fromRevision" | "onKey">,
  signal: AbortSignal,
): Promise<void> {
  let next = fromRevision;
  let sinceMs: number | undefined;
  while (!signal.aborted) {
    try {
      await etcd.watch(range, next, (key) => {
        next = key.revision + 1;
        onKey(key);
      });
      sinceMs = undefined;
    } catch (error) {
      sinceMs ??= performance.now();
      if (error instanceof WatchEnded || performance.now() - sinceMs > PATIENCE_MS) throw error;
    }
    await sleep(PAUSE_MS);
  }
}

/** Writes marks, one at a time: those who ask meanwhile share the next one. */
class Marks {
  readonly #etcd: Etcd;
  readonly #key: string;
  #number = 0;
  #isWriting = false;
  #failure: unknown;
  #waiting: Waiting[] = [];
  readonly #written = new Map<number, Waiting[]>();

  constructor(etcd: Etcd, key: string) {
    this.#etcd = etcd;
    this.#key = key;
  }

  next(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiting.push({ resolve, reject });
      if (!this.#isWriting) void this.#write();
    });
  }

  reached(number: number): void {
    for (const { resolve } of this.#written.get(number) ?? []) resolve();
    this.#written.delete(number);
  }

  fail(error: unknown): void {
    this.#failure = error;
    for (const { reject } of [...this.#waiting, ...this.#written.values()].flat()) reject(error);
    this.#waiting = [];
    this.#written.clear();
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const number = ++this.#number;
      this.#written.set(number, this.#waiting);
      this.#waiting = [];
      try {
        await this.#etcd.put(this.#key, `${number}`);
      } catch {
        // It may be away: these wait for the next mark.
        this.#waiting.push(...(this.#written.get(number) ?? []));
        this.#written.delete(number);
        await sleep(PAUSE_MS);
      }
    }
    this.#isWriting = false;
  }
}

interface Waiting {
  resolve(): void;
  reject(error: unknown): void;
}
