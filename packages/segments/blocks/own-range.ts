/**
 * What a cluster remembers of an AddressRange in which it has blocks. It is written down before and after each write
 * of the hub.
 */
import * as z from "zod";
import { decodeJsonConfig } from "../../../host/config/config-error.ts";

const own = z.object({
  /** UID of the hub's object. */
  uid: z.string(),
  /** The token of the last write that is known to be carried out; "" before the first. */
  token: z.string(),
  /** The token of the write that may be under way; "" if none is. */
  next: z.string(),
  /** Number of writes that are known to be carried out. */
  writes: z.int().min(0),
  /** The epochs of the range that were in force, the latest last. */
  epochs: z.array(z.string()),
  /** Highest sequence that was seen. */
  sequence: z.int().min(0),
  /** The pool of each block that the cluster has. */
  blocks: z.record(z.string(), z.string()),
  /** The pool of each block that was leased to another cluster after the hub had lost the lease. */
  disputed: z.record(z.string(), z.string()),
  /** An administrator has said that this cluster is the one that goes on in its name. */
  isRejoining: z.boolean(),
});

export type OwnRange = Readonly<z.output<typeof own>>;

/** Before the first write. */
export function newOwnRange(uid: string): OwnRange {
  return { uid, token: "", next: "", writes: 0, epochs: [], sequence: 0, blocks: {}, disputed: {}, isRejoining: false };
}

/** Decodes what was written down as JSON; `source` names it in the error. Throws ConfigError. */
export function parseOwnRange(text: string, source: string): OwnRange {
  return decodeJsonConfig(own, text, source);
}
