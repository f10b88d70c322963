/** The answers of the server of a cluster's blocks, as the controller knows them. */
import type { Prefix } from "../../../host/net/prefix.ts";
import type { Range } from "../../../host/net/range.ts";
import type { SourceReason } from "../../../host/resources/pool-source.ts";
import type { Bar, Short } from "./lease-server.ts";

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
