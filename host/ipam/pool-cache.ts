/**
 * Which addresses of which pool are in use, as far as this agent knows: one bitmap of the core per pool. A cache, never
 * the truth: the registry has the last word, and what it says is written down here.
 * Called by the agent: on every change of the pools, and by pick.ts for every claim.
 * Effects: none outside the Wasm instance that it is given.
 */
import type { Pool, PoolCounts, PoolShape, PoolSpace } from "../core/pool-space.ts";
import { compareIp, equalIp, type Ip } from "../net/ip.ts";
import { firstIp, type Prefix, prefixContains } from "../net/prefix.ts";
import { rangesOverlap } from "../net/range.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { poolShape } from "../resources/ip-pool-shape.ts";
import type { ReservedIp } from "../resources/reserved-ip.ts";

interface Page {
  pool: IpPool;
  /** Of the shape that the core was given, so that an unchanged pool costs nothing. */
  fingerprint: string;
  shape: PoolShape;
  bits: Pool;
  /** Whether what is marked was somebody's belief. */
  isBelieved: boolean;
}

/** An address taken for somebody of which the registry has said nothing yet, and the pages that did not have it before. */
interface Hope {
  readonly ip: Ip;
  readonly pages: Set<Page>;
}

/** All pools of one subnet in one address space: an address belongs to all of them whose ranges hold it. */
interface Segment {
  readonly subnet: Prefix;
  readonly pages: Page[];
}

export class PoolCache {
  readonly #core: PoolSpace;
  readonly #pages = new Map<string, Page>();
  /** By address space; the subnets of one space are disjoint, sorted by their first address, families apart. */
  #segments = new Map<string, Segment[]>();
  readonly #hopes = new Map<string, Hope>();
  #reserved: readonly ReservedIp[] = [];

  /** Released addresses that some ADD of this node is about to take over, by version: another one looks elsewhere. */
  readonly takeOvers = new Set<number>();

  constructor(core: PoolSpace) {
    this.#core = core;
  }

  /** Follows the pools. Answers those that are new or have another shape: the caller marks what is used in them. */
  update(pools: readonly IpPool[], reserved: readonly ReservedIp[]): IpPool[] {
    const wanted = new Map<string, IpPool>(pools.map((pool) => [pool.name, pool]));
    for (const [name, page] of this.#pages) {
      if (isSamePlace(page.pool, wanted.get(name))) continue;
      page.bits.drop();
      this.#pages.delete(name);
    }
    const isReservedSame = reserved.length === this.#reserved.length && reserved.every((each, index) => each === this.#reserved[index]); // biome-ignore format: one thought
    this.#reserved = reserved;
    // Of a thousand pools most are the very objects that were told before.
    const changed = pools.filter((pool) => !(isReservedSame && this.#pages.get(pool.name)?.pool === pool) && this.#write(pool, reserved)); // biome-ignore format: one thought
    this.#segments = segmentsOf([...this.#pages.values()]);
    return changed;
  }

  /** Creates or edits the page of a pool; the shape of a page changes, its place does not. True when the core has to learn what is used. */
  #write(pool: IpPool, reserved: readonly ReservedIp[]): boolean {
    const shape = poolShape(pool, reserved);
    const fingerprint = JSON.stringify(shape, (_, value) => typeof value === "bigint" ? value.toString(16) : value); // biome-ignore format: one thought
    const page = this.#pages.get(pool.name);
    if (page === undefined) {
      this.#pages.set(pool.name, { pool, fingerprint, shape, bits: this.#core.createPool(shape), isBelieved: false });
      return true;
    }
    page.pool = pool;
    if (page.fingerprint === fingerprint) return false;
    page.fingerprint = fingerprint;
    page.shape = shape;
    page.bits.edit(shape);
    return true;
  }

  /** The registry says what is used in one pool, if it is still where it was: 4 or 16 big-endian bytes each. */
  markUsed(pool: IpPool, packed: Uint8Array): void {
    const page = this.#pageOf(pool);
    if (page === undefined) return;
    const hopes = [...this.#hopes.values()].filter(({ pages }) => pages.has(page));
    for (const { ip } of hopes) page.bits.release(ip);
    page.bits.claimMany(packed);
    for (const { ip, pages } of hopes) if (page.bits.claim(ip) !== "claimed") pages.delete(page);
  }

  /** The registry says what anybody has in one pool, if it is still where it was: what it does not name is free, but for hopes. */
  replaceUsed(pool: IpPool, packed: Uint8Array): void {
    const page = this.#pageOf(pool);
    if (page === undefined) return;
    page.isBelieved = false;
    const successor = this.#core.createPool(page.shape);
    page.bits.drop();
    page.bits = successor;
    successor.claimMany(packed);
    for (const { ip, pages } of this.#hopes.values()) {
      if (pages.has(page) && successor.claim(ip) !== "claimed") pages.delete(page);
    }
  }

  /** Like {@link replaceUsed}, as somebody has counted a while ago: before a pool counts as full by this it is to be looked at anew. */
  believeUsed(pool: IpPool, packed: Uint8Array): void {
    this.replaceUsed(pool, packed);
    const page = this.#pageOf(pool);
    if (page !== undefined) page.isBelieved = true;
  }

  /** Whether {@link believeUsed} was the last to say what is in use. */
  isBelieved(poolName: string): boolean {
    return this.#pages.get(poolName)?.isBelieved ?? false;
  }

  /**
   * The pool, and those of its subnet and space that share addresses with it, be it by way of others: an address that one of them may hand out may
   * be another's, too. A subnet may have hundreds of pools beside it.
   */
  neighboursOf(pool: IpPool): readonly IpPool[] {
    const all = this.#pagesOf(pool.spec.addressSpace, pool.spec.subnet.ip).map((page) => page.pool);
    const found = new Set(all.filter(({ name }) => name === pool.name));
    for (const each of found)
      for (const other of all) if (!found.has(other) && doOverlap(each, other)) found.add(other);
    return all.filter((each) => found.has(each));
  }

  /** The registry says that an address is in use: marks it in all pools that hold it. */
  mark(space: string, ip: Ip): void {
    this.#hopes.delete(hopeFor(space, ip));
    for (const { bits } of this.#pagesOf(space, ip)) bits.claim(ip);
  }

  /** The registry says that an address is free: unmarks it in all pools that hold it. */
  unmark(space: string, ip: Ip): void {
    this.#hopes.delete(hopeFor(space, ip));
    for (const { bits } of this.#pagesOf(space, ip)) bits.release(ip);
  }

  /** Finds a free address of the pool and marks it in hope. The search starts at `seed`, or at the lowest address unless `isScattered`. */
  take(pool: IpPool, seed: number, isScattered = false): Ip | undefined {
    const bits = this.#pageOf(pool)?.bits;
    const isAscending = pool.spec.selection === "ascending" && !isScattered;
    const ip = isAscending ? bits?.findFreeAscending() : bits?.findFree(seed);
    if (ip !== undefined) this.#hope(pool.spec.addressSpace, ip);
    return ip;
  }

  /** Marks just this address in hope, if the pool may hand it out and believes it free. */
  takeExactly(pool: IpPool, ip: Ip): "claimed" | "taken" | "outside" {
    const bits = this.#pageOf(pool)?.bits;
    if (bits === undefined || !bits.contains(ip)) return "outside";
    if (bits.test(ip)) return "taken";
    this.#hope(pool.spec.addressSpace, ip);
    return "claimed";
  }

  /** A hope has come to nothing: what it marked is free again, unless the registry has spoken about it since. */
  giveBack(space: string, ip: Ip): void {
    const key = hopeFor(space, ip);
    for (const page of this.#hopes.get(key)?.pages ?? []) {
      if (this.#pages.get(page.pool.name) === page) page.bits.release(ip);
    }
    this.#hopes.delete(key);
  }

  /** Pages that were edited may not have heard yet of an address that others know to be in use: theirs stays. */
  #hope(space: string, ip: Ip): void {
    const key = hopeFor(space, ip);
    const marked = this.#pagesOf(space, ip).filter(({ bits }) => bits.claim(ip) === "claimed");
    this.#hopes.set(key, { ip, pages: new Set([...(this.#hopes.get(key)?.pages ?? []), ...marked]) });
  }

  /** Whether the pool may hand the address out: in its ranges, neither excluded nor reserved. */
  contains(poolName: string, ip: Ip): boolean {
    return this.#pages.get(poolName)?.bits.contains(ip) ?? false;
  }

  counts(poolName: string): PoolCounts | undefined {
    return this.#pages.get(poolName)?.bits.counts();
  }

  /** None when the pool of that name has moved since the caller looked. */
  #pageOf(pool: IpPool): Page | undefined {
    const page = this.#pages.get(pool.name);
    return page !== undefined && isSamePlace(pool, page.pool) ? page : undefined;
  }

  #pagesOf(space: string, ip: Ip): readonly Page[] {
    const segments = this.#segments.get(space) ?? [];
    let low = 0;
    let high = segments.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const segment = segments[middle];
      if (segment !== undefined && compareIp(ip, segment.subnet.ip) >= 0) low = middle + 1;
      else high = middle;
    }
    const found = segments[low - 1];
    return found !== undefined && prefixContains(found.subnet, ip) ? found.pages : [];
  }
}

function hopeFor(space: string, { family, value }: Ip): string {
  return `${family} ${value.toString(16)} ${space}`;
}

/** Marks mean addresses of one subnet in one space: a pool that moves starts on an empty page. */
function isSamePlace({ spec }: IpPool, other: IpPool | undefined): boolean {
  if (other === undefined || spec.addressSpace !== other.spec.addressSpace) return false;
  return spec.subnet.length === other.spec.subnet.length && equalIp(spec.subnet.ip, other.spec.subnet.ip);
}

function doOverlap(a: IpPool, b: IpPool): boolean {
  return a.spec.ranges.some((range) => b.spec.ranges.some((other) => rangesOverlap(range, other)));
}

function segmentsOf(pages: readonly Page[]): Map<string, Segment[]> {
  const spaces = new Map<string, Segment[]>();
  const ordered = [...pages].sort((a, b) => compareIp(a.pool.spec.subnet.ip, b.pool.spec.subnet.ip));
  for (const page of ordered) {
    const { addressSpace, subnet } = page.pool.spec;
    const segments = spaces.get(addressSpace) ?? [];
    spaces.set(addressSpace, segments);
    const last = segments.at(-1);
    if (last !== undefined && equalIp(firstIp(last.subnet), firstIp(subnet))) last.pages.push(page);
    else segments.push({ subnet, pages: [page] });
  }
  return spaces;
}
