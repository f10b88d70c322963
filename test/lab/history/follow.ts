/**
 * The history of all IPAllocations as etcd has it, each revision of it, put before the checker, together with the
 * workloads that retain addresses and the ends of pods, which stand in the same order.
 *
 *   const history = await followHistory(plane.etcdUrl, { minReuseMs: 2_000 });
 *   await history.attached({ name: "10.6.0.21", podUid, ifName: "eth0" });   // at once after the answer of the ADD
 *   history.leaving({ name: "10.6.0.21", podUid, ifName: "eth0" });          // before the DEL
 *   await history.caughtUp();                                                 // all writes up to now are checked
 *   history.checker.breaches
 *
 * It reads etcd and not the API server, whose watch may omit objects that came and went between two reads. "The object
 * was Bound before the ADD was answered" is tested to within the time of one write of etcd (stream.ts).
 * Effects: connections to etcd; a key beside the API server's.
 */
import { parseIp } from "../../../host/net/ip.ts";
import { allocationName, decodeIpAllocation, FORCE_DELETE } from "../../../host/resources/ip-allocation.ts";
import { decodeIpPool, type IpPool } from "../../../host/resources/ip-pool.ts";
import { decodeReservedIp, type ReservedIp } from "../../../host/resources/reserved-ip.ts";
import { AllocationChecker, type Attachment, type CheckerOptions, type Write } from "./allocation-checker.ts";
import { type EtcdKey, openEtcd } from "./etcd.ts";
import { Givable } from "./givable.ts";
import { isOwnerKey, ownerOf, parseStored, type StoredObject, writerOf } from "./stored.ts";
import { openStream, type Period } from "./stream.ts";

/** Before the names of the objects. */
export const ALLOCATIONS = "/registry/ipam.vendor.io/ipallocations/";
const POOLS = "/registry/ipam.vendor.io/ippools/";
const RESERVED = "/registry/ipam.vendor.io/reservedips/";
const PODS = "/registry/pods/";
/** The first key behind those of StatefulSets; between it and the allocations are all others that are read. */
const MARK = "/registry/statefulsets0";
const RANGE = { start: ALLOCATIONS, end: `${MARK}\0` };
/** To within so much, the times of writes are known. */
const TICK_MS = 100;
const UNKNOWN: Period = { first: Number.NEGATIVE_INFINITY, last: Number.POSITIVE_INFINITY };

export interface HistoryOptions extends CheckerOptions {
  /** Network namespace of etcd's loopback; default: this process's own namespace. */
  readonly netnsPath?: string;
  /** NICs are there as long as their pods: agents in the test's process have none. Default: until their DEL. */
  readonly endsWithPods?: boolean;
}

export interface History {
  readonly checker: AllocationChecker;
  /** The pools as they are now. */
  readonly pools: KnownPools;
  /** An ADD has been answered with the address. Resolves when that place of the history has been checked. */
  attached(attachment: Attachment): Promise<void>;
  /** Its DEL is about to be called. */
  leaving(attachment: Attachment): void;
  /** Resolves when everything that was written before the call has been checked. Throws when etcd does not let it. */
  caughtUp(): Promise<void>;
  /** The work restores an older state of etcd. */
  restoring(work: () => Promise<void>): Promise<void>;
  close(): void;
}

/** An address that an ADD of the pod's NIC has answered. */
export function attachmentOf(address: string, podUid: string, ifName = "eth0"): Attachment {
  const ip = parseIp(address);
  if (ip === undefined) throw new TypeError(`"${address}" is not an address`);
  return { name: allocationName(ip, ""), podUid, ifName };
}

/** From now on; existing objects are the checker's starting point. */
export async function followHistory(etcdUrl: string, options: HistoryOptions = {}): Promise<History> {
  const etcd = openEtcd(etcdUrl, options.netnsPath);
  const reader = new Reader(options);
  const { checker, pools } = reader;
  const begin = async (): Promise<number> => {
    const { revision, keys } = await etcd.read(RANGE);
    for (const key of keys.filter(({ key }) => key !== MARK)) reader.begin(key);
    return revision + 1;
  };
  const { minReuseMs = 0, minConflictMs = 0 } = options;
  const stream = openStream(etcd, {
    ...{ range: RANGE, markKey: MARK, fromRevision: await begin() },
    ...(minReuseMs + minConflictMs > 0 ? { tickMs: TICK_MS } : {}),
    onKey: (key, atMs) => {
      try {
        reader.read(key, atMs);
      } catch (error) {
        checker.report(`${key.key} cannot be read at revision ${key.revision}: ${String(error)}`);
      }
    },
    onFailure: (error) => checker.report(`The history is not whole: ${String(error)}`),
  });
  return {
    checker,
    pools,
    attached: async (attachment) => {
      checker.answered(attachment);
      await stream.mark();
      checker.mustHold(attachment);
    },
    leaving: (attachment) => checker.leaving(attachment, performance.now()),
    caughtUp: () => stream.mark(),
    restoring: (work) =>
      stream.pause(async () => {
        await work();
        checker.restored();
        reader.pools.clear();
        return begin();
      }),
    close: () => {
      stream.close();
      etcd.close();
    },
  };
}

/** Pools, and the objects that keep their addresses from pods. */
export class KnownPools {
  /** Changes with every write. */
  version = 0;
  readonly #pools = new Map<string, IpPool>();
  readonly #reserved = new Map<string, ReservedIp>();

  read({ key, value }: EtcdKey): void {
    this.version++;
    if (value === undefined) for (const known of [this.#pools, this.#reserved]) known.delete(key);
    else if (key.startsWith(POOLS)) this.#pools.set(key, decodeIpPool(JSON.parse(value), `etcd, ${key}`));
    else this.#reserved.set(key, decodeReservedIp(JSON.parse(value), `etcd, ${key}`));
  }

  clear(): void {
    this.version++;
    for (const known of [this.#pools, this.#reserved]) known.clear();
  }

  /** Returns the addresses that pods may have, by the pool's name. */
  givable(): ReadonlyMap<string, Givable> {
    const all = [...this.#pools.values()];
    return new Map(all.map((pool) => [pool.name, new Givable(pool, this.#reserved.values())]));
  }
}

/** Tells the checker the meaning of a key of etcd. */
class Reader {
  readonly checker: AllocationChecker;
  readonly pools = new KnownPools();
  readonly #endsWithPods: boolean;
  /** As the last write of each key left it. */
  readonly #stored = new Map<string, StoredObject>();

  constructor(options: HistoryOptions) {
    this.checker = new AllocationChecker(options);
    this.#endsWithPods = options.endsWithPods ?? false;
  }

  /** Takes in a key that is there before the history begins. */
  begin(key: EtcdKey): void {
    if (!key.key.startsWith(ALLOCATIONS)) this.read(key, UNKNOWN);
    else {
      this.checker.begin(writeOf(key));
      this.#store(key);
    }
  }

  read(key: EtcdKey, atMs: Period): void {
    const isOf = (...starts: string[]): boolean => starts.some((start) => key.key.startsWith(start));
    if (isOf(POOLS, RESERVED)) this.pools.read(key);
    if (!isOf(ALLOCATIONS, PODS) && !isOwnerKey(key.key)) return;
    const before = this.#stored.get(key.key);
    const after = this.#store(key);
    if (isOf(ALLOCATIONS)) this.#readAllocation(key, atMs, before, after);
    else if (isOf(PODS)) this.#readPod(atMs, before, after);
    else {
      if (before !== undefined) this.checker.owner(before.metadata.uid, undefined);
      if (after !== undefined) this.checker.owner(after.metadata.uid, ownerOf(key.key, after));
    }
  }

  #store({ key, value }: EtcdKey): StoredObject | undefined {
    const stored = parseStored(value);
    if (stored === undefined) this.#stored.delete(key);
    else this.#stored.set(key, stored);
    return stored;
  }

  #readAllocation(key: EtcdKey, atMs: Period, before?: StoredObject, after?: StoredObject): void {
    // A deletion has no author, but a person has to announce one of an address in use.
    const isForced = after === undefined && before?.metadata.annotations?.[FORCE_DELETE] === "true";
    const writer = isForced ? ({ kind: "hand" } as const) : after && writerOf(before, after);
    this.checker.written({ ...writeOf(key), atMs, writer });
  }

  #readPod(at: Period, before?: StoredObject, after?: StoredObject): void {
    const { uid } = before?.metadata ?? {};
    const isOver = after?.status?.phase === "Succeeded" || after?.status?.phase === "Failed";
    const hasEnded = uid !== after?.metadata.uid || isOver;
    const wasOver = before?.status?.phase === "Succeeded" || before?.status?.phase === "Failed";
    if (after !== undefined && !isOver) this.checker.pod(after.metadata.uid, undefined);
    if (uid !== undefined && hasEnded && !wasOver) this.checker.pod(uid, at);
    if (uid === undefined || !hasEnded || !this.#endsWithPods) return;
    const { first } = at;
    for (const attachment of this.checker.attachments)
      if (attachment.podUid === uid) this.checker.leaving(attachment, first);
  }
}

/** The API server stores its own kinds' objects as JSON; the revision is in the key's place, not in the object. */
function writeOf({ key, revision, value }: EtcdKey): Write {
  const name = key.slice(ALLOCATIONS.length);
  if (value === undefined) return { name, revision, object: undefined };
  const stored = JSON.parse(value) as { metadata: object };
  const object = { ...stored, metadata: { ...stored.metadata, resourceVersion: `${revision}` } };
  return { name, revision, object: decodeIpAllocation(object, `etcd, ${name}`) };
}
