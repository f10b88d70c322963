/**
 * The use of each pool, as far as a node can know it without watching the objects of all nodes: the controller's
 * summary, read on demand; a list of the pool's names when an ADD needs the truth (exhaustion); and the tight pools,
 * so that nodes show each other the addresses that cool (cooling-visibility).
 */
import { describeFailure } from "../../kubernetes/http/retry.ts";
import { isNotFound, type KubeApi } from "../../kubernetes/kube-api.ts";
import type { Log } from "../../lib/log.ts";
import { bitsOf, type Ip } from "../../net/ip.ts";
import { API_PATH } from "../../resources/fields/metadata.ts";
import { parseAllocationName } from "../../resources/ip-allocation.ts";
import { decodeIpPoolUsage, type IpPoolUsage, type PoolUsage } from "../../resources/ip-pool-usage.ts";
import { decodeAddress, encodeAddress } from "../address-bytes.ts";
import { type AddressSpan, isInSpan } from "../registry.ts";
import { FOR_POD, listAllocationNames } from "./allocation-objects.ts";

/** Time for which a pool's usage object is not read again: milliseconds. It is written about as often. */
export const USAGE_FRESH_MS = 2_000;

/** Longest time that reading it may take: milliseconds. An ADD waits for it, and does as well without an answer. */
const USAGE_PATIENCE_MS = 1_000;

/** Time for which a list of a pool's names makes its usage object superfluous: milliseconds. That may be as old. */
export const LISTED_MS = 10_000;

/** A pool is tight from this share of its addresses in use. */
export const TIGHT_SHARE = 0.8;

/** A pool of up to so many addresses is always tight: nodes may have to take over each other's addresses. */
const SMALL_POOL_ADDRESSES = 256;

/** Time for which a pool found nearly full, or marked as wanted, counts as tight: milliseconds. */
export const TIGHT_MS = 600_000;

const USAGES = `${API_PATH}/ippoolusages`;

interface UsageSummariesOptions {
  readonly api: KubeApi;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** The known facts of one pool's usage object. */
interface Summary {
  readAtMs: number;
  /** When the names of the pool were listed. */
  listedAtMs: number;
  /** UID and version of the object that was returned last. */
  version: string;
  flight: Promise<PoolUsage | undefined> | undefined;
}

/** The controller's usage objects. They are hints: nothing depends on their age, on being right, or on being there. */
export class UsageSummaries {
  readonly #options: UsageSummariesOptions;
  readonly #summaries = new Map<string, Summary>();

  constructor(options: UsageSummariesOptions) {
    this.#options = options;
  }

  /**
   * Returns the pool's usage if it is newer than the last returned one and than the last list; otherwise undefined.
   * Concurrent calls share one read. Never rejects.
   */
  readNew(pool: string): Promise<PoolUsage | undefined> {
    const summary = this.#of(pool);
    if (summary.flight !== undefined) return summary.flight;
    const nowMs = this.#options.nowMs();
    if (nowMs - summary.readAtMs < USAGE_FRESH_MS || isListed(summary, nowMs)) return Promise.resolve(undefined);
    summary.readAtMs = nowMs;
    summary.flight = this.#readNew(pool, summary).finally(() => {
      summary.flight = undefined;
    });
    return summary.flight;
  }

  /** The names of the pool are being listed: a usage object is superfluous for a while, also if it is being read. */
  noteListed(pool: string): void {
    this.#of(pool).listedAtMs = this.#options.nowMs();
  }

  #of(pool: string): Summary {
    const never = Number.NEGATIVE_INFINITY;
    const unread = (): Summary => ({ readAtMs: never, listedAtMs: never, version: "", flight: undefined });
    return this.#summaries.getOrInsertComputed(pool, unread);
  }

  async #readNew(pool: string, summary: Summary): Promise<PoolUsage | undefined> {
    const { log, nowMs } = this.#options;
    try {
      const { uid, resourceVersion, usage } = await this.#read(pool);
      const version = `${uid}/${resourceVersion}`;
      if (version === summary.version || isListed(summary, nowMs())) return undefined;
      summary.version = version;
      return usage;
    } catch (error) {
      if (!isNotFound(error)) log.debug({ pool, reason: describeFailure(error) }, "Reading the usage of a pool failed");
      return undefined;
    }
  }

  async #read(pool: string): Promise<IpPoolUsage> {
    const path = `${USAGES}/${pool}`;
    const object = await this.#options.api.call({ method: "GET", path, lane: "pod", patienceMs: USAGE_PATIENCE_MS });
    return decodeIpPoolUsage(object, "API server");
  }
}

function isListed({ listedAtMs }: Summary, nowMs: number): boolean {
  return nowMs - listedAtMs < LISTED_MS;
}

/** The lists of one pool: one under way, and one that waits for it. */
interface Flights {
  current: Promise<readonly string[]>;
  next?: Promise<readonly string[]>;
}

/** Lists the objects of a pool by name, one list at a time for each pool. */
export class NameLists {
  readonly #api: KubeApi;
  readonly #flights = new Map<string, Flights>();

  constructor(api: KubeApi) {
    this.#api = api;
  }

  /**
   * Returns all names of the pool as of a moment after the call. A list requested before may be older than the caller's
   * knowledge; later calls share the next one.
   */
  read(pool: string): Promise<readonly string[]> {
    const flights = this.#flights.get(pool);
    if (flights === undefined) return this.#start(pool);
    flights.next ??= flights.current.then(
      () => this.#start(pool),
      () => this.#start(pool),
    );
    return flights.next;
  }

  #start(pool: string): Promise<readonly string[]> {
    const current = listAllocationNames(this.#api, pool, FOR_POD).finally(() => {
      if (this.#flights.get(pool) === flights && flights.next === undefined) this.#flights.delete(pool);
    });
    const flights: Flights = { current };
    this.#flights.set(pool, flights);
    return current;
  }
}

/**
 * Returns the addresses of the names that lie in the span, and the packed ones, without duplicates and sorted: 4 or
 * 16 big-endian bytes each.
 */
export function packUsed(span: AddressSpan, names: readonly string[], packed: Uint8Array): Uint8Array {
  const width = bitsOf(span.family) / 8;
  const found = new Map<bigint, Ip>();
  const add = (ip: Ip): Map<bigint, Ip> => found.set(ip.value, ip);
  for (let at = 0; at < packed.length; at += width) add(decodeAddress(packed.subarray(at, at + width)));
  for (const name of names) {
    const parsed = parseAllocationName(name);
    if (parsed !== undefined && isInSpan(span, { space: parsed.addressSpace, ip: parsed.ip })) add(parsed.ip);
  }
  const sorted = [...found.values()].sort((a, b) => (a.value < b.value ? -1 : 1));
  const bytes = new Uint8Array(sorted.length * width);
  for (const [index, ip] of sorted.entries()) bytes.set(encodeAddress(ip), index * width);
  return bytes;
}

/** The pools of this node, such as its pool cache. */
export interface CountedPools {
  /** Returns how many addresses the pool has, and how many are free as far as the node knows; undefined: no pool. */
  counts(pool: string): { readonly total: bigint; readonly free: bigint } | undefined;
}

/** The pools that are small, nearly full or wanted. */
export class TightPools {
  readonly #pools: CountedPools;
  readonly #nowMs: () => number;
  readonly #untilMs = new Map<string, number>();

  constructor(pools: CountedPools, nowMs: () => number) {
    this.#pools = pools;
    this.#nowMs = nowMs;
  }

  /** The pool was found nearly full, or is marked as wanted. */
  note(pool: string): void {
    this.#untilMs.set(pool, this.#nowMs() + TIGHT_MS);
  }

  /** Returns how many addresses the pool has; undefined if there is no such pool. */
  sizeOf(pool: string): number | undefined {
    const total = this.#pools.counts(pool)?.total;
    return total === undefined ? undefined : Number(total);
  }

  isTight(pool: string): boolean {
    const size = this.sizeOf(pool);
    // Renamed or created again: which pool has its addresses now, and how full that is, is unknown.
    if (size === undefined || size <= SMALL_POOL_ADDRESSES) return true;
    if (1 - Number(this.#pools.counts(pool)?.free) / size >= TIGHT_SHARE) return true;
    const untilMs = this.#untilMs.get(pool);
    if (untilMs !== undefined && untilMs <= this.#nowMs()) this.#untilMs.delete(pool);
    return this.#untilMs.has(pool);
  }
}
