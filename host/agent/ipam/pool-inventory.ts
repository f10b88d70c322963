/** The agent's pools: the resources' snapshot, the pool cache that belongs to it, and the registry behind it. */
import type { PoolCache } from "../../ipam/pool-cache.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { byName } from "../../lib/order.ts";
import type { ClaimMetrics } from "../../metrics/agent-metrics.ts";
import { formatPrefix } from "../../net/prefix.ts";
import type { Cooldowns, Registry } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { NONE_OCCUPIED, type OccupiedIps } from "../../resources/occupied-ips.ts";
import { describeSource } from "../../resources/pool-source.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { spanOf } from "./live-usage.ts";
import { RefusedAddresses } from "./refused-addresses.ts";

/** Most warnings of selection that are remembered, to log each once. */
const MAX_REMEMBERED_WARNINGS = 256;

interface InventoryOptions {
  readonly metrics?: ClaimMetrics | undefined;
  /** Default: none yet. */
  readonly refused?: RefusedAddresses;
}

/** Returns the addresses that machines other than pods have now: the same value as before if nothing has changed. */
type ReadOccupied = () => OccupiedIps;

export class PoolInventory {
  readonly poolCache: PoolCache;
  readonly registry: Registry;
  /** Counts the claims of these pools; absent: they are not counted. */
  readonly metrics: ClaimMetrics | undefined;
  readonly refused: RefusedAddresses;
  #snapshot: Snapshot;
  #readOccupied: ReadOccupied | undefined;
  #occupied = NONE_OCCUPIED;
  /** Pools whose used addresses are still to be read into the cache. */
  readonly #unread = new Map<string, IpPool>();
  #reading: Promise<void> | undefined;
  /** The registry's cooldowns, by pool and by default; undefined before it has them: it may be another thread. */
  readonly #cooldowns = new Map<string, number>();
  #defaultCooldownMs: number | undefined;
  #isFollowing = false;
  readonly #warned = new BoundedMap<string, true>(MAX_REMEMBERED_WARNINGS);

  constructor(
    poolCache: PoolCache,
    registry: Registry,
    snapshot: Snapshot,
    { metrics, refused = new RefusedAddresses() }: InventoryOptions = {},
  ) {
    this.refused = refused;
    this.poolCache = poolCache;
    this.registry = registry;
    this.#snapshot = snapshot;
    this.metrics = metrics;
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /**
   * Applies the snapshot at once; {@link loaded} waits until the used addresses of its pools are in the cache.
   * `changed`: names of the pools in which it differs from the one before; absent: all may differ.
   */
  follow(snapshot: Snapshot, changed?: ReadonlySet<string>): void {
    const all = (): Set<string> => new Set([...this.#snapshot.pools.keys(), ...snapshot.pools.keys()]);
    const names = changed === undefined || !this.#isFollowing ? all() : changed;
    this.#isFollowing = true;
    this.#snapshot = snapshot;
    this.#warned.clear();
    this.#followCooldowns(names);
    const changes = [...names].map((name) => [name, snapshot.pools.get(name)] as const);
    for (const pool of this.poolCache.apply(changes, snapshot.reserved)) this.#unread.set(pool.name, pool);
  }

  /** Times for which released addresses cool. The map is the inventory's own. */
  get cooldowns(): Cooldowns {
    return { defaultMs: this.#snapshot.vendorConf.allocationCooldownMs, byPool: this.#cooldowns };
  }

  #followCooldowns(names: Iterable<string>): void {
    const { pools, vendorConf } = this.#snapshot;
    const defaultMs = vendorConf.allocationCooldownMs;
    let isOther = defaultMs !== this.#defaultCooldownMs;
    this.#defaultCooldownMs = defaultMs;
    for (const name of names) {
      const own = pools.get(name)?.spec.cooldownMs;
      if (own === this.#cooldowns.get(name)) continue;
      isOther = true;
      if (own === undefined) this.#cooldowns.delete(name);
      else this.#cooldowns.set(name, own);
    }
    if (isOther) this.registry.setCooldowns({ defaultMs, byPool: new Map(this.#cooldowns) });
  }

  /** Returns whether a warning of selection is new: it was not given since pools or settings changed. */
  isNewWarning(text: string): boolean {
    if (this.#warned.has(text)) return false;
    this.#warned.set(text, true);
    return true;
  }

  /** Sentences without a full stop, about default pools without an address. */
  get problems(): readonly string[] {
    const { defaults } = this.#snapshot.pools;
    const empty = [...defaults].filter(({ name, spec }) => !spec.disable && this.poolCache.counts(name)?.total === 0n);
    return empty.sort(byName).map(describeEmpty);
  }

  /** From now on {@link loaded} passes over its addresses. */
  followOccupied(read: ReadOccupied): void {
    this.#readOccupied = read;
  }

  /** Marks are lost where an address becomes one of another machine, and come back from the registry. */
  #occupy(occupied: OccupiedIps): void {
    this.#occupied = occupied;
    for (const pool of this.poolCache.occupy(occupied)) this.#unread.set(pool.name, pool);
  }

  /** The registry has rows that the cache lacks: {@link loaded} waits until they are read. */
  reread(): void {
    for (const pool of this.#snapshot.pools.values()) this.#unread.set(pool.name, pool);
  }

  /** Returns the current snapshot, once the pool cache agrees with it. A failed read is retried by the next caller. */
  async loaded(): Promise<Snapshot> {
    const occupied = this.#readOccupied?.() ?? this.#occupied;
    if (occupied !== this.#occupied) this.#occupy(occupied);
    while (this.#unread.size > 0) {
      this.#reading ??= this.#readAll().finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
    return this.#snapshot;
  }

  async #readAll(): Promise<void> {
    await Promise.all(
      [...this.#unread].map(async ([name, pool]) => {
        this.poolCache.markUsed(pool, await this.registry.readUsed(spanOf(pool)));
        if (this.#unread.get(name) === pool) this.#unread.delete(name);
      }),
    );
  }
}

function describeEmpty({ name, spec: { subnet }, source }: IpPool): string {
  if (source !== undefined)
    return `IPPool "${name}" is a default pool without addresses: no block of ${describeSource(source)} gives any yet`;
  const left =
    "spec.ips less spec.excludeIPs, ReservedIPs, routers, and addresses of the network and of the node leaves none";
  return `IPPool "${name}" is a default pool without addresses: ${left}; add addresses of ${formatPrefix(subnet)} to spec.ips, or set spec.default: false`;
}

/** Returns how long released addresses cool, by default and by pool. */
export function cooldownsOf({ pools, vendorConf }: Snapshot): Cooldowns {
  const own = [...pools.values()].flatMap(({ name, spec }): [string, number][] =>
    spec.cooldownMs === undefined ? [] : [[name, spec.cooldownMs]],
  );
  return { defaultMs: vendorConf.allocationCooldownMs, byPool: new Map(own) };
}
