/**
 * The pools as ADD sees them: the snapshot of the resources together with the address book that belongs to it.
 * Effects: reads what is used from the registry into the address book.
 */
import type { PoolCache } from "../../ipam/pool-cache.ts";
import type { Cooldowns, Registry } from "../../registry/registry.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import type { Snapshot } from "../../resources/snapshot.ts";
import { spanOf } from "./surveys.ts";

export class Catalogue {
  readonly #book: PoolCache;
  readonly #registry: Registry;
  #snapshot: Snapshot;
  /** Pools whose used addresses the book has not heard of yet. */
  readonly #unread = new Map<string, IpPool>();
  #reading: Promise<void> | undefined;
  /** As the registry was told last: it is another thread. */
  #cooldowns = "";

  constructor(book: PoolCache, registry: Registry, snapshot: Snapshot) {
    this.#book = book;
    this.#registry = registry;
    this.#snapshot = snapshot;
  }

  get book(): PoolCache {
    return this.#book;
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** Follows the snapshot at once; {@link settled} waits until the book knows what is used in its pools. */
  follow(snapshot: Snapshot): void {
    this.#snapshot = snapshot;
    const cooldowns = cooldownsOf(snapshot);
    const text = JSON.stringify([cooldowns.defaultMs, [...cooldowns.byPool]]);
    if (text !== this.#cooldowns) this.#registry.setCooldowns(cooldowns);
    this.#cooldowns = text;
    for (const pool of this.#book.update([...snapshot.pools.values()], snapshot.reserved)) {
      this.#unread.set(pool.name, pool);
    }
  }

  /** The registry has rows that the book has not heard of: {@link settled} waits until it has. */
  reread(): void {
    for (const pool of this.#snapshot.pools.values()) this.#unread.set(pool.name, pool);
  }

  /** The current snapshot, once the book agrees with it. What could not be read is tried again by the next caller. */
  async settled(): Promise<Snapshot> {
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
        await this.#load(pool);
        if (this.#unread.get(name) === pool) this.#unread.delete(name);
      }),
    );
  }

  async #load(pool: IpPool): Promise<void> {
    this.#book.markUsed(pool, await this.#registry.readUsed(spanOf(pool)));
  }
}

/** How long addresses cool, as the resources say it. */
export function cooldownsOf({ pools, vendorConf }: Snapshot): Cooldowns {
  const own = [...pools.values()].flatMap(({ name, spec }): [string, number][] =>
    spec.cooldownMs === undefined ? [] : [[name, spec.cooldownMs]],
  );
  return { defaultMs: vendorConf.allocationCooldownMs, byPool: new Map(own) };
}
