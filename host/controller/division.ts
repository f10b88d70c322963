/** The demands that the last division of the Subnets did not meet: their conditions repeat why. */
import { isDeepStrictEqual } from "node:util";
import type { PoolDemand } from "../ipam/subnet-pools.ts";

/** Limits of pools and namespaces. */
export type Limit = "PoolTooLarge" | "TooScattered" | "NamespaceLimit";

/** A demand that is not met, and the reason. */
export interface Shortfall {
  readonly demand: PoolDemand;
  readonly reason: Limit | "SubnetFull" | "SubnetTerminating" | "SubnetRefused" | "SubnetInvalid" | "SubnetMissing";
  /** A sentence without its full stop. */
  readonly message: string;
  /** The first of its pools, which reports it; undefined if it can have none. */
  readonly pool: ShortPool | undefined;
  /** Addresses are coming back, which may end it. */
  readonly isPassing?: boolean;
}

interface ShortPool {
  readonly name: string;
  readonly subnet: string;
  readonly has: number;
  readonly wanted: number;
  /** A clause about the pool. */
  readonly message: string;
  /** A clause about its Subnet. */
  readonly room: string;
}

export class Division {
  /** Undefined until a controller that divides has planned once. */
  #shortfalls: readonly Shortfall[] | undefined = [];
  readonly #listeners = new Set<() => void>();

  get shortfalls(): readonly Shortfall[] | undefined {
    return this.#shortfalls;
  }

  /** Most passes find the same: the listeners look at all objects and allocations. */
  tell(shortfalls: readonly Shortfall[] | undefined): void {
    if (isDeepStrictEqual(shortfalls, this.#shortfalls)) return;
    this.#shortfalls = shortfalls;
    for (const listener of this.#listeners) listener();
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
