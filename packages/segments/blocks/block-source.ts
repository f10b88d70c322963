/** Where a cluster's blocks come from, as the controller knows it. */
import type { Prefix } from "../../../host/net/prefix.ts";
import type { Range } from "../../../host/net/range.ts";
import type { SourceReason } from "../../../host/resources/pool-source.ts";
import type { Bar, Short } from "./lease-server.ts";
import type { BlockDemand } from "./plan-leases.ts";

/** The source's last answer. */
export interface SourceView {
  readonly subnet: Prefix;
  readonly addressSpace: string;
  /** Addresses of a block. */
  readonly size: number;
  /** Addresses that no pod of any cluster may have: of routers and nodes, and those that an administrator excluded. */
  readonly excluded: readonly Range[];
  /** The blocks that the cluster may use, with their pools. */
  readonly blocks: Readonly<Record<string, string>>;
  /** Blocks that it leased and that another cluster has too, or that the server has lost, with their pools. */
  readonly disputed: Readonly<Record<string, string>>;
  /** Why nothing is leased or returned. Addresses of a contested cluster are probed before they are used. */
  readonly bar?: Bar | undefined;
  /** Why a demand could not be met. */
  readonly short?: Short | undefined;
  /** Most blocks that the cluster may have; undefined if the source has no such limit. */
  readonly share?: number | undefined;
  /** Blocks of other clusters, with their names. */
  readonly others: Readonly<Record<string, string>>;
}

/** The source gives no usable answer. The message quotes it. */
export class SourceFailure extends Error {
  override readonly name = "SourceFailure";
  readonly reason: SourceReason;

  constructor(reason: SourceReason, message: string, cause: unknown) {
    super(message, { cause });
    this.reason = reason;
  }
}

export interface BlockSource {
  /**
   * Asks the source, and leases and returns blocks as demanded, as far as it may. Rejects without an answer, with
   * SourceFailure if the source is the cause: the request may have been carried out, and the next call finds out.
   */
  update(demand: BlockDemand, signal: AbortSignal): Promise<SourceView>;
}
