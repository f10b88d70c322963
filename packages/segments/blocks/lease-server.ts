/**
 * The port to the server that records leases of blocks: hub.ts implements it over RangeMembers, prefix-server.ts over
 * prefixes of Nautobot and NetBox. Neither compares one cluster's writes with another's.
 */
import type { Prefix } from "../../../host/net/prefix.ts";
import type { Range } from "../../../host/net/range.ts";

/** Whose a block is. */
export interface Mark {
  /** By which the cluster knows its own again; no other cluster has it. */
  readonly cluster: string;
  /** The cluster's name, as people know it. */
  readonly name: string;
  readonly pool: string;
  /** UUID of the request by which it was made. */
  readonly request: string;
  /** It was made again after the server had lost it: another cluster may have got its addresses meanwhile. */
  readonly isAgain: boolean;
}

/** An entry of the server, within the network that blocks are taken of. */
export interface Child {
  /** The server's. */
  readonly id: string;
  readonly prefix: Prefix;
  /** RFC 3339 in UTC. Its order is the same for all clusters, and may be wrong. */
  readonly created: string;
  /** Undefined for a block that no Berth has made. */
  readonly mark?: Mark | undefined;
}

/** The network that blocks are taken of. */
export interface Parent {
  readonly subnet: Prefix;
  readonly addressSpace: string;
  /** Length of each block. */
  readonly blockSize: number;
  /** Addresses that no pod of any cluster may have. */
  readonly excluded: readonly Range[];
}

/** Why the cluster neither leases nor returns. */
export type Bar =
  /** Another cluster has written in its name. */
  | { readonly kind: "otherCluster"; readonly cluster: string }
  /** It is a copy, or was copied, or is older than its last write, or was released. */
  | { readonly kind: "contested" };

/** Blocks to record and to remove. */
export interface Change {
  readonly remove: readonly Child[];
  readonly make: readonly Made[];
  /** Whether another cluster may have made one since the look. */
  readonly mayBeThere: boolean;
}

/** A block that is made, or made again. */
export interface Made {
  readonly prefix: Prefix;
  readonly mark: Mark;
}

/** Why there is no block: the cluster has as many as it may have, or none is free. */
export type Short = "share" | "range";

export interface LeaseServer<P extends Parent = Parent> {
  /**
   * Whether each cluster has its own list. While there is no {@link bar}, nothing in it is by a copy of the cluster:
   * unknown entries are from its past. In a common list they are a copy's, and the same block may be refused twice, so
   * that an entry for half of it tells that all of it is in dispute.
   */
  readonly hasOwnList: boolean;
  /** As of the last {@link children}: why nothing may be written, and the most blocks that the cluster may have. */
  readonly bar?: Bar | undefined;
  readonly share?: number | undefined;
  /** Rejects unless the server has it once. */
  findParent(signal: AbortSignal): Promise<P>;
  /** Returns all within, of whomever. */
  children(parent: P, signal: AbortSignal): Promise<readonly Child[]>;
  /** Has free blocks written down: at most so many, or one after the other. Returns why there is none. */
  ask(parent: P, of: { readonly mark: Mark; readonly count: number }, signal: AbortSignal): Promise<Short | undefined>;
  /**
   * Makes all changes at once, or the first one. Returns `refused` if a block may exist already; rejects if it cannot.
   * Removing an absent block succeeds.
   */
  write(parent: P, change: Change, signal: AbortSignal): Promise<"share" | "refused" | undefined>;
  /** Returns the addresses within that others than this cluster have written down. */
  addresses(
    parent: P,
    of: { readonly prefix: Prefix; readonly cluster: string },
    signal: AbortSignal,
  ): Promise<readonly Prefix[]>;
}
