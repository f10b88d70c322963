/**
 * All writes to a range of etcd's keys in their order, the time of each, and places in that order that a test can wait
 * for.
 *
 *   const stream = openStream(etcd, { range, markKey, fromRevision, onKey, onFailure });
 *   await stream.mark();                              // all writes up to now have been passed on
 *
 * A place is marked by writing a key of its own, the last of the range: earlier writes come before it in the watch.
 * Effects: a watch of etcd; a key beside the API server's.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Etcd, type EtcdKey, type EtcdRange, WatchEnded } from "./etcd.ts";

/** Two moments by performance.now(), between which something happened. */
export interface Period {
  readonly first: number;
  readonly last: number;
}

export interface StreamOptions {
  /** With the mark's key in it. */
  readonly range: EtcdRange;
  readonly markKey: string;
  /** The first revision that is passed on. */
  readonly fromRevision: number;
  /**
   * etcd keeps no times. A write is older than its arrival, and younger than the call of a mark that stands before it.
   */
  onKey(key: EtcdKey, atMs: Period): void;
  /** A mark is made so often, so that the times are known; default: never. */
  readonly tickMs?: number;
  /** Nothing is passed on any more. */
  onFailure(error: unknown): void;
}

export interface Stream {
  /** Resolves when all writes before the call have been passed on. Rejects if etcd fails. */
  mark(): Promise<void>;
  /** Passes on nothing until the work is done, and then changes after the revision that it returns. */
  pause(work: () => Promise<number>): Promise<void>;
  close(): void;
}

/** Time for which etcd may be away. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 100;

/** The caller closes `etcd` after the stream. */
export function openStream(etcd: Etcd, options: StreamOptions): Stream {
  const { markKey, onFailure, tickMs } = options;
  const marks = new Marks(etcd, markKey);
  const onKey = (key: EtcdKey): void => {
    if (key.key === markKey) marks.reached(Number(key.value));
    else options.onKey(key, { first: marks.reachedMs, last: performance.now() });
  };
  const start = (fromRevision: number): AbortController => {
    const following = new AbortController();
    follow(etcd, { ...options, fromRevision, onKey }, following.signal).catch((error: unknown) => {
      if (following.signal.aborted) return;
      onFailure(error);
      marks.fail(error);
    });
    return following;
  };
  let following = start(options.fromRevision);
  const timer = tickMs === undefined ? undefined : setInterval(() => marks.tick(), tickMs);
  return {
    mark: () => marks.next(),
    pause: async (work) => {
      following.abort();
      following = start(await work());
      marks.again();
    },
    close: () => {
      clearInterval(timer);
      following.abort();
      marks.fail(new Error("The history is no longer followed"));
    },
  };
}

/** Watches for as long as it is wanted; an etcd that is back is asked for changes since the last write seen. */
async function follow(
  etcd: Etcd,
  { range, fromRevision, onKey }: Pick<StreamOptions, "range" | "fromRevision"> & { onKey(key: EtcdKey): void },
  signal: AbortSignal,
): Promise<void> {
  let next = fromRevision;
  let sinceMs: number | undefined;
  while (!signal.aborted) {
    try {
      await etcd.watch(range, next, (key) => {
        if (signal.aborted) return;
        next = key.revision + 1;
        sinceMs = undefined;
        onKey(key);
      });
    } catch (error) {
      sinceMs ??= performance.now();
      if (error instanceof WatchEnded || performance.now() - sinceMs > PATIENCE_MS) throw error;
    }
    await sleep(PAUSE_MS);
  }
}

/** Writes marks, one at a time: later callers share the next one. */
class Marks {
  readonly #etcd: Etcd;
  readonly #key: string;
  #number = 0;
  #isWriting = false;
  #failure: unknown;
  #waiting: Waiting[] = [];
  readonly #written = new Map<number, { readonly calledMs: number; readonly waiting: Waiting[] }>();
  /** When the last mark that the watch has come to was called. */
  reachedMs = Number.NEGATIVE_INFINITY;

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

  /** Nothing happens while another one is under way. */
  tick(): void {
    if (this.#written.size === 0) this.next().catch(() => {});
  }

  reached(number: number): void {
    const { calledMs, waiting } = this.#written.get(number) ?? { calledMs: this.reachedMs, waiting: [] };
    this.reachedMs = calledMs;
    for (const { resolve } of waiting) resolve();
    this.#written.delete(number);
  }

  /** Drops the written marks: etcd has an older state. */
  again(): void {
    const waiting = this.#takeAll();
    if (waiting.length === 0) return;
    this.#waiting = waiting;
    if (!this.#isWriting) void this.#write();
  }

  fail(error: unknown): void {
    this.#failure = error;
    for (const { reject } of this.#takeAll()) reject(error);
  }

  #takeAll(): Waiting[] {
    const all = [...this.#waiting, ...[...this.#written.values()].flatMap(({ waiting }) => waiting)];
    this.#waiting = [];
    this.#written.clear();
    return all;
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const number = ++this.#number;
      const waiting = this.#waiting;
      this.#written.set(number, { calledMs: performance.now(), waiting });
      this.#waiting = [];
      try {
        await this.#etcd.put(this.#key, `${number}`);
      } catch {
        // It may be away: these wait for the next mark.
        this.#waiting.push(...(this.#written.has(number) ? waiting : []));
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
