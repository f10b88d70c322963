/**
 * Which addresses of each pool are in use, as far as this agent knows: one bitmap of the core per pool. A cache: the
 * registry decides, and its answers are recorded here.
 */
import type { Pool } from "../core/pool.ts";
import type { PoolCounts, PoolShape } from "../core/pool-shape.ts";
import type { PoolSpace } from "../core/pool-space.ts";
import { haveShared, spansOf } from "../core/spans.ts";
import { equalIp, type Ip } from "../net/ip.ts";
import { prefixContains, prefixesOverlap } from "../net/prefix.ts";
import { PrefixTable } from "../net/prefix-table.ts";
import { rangeContains, rangeOfPrefix } from "../net/range.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { equalRouters, heldRoutersOf, poolShape, unionOfRouters } from "../resources/ip-pool-shape.ts";
import { formatRangesHash } from "../resources/ip-pool-usage.ts";
import { findExceptions, findExclusion, findOwnExclusion, type PoolSurroundings } from "../resources/locate-address.ts";
import { NONE_OCCUPIED, type OccupiedIp, type OccupiedIps } from "../resources/occupied-ips.ts";
import { type BlockState, findDoubt, type SeenRegistry } from "../resources/pool-source.ts";
import type { ReservedIp } from "../resources/reserved-ip.ts";

/** Most names of other pools that are remembered for one pool. The one noted longest ago is forgotten first. */
export const MAX_OTHER_NAMES = 8;

interface PoolEntry {
  pool: IpPool;
  /** {@link PoolCache.noteRecorded} */
  readonly otherNames: Set<string>;
  /** Fingerprint of `shape`, to recognise an unchanged pool. */
  fingerprint: string;
  shape: PoolShape;
  bits: Pool;
  /** Whether the bitmap was last loaded from an estimate: {@link PoolCache.loadEstimate}. */
  isEstimate: boolean;
}

/** An address that a claim in progress has taken out of the cache, and the entries in which it was free before. */
interface Reservation {
  readonly ip: Ip;
  readonly entries: Set<PoolEntry>;
}

type Place = Pick<IpPool["spec"], "addressSpace" | "subnet">;

/** All pools of one subnet in one address space. An address belongs to each of them whose ranges contain it. */
interface Network extends Place {
  /** The pools that have an entry, and those that are about to get one. */
  readonly pools: Set<IpPool>;
  /** The routers that its pools name: none of the pools of the segment hands these out. */
  routers: readonly Ip[];
}

export class PoolCache {
  readonly #core: PoolSpace;
  readonly #entries = new Map<string, PoolEntry>();
  /** By address space. A subnet is inside another one while the pools of a segment are widened. */
  readonly #networks = new Map<string, PrefixTable<Network>>();
  readonly #reservations = new Map<string, Reservation>();
  #reserved: readonly ReservedIp[] = [];
  #occupied = NONE_OCCUPIED;
  #seenRegistry: () => SeenRegistry = () => ({ epoch: undefined, sinceMs: 0 });

  /** Versions of the released allocations that an ADD of this node is taking over: other ADDs skip them. */
  readonly takeOvers = new Set<number>();
  /** Names of the pools that lease blocks. */
  readonly leasing = new Set<string>();

  constructor(core: PoolSpace) {
    this.#core = core;
  }

  /**
   * Replaces pools, by name: undefined for one that is gone. Returns those that are new or have another shape: the
   * caller marks their used addresses.
   */
  apply(
    changes: Iterable<readonly [name: string, pool: IpPool | undefined]>,
    reserved: readonly ReservedIp[],
  ): IpPool[] {
    const isReservedSame =
      reserved.length === this.#reserved.length && reserved.every((each, index) => each === this.#reserved[index]);
    this.#reserved = reserved;
    // Other reserved addresses concern all pools.
    const others = isReservedSame ? [] : [...this.#entries].map(([name, { pool }]) => [name, pool] as const);
    const pools = new Map<string, IpPool | undefined>([...others, ...changes]);
    const isUnchanged = (pool: IpPool): boolean => isReservedSame && this.#entries.get(pool.name)?.pool === pool;
    const changed = [...pools.values()].filter((pool) => pool !== undefined && !isUnchanged(pool)) as IpPool[];
    const rerouted = this.#followRouters(pools);
    for (const [name, pool] of pools) {
      if (pool?.source === undefined) this.leasing.delete(name);
      else this.leasing.add(name);
      const entry = this.#entries.get(name);
      if (entry === undefined || areRelated(entry.pool, pool)) continue;
      entry.bits.drop();
      this.#entries.delete(name);
    }
    const names = new Set<string>(changed.map(({ name }) => name));
    const affected = [...rerouted].filter(({ name }) => !names.has(name) && this.#entries.has(name));
    return [...changed, ...affected].filter((pool) => this.#write(pool));
  }

  /**
   * Replaces the addresses of machines other than pods. Returns the pools with another shape: the caller marks their
   * used addresses. The cost is that of the changes.
   */
  occupy(occupied: OccupiedIps): IpPool[] {
    const changed = occupied.differenceTo(this.#occupied);
    this.#occupied = occupied;
    const affected = new Set<IpPool>();
    for (const table of this.#networks.values())
      for (const ip of changed) for (const { pools } of table.find(ip)) for (const pool of pools) affected.add(pool);
    return [...affected].filter((pool) => this.#write(pool));
  }

  /** From now on leased blocks are checked against its result. Default: none are confirmed. */
  followRegistry(seen: () => SeenRegistry): void {
    this.#seenRegistry = seen;
  }

  /** As {@link findDoubt}; undefined for a pool that leases nothing. */
  findDoubt({ source }: IpPool): string | undefined {
    return source && findDoubt(source, this.#seenRegistry());
  }

  /** The same of an address that was claimed for a pool before. `isLost`: the pool has its block no longer. */
  findDoubtOf({ pool: name, ip }: { readonly pool: string; readonly ip: Ip }) {
    const pool = this.#entries.get(name)?.pool;
    const doubt = pool && this.findDoubt(pool);
    if (doubt !== undefined) return { doubt: `pool "${name}" gives none ${doubt}`, isLost: false };
    if (pool?.source === undefined) return undefined;
    const { state } = pool.source.blocks.find(({ range }) => rangeContains(range, ip)) ?? {};
    if (state !== undefined && state !== "Resting" && state !== "Disputed") return undefined;
    return { doubt: `pool "${name}" does not have its block any more`, isLost: true };
  }

  /** Returns the state of the leased block with the address; undefined if no pool has leased one. */
  blockStateOf({ space, ip }: { readonly space: string; readonly ip: Ip }): BlockState | undefined {
    for (const { pool } of this.#entriesAround(space, ip)) {
      const block = pool.source?.blocks.find(({ range }) => rangeContains(range, ip));
      if (block !== undefined) return block.state;
    }
    return undefined;
  }

  /** Returns the pools with entries beside which others name other routers than before. */
  #followRouters(changes: ReadonlyMap<string, IpPool | undefined>): Set<IpPool> {
    const before = new Map<Network, readonly Ip[]>();
    const emptied = new Set<Network>();
    for (const [name, pool] of changes) {
      const old = this.#entries.get(name)?.pool;
      const [from, to] = [old && this.#networkOf(old), pool && this.#networkOf(pool)];
      const isSame = from === to && equalRouters(routersOf(old), routersOf(pool));
      if (old !== undefined) from?.pools.delete(old);
      if (from !== undefined) emptied.add(from);
      if (pool !== undefined) to?.pools.add(pool);
      const isNaming = (network: Network | undefined, routers: readonly Ip[]): boolean =>
        routers.some((router) => network?.routers.some((each) => equalIp(each, router)) !== true);
      if (from !== undefined && !isSame && routersOf(old).length > 0) before.set(from, from.routers);
      if (to !== undefined && isNaming(to, routersOf(pool))) before.set(to, to.routers);
    }
    for (const network of before.keys()) network.routers = unionOfRouters(network.pools);
    const rerouted = [...before].filter(([network, old]) => !equalRouters(old, network.routers));
    const beside = new Set(rerouted.flatMap(([network]) => this.#poolsBeside(network)));
    for (const { addressSpace, subnet, pools } of emptied)
      if (pools.size === 0) this.#networks.get(addressSpace)?.delete(subnet);
    return beside;
  }

  /** The networks of the segment. */
  #relativesOf({ addressSpace, subnet }: Place): readonly Network[] {
    return this.#networks.get(addressSpace)?.relativesOf(subnet) ?? [];
  }

  #poolsBeside(place: Place): IpPool[] {
    return this.#relativesOf(place).flatMap(({ pools }) => [...pools]);
  }

  #routersBeside(place: Place): readonly Ip[] {
    return this.#relativesOf(place).flatMap(({ routers }) => routers);
  }

  #networkOf({ spec: { addressSpace, subnet } }: IpPool): Network {
    const table = this.#networks.getOrInsertComputed(addressSpace, () => new PrefixTable<Network>());
    const known = table.get(subnet);
    const network: Network = known ?? { addressSpace, subnet, pools: new Set(), routers: [] };
    if (known === undefined) table.add(subnet, network);
    return network;
  }

  find(poolName: string): IpPool | undefined {
    return this.#entries.get(poolName)?.pool;
  }

  get occupied(): OccupiedIps {
    return this.#occupied;
  }

  /**
   * Creates or edits the entry of a pool, whose subnet is unchanged or was widened. Returns whether its used addresses
   * have to be marked.
   */
  #write(pool: IpPool): boolean {
    const occupied = this.#occupied.within(rangeOfPrefix(pool.spec.subnet)).map(({ ip }) => ip);
    const shape = poolShape(pool, this.#reserved, [...this.#routersBeside(pool.spec), ...occupied]);
    const fingerprint = JSON.stringify(shape, (_, value) => (typeof value === "bigint" ? value.toString(16) : value));
    const entry = this.#entries.get(pool.name);
    if (entry === undefined) {
      const bits = this.#core.createPool(shape);
      this.#entries.set(pool.name, { pool, otherNames: new Set(), fingerprint, shape, bits, isEstimate: false });
      return true;
    }
    entry.pool = pool;
    if (entry.fingerprint === fingerprint) return false;
    entry.fingerprint = fingerprint;
    entry.shape = shape;
    entry.bits.edit(shape);
    return true;
  }

  /** Marks addresses as used: 4 or 16 big-endian bytes each. Does nothing if the pool has moved to another subnet. */
  markUsed(pool: IpPool, packed: Uint8Array): void {
    const entry = this.#entryOf(pool);
    if (entry === undefined) return;
    const reservations = [...this.#reservations.values()].filter(({ entries }) => entries.has(entry));
    for (const { ip } of reservations) entry.bits.release(ip);
    entry.bits.claimMany(packed);
    for (const { ip, entries } of reservations) if (entry.bits.claim(ip) !== "claimed") entries.delete(entry);
  }

  /** Like {@link markUsed}, but all other addresses become free, except reservations. */
  replaceUsed(pool: IpPool, packed: Uint8Array): void {
    const entry = this.#entryOf(pool);
    if (entry === undefined) return;
    entry.isEstimate = false;
    this.#refill(entry, (bits) => bits.claimMany(packed));
  }

  /**
   * Like {@link replaceUsed}, from a usage summary, which may be out of date, and from this node's own addresses: the
   * live usage is read before the pool is treated as full. Returns false, and does nothing, if the summary is of
   * other ranges: the pool was edited since.
   */
  loadEstimate(
    pool: IpPool,
    { rangesHash, bitmap }: { readonly rangesHash: string; readonly bitmap: Uint8Array },
    own: Uint8Array,
  ): boolean {
    const entry = this.#entryOf(pool);
    if (entry === undefined || formatRangesHash(entry.bits.counts().digest) !== rangesHash) return false;
    entry.isEstimate = true;
    this.#refill(entry, (bits) => bits.claimMarked(bitmap) + bits.claimMany(own));
    return true;
  }

  #refill(entry: PoolEntry, mark: (bits: Pool) => void): void {
    const successor = this.#core.createPool(entry.shape);
    entry.bits.drop();
    entry.bits = successor;
    mark(successor);
    for (const { ip, entries } of this.#reservations.values()) {
      if (entries.has(entry) && successor.claim(ip) !== "claimed") entries.delete(entry);
    }
  }

  /** Returns whether the pool was last loaded by {@link loadEstimate}. */
  isEstimate(poolName: string): boolean {
    return this.#entries.get(poolName)?.isEstimate ?? false;
  }

  /** Returns the pool and those of its subnet and space with overlapping ranges, directly or through others. */
  neighboursOf(pool: IpPool): readonly IpPool[] {
    const all = this.#poolsBeside(pool.spec);
    const found = new Set(all.filter(({ name }) => name === pool.name));
    for (const each of found)
      for (const other of all)
        if (!found.has(other) && haveShared(spansOf(each.spec.ranges), spansOf(other.spec.ranges))) found.add(other);
    return all.filter((each) => found.has(each));
  }

  /** Another node has recorded the address for the pool of this name, which may have lost it since, or be gone. */
  noteRecorded({ space, ip, pool: name }: { readonly space: string; readonly ip: Ip; readonly pool: string }): void {
    for (const { pool, bits, otherNames } of this.#entriesAround(space, ip)) {
      if (pool.name === name || !bits.contains(ip)) continue;
      otherNames.delete(name);
      otherNames.add(name);
      const [oldest = name] = otherNames;
      if (otherNames.size > MAX_OTHER_NAMES) otherNames.delete(oldest);
    }
  }

  /** Returns other pools with records of addresses of the pool, as far as {@link noteRecorded} has told. */
  otherNamesOf(pool: IpPool): ReadonlySet<string> {
    return this.#entryOf(pool)?.otherNames ?? new Set();
  }

  /** Marks an address that the registry has recorded, in all pools that contain it. */
  mark(space: string, ip: Ip): void {
    this.#reservations.delete(addressKey(space, ip));
    for (const { bits } of this.#entriesAround(space, ip)) bits.claim(ip);
  }

  /** Unmarks an address that the registry has freed, in all pools that contain it. */
  unmark(space: string, ip: Ip): void {
    this.#reservations.delete(addressKey(space, ip));
    for (const { bits } of this.#entriesAround(space, ip)) bits.release(ip);
  }

  /**
   * Finds and reserves a free address; undefined if the pool has none. The search starts at `seed`; in a pool with
   * ascending selection at the lowest address, unless `randomize`.
   */
  take(pool: IpPool, seed: number, randomize = false): Ip | undefined {
    if (this.findDoubt(pool) !== undefined) return undefined;
    const isAscending = pool.spec.selection === "ascending" && !randomize;
    const ip = this.#entryOf(pool)?.bits.findFree(isAscending ? 0 : seed);
    if (ip !== undefined) this.#reserve(pool.spec.addressSpace, ip);
    return ip;
  }

  /** Reserves this address. `outside`: the pool cannot hand it out. */
  takeExactly(pool: IpPool, ip: Ip): "claimed" | "taken" | "outside" {
    const bits = this.#entryOf(pool)?.bits;
    if (bits === undefined || !bits.contains(ip)) return "outside";
    if (bits.test(ip)) return "taken";
    this.#reserve(pool.spec.addressSpace, ip);
    return "claimed";
  }

  /** Cancels reservations: each address is free again, unless the registry has answered for it since. */
  cancel(reserved: readonly { readonly space: string; readonly ip: Ip }[]): void {
    for (const { space, ip } of reserved) {
      const key = addressKey(space, ip);
      for (const entry of this.#reservations.get(key)?.entries ?? [])
        if (this.#entries.get(entry.pool.name) === entry) entry.bits.release(ip);
      this.#reservations.delete(key);
    }
  }

  /** A just edited entry may lack a used address that other entries have; theirs keep the mark on cancel. */
  #reserve(space: string, ip: Ip): void {
    const key = addressKey(space, ip);
    const reservation: Reservation = this.#reservations.get(key) ?? { ip, entries: new Set() };
    this.#reservations.set(key, reservation);
    for (const entry of this.#entriesAround(space, ip))
      if (entry.bits.claim(ip) === "claimed") reservation.entries.add(entry);
  }

  /** Returns the addresses of the pool's ranges that routers and other machines have, and why, ascending. */
  exceptionsOf(poolName: string): readonly OccupiedIp[] {
    const pool = this.#entries.get(poolName)?.pool;
    return pool === undefined ? [] : findExceptions(pool, this.#routersBeside(pool.spec), this.#around(pool));
  }

  /**
   * Returns why the pool never hands the address out, a clause; undefined if it may, or if there is no such pool.
   * `isHeld` as in {@link contains}.
   */
  findExclusion(poolName: string, ip: Ip, { isBrief = false, isHeld = false } = {}): string | undefined {
    const pool = this.#entries.get(poolName)?.pool;
    const around = pool && this.#around(pool);
    return around && (isHeld ? findOwnExclusion(ip, pool, around) : findExclusion(ip, pool, around, isBrief));
  }

  #around(pool: IpPool): PoolSurroundings {
    return { reserved: this.#reserved, occupied: this.#occupied, siblings: this.#poolsBeside(pool.spec) };
  }

  /**
   * Returns whether the pool can hand the address out: in its ranges, neither excluded, nor reserved, nor a router's
   * or this node's. `isHeld`: its owner had it before, or a ReservedIP has it for that: a ReservedIP for another owner
   * does not take it away.
   */
  contains(poolName: string, ip: Ip, isHeld = false): boolean {
    const entry = this.#entries.get(poolName);
    if (entry === undefined || entry.bits.contains(ip)) return entry !== undefined;
    const isWithin = isHeld && prefixContains(entry.pool.spec.subnet, ip);
    return isWithin && this.findExclusion(poolName, ip, { isHeld }) === undefined;
  }

  /** Blocks that are not confirmed have no addresses. */
  counts(poolName: string): PoolCounts | undefined {
    const entry = this.#entries.get(poolName);
    const counts = entry?.bits.counts();
    return counts && entry && this.findDoubt(entry.pool) !== undefined ? { ...counts, total: 0n, free: 0n } : counts;
  }

  /** Returns undefined if the pool has gone, or has moved to another subnet. */
  #entryOf(pool: IpPool): PoolEntry | undefined {
    const entry = this.#entries.get(pool.name);
    return entry?.pool === pool || areRelated(pool, entry?.pool) ? entry : undefined;
  }

  *#entriesAround(space: string, ip: Ip): Iterable<PoolEntry> {
    for (const { pools } of this.#networks.get(space)?.find(ip) ?? [])
      for (const { name } of pools) {
        const entry = this.#entries.get(name);
        if (entry !== undefined) yield entry;
      }
  }
}

function routersOf(pool: IpPool | undefined): readonly Ip[] {
  return pool === undefined ? [] : heldRoutersOf(pool.spec);
}

function addressKey(space: string, { family, value }: Ip): string {
  return `${family} ${value.toString(16)} ${space}`;
}

/** Returns whether one pool may be the other after it was widened. A pool that moves needs a new bitmap. */
function areRelated({ spec }: IpPool, other: IpPool | undefined): boolean {
  if (other === undefined || spec.addressSpace !== other.spec.addressSpace) return false;
  return prefixesOverlap(spec.subnet, other.spec.subnet);
}
