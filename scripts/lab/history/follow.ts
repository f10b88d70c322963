/**
 * The history of all IPAllocations as etcd has it, each revision of it, put before the judge.
 *
 *   const history = await followHistory(plane.etcdUrl, { minReuseMs: 2_000 });
 *   await history.attached({ name: "10.6.0.21", podUid, ifName: "eth0" });   // at once after the answer of the ADD
 *   history.leaving({ name: "10.6.0.21", podUid, ifName: "eth0" });          // before the DEL
 *   await history.settled();                                                 // all writes up to now are judged
 *   history.judge.breaches
 *
 * It reads etcd and not the API server, whose watch may leave out what came and went between two looks. A place in the history is
 * marked by writing a key of its own just behind the objects': what was written before the mark comes before it in the watch. So "the
 * object was Bound before the ADD was answered" is tested to within the time of one write of etcd.
 * Called by the tests of the cluster.
 * Effects: connections to etcd; a key beside the API server's.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { decodeIpAllocation } from "../../../host/resources/ip-allocation.ts";
import { type Etcd, type EtcdKey, openEtcd, WatchEnded } from "./etcd.ts";
import { type Attachment, HistoryJudge, type JudgeOptions } from "./judge.ts";

/** Before the names of the objects. */
export const ALLOCATIONS = "/registry/ipam.vendor.io/ipallocations/";
/** The first key behind those with the prefix. */
const MARK = "/registry/ipam.vendor.io/ipallocations0";
const RANGE = { start: ALLOCATIONS, end: `${MARK}\0` };

export interface HistoryOptions extends JudgeOptions {
  /** Where etcd's loopback is; default: this process's own namespace. */
  readonly netnsPath?: string;
  /** How long a mark waits for others: the test of "before it was answered" is that much less sharp, and dear no more. Default: 0. */
  readonly markEveryMs?: number;
}

export interface History {
  readonly judge: HistoryJudge;
  /** An ADD has been answered with the address. Resolves when that place of the history has been judged. */
  attached(attachment: Attachment): Promise<void>;
  /** Its DEL is about to be called. */
  leaving(attachment: Attachment): void;
  /** Resolves when everything that was written before the call has been judged. Throws when etcd does not let it. */
  settled(): Promise<void>;
  close(): void;
}

/** How long etcd may be away. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 100;

/** From now on; what is there already is the judge's starting point. */
export async function followHistory(etcdUrl: string, options: HistoryOptions = {}): Promise<History> {
  const etcd = openEtcd(etcdUrl, options.netnsPath);
  const judge = new HistoryJudge(options);
  const { revision, keys } = await etcd.read(RANGE);
  for (const key of keys.filter(({ key }) => key !== MARK)) judge.begin(writeOf(key));
  const marks = new Marks(etcd, options.markEveryMs ?? 0);
  const following = new AbortController();
  const onKey = (key: EtcdKey): void => {
    if (key.key === MARK) marks.reached(Number(key.value));
    else judge.written(writeOf(key));
  };
  follow(etcd, revision + 1, onKey, following.signal).catch((error: unknown) => {
    if (!following.signal.aborted) judge.report(`The history is not whole: ${String(error)}`);
    marks.fail(error);
  });
  return {
    judge,
    attached: async (attachment) => {
      judge.answered(attachment, performance.now());
      await marks.next();
      judge.mustHold(attachment);
    },
    leaving: (attachment) => judge.leaving(attachment, performance.now()),
    settled: () => marks.next(),
    close: () => {
      following.abort();
      etcd.close();
    },
  };
}

/** Watches for as long as it is wanted; an etcd that has been away is asked for what came after the last write seen. */
async function follow(etcd: Etcd, from: number, onKey: (key: EtcdKey) => void, signal: AbortSignal): Promise<void> {
  let next = from;
  let sinceMs: number | undefined;
  while (!signal.aborted) {
    try {
      await etcd.watch(RANGE, next, (key) => {
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
  readonly #pauseMs: number;
  #number = 0;
  #isWriting = false;
  #failure: unknown;
  #waiting: Waiting[] = [];
  readonly #written = new Map<number, Waiting[]>();

  constructor(etcd: Etcd, pauseMs: number) {
    this.#etcd = etcd;
    this.#pauseMs = pauseMs;
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
      if (this.#pauseMs > 0) await sleep(this.#pauseMs);
      const number = ++this.#number;
      this.#written.set(number, this.#waiting);
      this.#waiting = [];
      try {
        await this.#etcd.put(MARK, `${number}`);
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

/** The API server stores its own kinds' objects as JSON; the revision is in the key's place, not in the object. */
function writeOf({ key, revision, value }: EtcdKey): Parameters<HistoryJudge["written"]>[0] {
  const name = key.slice(ALLOCATIONS.length);
  if (value === undefined) return { name, revision, object: undefined };
  const stored = JSON.parse(value) as { metadata: object };
  const object = { ...stored, metadata: { ...stored.metadata, resourceVersion: `${revision}` } };
  return { name, revision, object: decodeIpAllocation(object, `etcd, ${name}`) };
}
