/**
 * The checker of generated pools: sees every write to pools, Subnets and allocations in order, and says what must not
 * have happened (docs/develop/subnets.md, "Why no address is in two pools").
 *
 *   // `known`: what that controller could know; undefined: a person wrote
 *   checker.written({ collection, before, after }, { controller: "c1", known });
 *   checker.breaches   // texts; none: all is well
 *
 * Whatever runs at once, an address is never in two generated pools of one address space, a pool gets none that its
 * Subnet's status does not reserve for it alone, and none is taken away that its writer knew to be held. Of pools
 * made by hand, ReservedIPs and edits of a Subnet less can be promised, because they are made without asking the
 * controller: what the controller knew when its round began is not given out.
 */
import type { StoredObject } from "../../fakes/memory-objects.ts";
import { type PoolFacts, poolFactsOf, type SubnetFacts, subnetFactsOf } from "./subnets-facts.ts";

const ROOT = "/apis/ipam.vendor.io/v1";
export const POOLS = `${ROOT}/ippools`;
export const SUBNETS = `${ROOT}/subnets`;

/** Knowledge of a pool's writer: by address, and for allocations by the pool's name and the address. */
export interface Known {
  /** Addresses of one space that pools made by hand and ReservedIPs had, in the writer's caches. */
  isOthers(addressSpace: string, address: string): boolean;
  /** Whether the Subnet of this UID offered the address; undefined: the writer did not know the Subnet. */
  isOffered(subnetUid: string, address: string): boolean | undefined;
  isHeld(addressSpace: string, pool: string, address: string): boolean;
}

export interface Writer {
  readonly controller: string;
  /** Undefined: what it knew is not judged. */
  readonly known: Known | undefined;
}

interface Change {
  readonly collection: string;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
}

/** Breaches beyond these are counted only: one mistake often makes thousands. */
const MAX_TEXTS = 20;

export class SubnetsChecker {
  readonly #pools = new Map<string, PoolFacts>();
  readonly #subnets = new Map<string, SubnetFacts>();
  readonly breaches: string[] = [];
  /** Number of times that a pool was given something, and of times that something was taken. */
  gains = 0;
  losses = 0;

  get pools(): ReadonlyMap<string, PoolFacts> {
    return this.#pools;
  }

  get subnets(): ReadonlyMap<string, SubnetFacts> {
    return this.#subnets;
  }

  written({ collection, before, after }: Change, writer: Writer | undefined): void {
    const name = (after ?? before)?.metadata.name ?? "";
    if (collection === SUBNETS) {
      if (after === undefined) this.#subnets.delete(name);
      else this.#subnets.set(name, subnetFactsOf(after));
    }
    if (collection !== POOLS) return;
    const was = this.#pools.get(name);
    if (after === undefined) {
      this.#pools.delete(name);
      return;
    }
    const is = poolFactsOf(after);
    this.#pools.set(name, is);
    if (is.generated === undefined) return;
    const former = was?.uid === is.uid ? was : undefined;
    const gained = [...is.addresses].filter((address) => former?.addresses.has(address) !== true);
    const lost = [...(former?.addresses ?? [])].filter((address) => !is.addresses.has(address));
    if (gained.length > 0) this.#gained(is, gained, former === undefined, writer);
    if (lost.length > 0 && writer !== undefined) this.#lost(is, lost, writer);
  }

  #gained(pool: PoolFacts, gained: readonly string[], isNew: boolean, writer: Writer | undefined): void {
    this.gains++;
    for (const other of this.#pools.values()) {
      if (other === pool || other.generated === undefined || other.addressSpace !== pool.addressSpace) continue;
      const shared = gained.filter((address) => other.addresses.has(address));
      if (shared.length > 0) this.#breach(writer, `${pool.name} gets ${shared.join()}, which ${other.name} has`);
    }
    if (writer === undefined) return;
    if (isNew) this.#breach(writer, `${pool.name} is created with ${gained.join()}`);
    this.#checkReservation(pool, gained, writer);
    const { known } = writer;
    if (known === undefined) return;
    const others = gained.filter((address) => known.isOthers(pool.addressSpace, address));
    if (others.length > 0) this.#breach(writer, `${pool.name} gets ${others.join()}, known to be another's`);
    const uid = this.#subnets.get(pool.generated?.subnet ?? "")?.uid ?? "";
    const odd = gained.filter((address) => known.isOffered(uid, address) === false);
    if (odd.length > 0) this.#breach(writer, `${pool.name} gets ${odd.join()}, known not to be offered`);
  }

  /** By the Subnets of the network as they are now: one that has gone reserves nothing. */
  #checkReservation(pool: PoolFacts, gained: readonly string[], writer: Writer): void {
    const own = this.#subnets.get(pool.generated?.subnet ?? "");
    if (own === undefined) this.#breach(writer, `${pool.name} gets ${gained.join()} of a Subnet that is not there`);
    for (const subnet of this.#subnets.values()) {
      if (subnet.addressSpace !== pool.addressSpace) continue;
      for (const [name, promised] of subnet.reserved) {
        if (name === pool.name && subnet === own) {
          const bare = gained.filter((address) => !promised.has(address));
          if (bare.length > 0)
            this.#breach(writer, `${pool.name} gets ${bare.join()}, not reserved for it in ${own.name}`);
        }
        const theirs = name === pool.name ? [] : gained.filter((address) => promised.has(address));
        if (theirs.length > 0)
          this.#breach(writer, `${pool.name} gets ${theirs.join()}, reserved for ${name} in ${subnet.name}`);
      }
      if (subnet === own && !subnet.reserved.has(pool.name))
        this.#breach(writer, `${pool.name} gets ${gained.join()}, and ${own.name} reserves nothing for it`);
    }
  }

  #lost(pool: PoolFacts, lost: readonly string[], writer: Writer): void {
    this.losses++;
    const held = lost.filter((address) => writer.known?.isHeld(pool.addressSpace, pool.name, address) === true);
    if (held.length > 0) this.#breach(writer, `${pool.name} loses ${held.join()}, known to be held`);
  }

  #breach(writer: Writer | undefined, text: string): void {
    if (this.breaches.length < MAX_TEXTS) this.breaches.push(`${writer?.controller ?? "a user"}: ${text}`);
  }
}
