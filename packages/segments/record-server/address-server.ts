/** The port to a server of record's single addresses. Each product has an adapter beside this file. */
import type { AddressPlace, PodAddress, ServerAddress } from "./pod-address.ts";

/** Most entries of one call. */
export const BATCH_SIZE = 100;

export interface AddressServer {
  /** Sent so far. */
  readonly requests: number;
  /** Why the files of token and authority cannot be read now; undefined if they can. */
  readonly problem: string | undefined;
  /**
   * Resolves names on the server. Rejects with MissingOnServer if the tag or a space is missing, and like all other
   * calls with RecordServerError if the server does not answer as expected.
   */
  prepare(signal: AbortSignal): Promise<void>;
  /** Yields all entries with the tag and the cluster's mark, page by page. */
  listOwn(signal: AbortSignal): AsyncGenerator<readonly ServerAddress[]>;
  /** Returns all entries, everybody's, that are at these addresses of one space; at most BATCH_SIZE. */
  findAt(places: readonly AddressPlace[], signal: AbortSignal): Promise<readonly ServerAddress[]>;
  /** Creates all or none of one space. Rejects with RecordsRefused if the server says that some are wrong. */
  create(addresses: readonly PodAddress[], signal: AbortSignal): Promise<readonly ServerAddress[]>;
  /** Changes all or none. Rejects as {@link create}. */
  update(addresses: readonly (PodAddress & { readonly id: string })[], signal: AbortSignal): Promise<void>;
  /** Deletes those that are there still, or none. Rejects as {@link create}. */
  remove(ids: readonly string[], signal: AbortSignal): Promise<void>;
}

/** Something that an administrator has to create on the server. */
export class MissingOnServer extends Error {
  override readonly name = "MissingOnServer";
}

/** The server has carried out nothing of a call, because of some of its entries. */
export class RecordsRefused extends Error {
  override readonly name = "RecordsRefused";
  /**
   * Why, for each entry of the call in its order; undefined if nothing is wrong with it. Undefined as a whole if the
   * server does not say with which.
   */
  readonly reasons: readonly (string | undefined)[] | undefined;

  constructor(reasons: RecordsRefused["reasons"]) {
    super("The server refused entries");
    this.reasons = reasons;
  }
}
