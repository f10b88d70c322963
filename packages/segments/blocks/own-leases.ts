/** A cluster's memory of the blocks that it has leased, written before each write to the server. */
import * as z from "zod";
import { decodeJsonConfig } from "../../../host/config/config-error.ts";

const NO_SEAL = { member: "", token: "", writes: 0, next: "" };

const leases = z.object({
  /** The request that is under way; null if none is. */
  request: z
    .object({
      id: z.string(),
      pool: z.string(),
      /** Wanted, and no others. */
      blocks: z.array(z.string()).optional(),
      /** Its block overlaps with one that was recorded later, which gets a pass to go. */
      isWaiting: z.boolean(),
    })
    .nullable(),
  /** By block: the request by which it was got, and its pool. */
  leases: z.record(z.string(), z.object({ request: z.string(), pool: z.string() })),
  /** Requests whose blocks were given back, the latest last: late blocks of them are removed. */
  past: z.array(z.string()),
  /** An administrator has decided that this cluster continues in its name. */
  isRejoining: z.boolean(),
  /** The mark by which the cluster recognises its object of a hub (seal.ts). */
  seal: z
    .object({
      /** As which member of the range it wrote; "" before the first write. */
      member: z.string(),
      /** Of the object when the write `next` was begun; "" and 0 before the first. */
      token: z.string(),
      writes: z.int().min(0),
      /** The token of the write that was begun last; "" before the first. */
      next: z.string(),
    })
    .default(NO_SEAL),
});

export type OwnLeases = Readonly<z.output<typeof leases>>;

export type Seal = OwnLeases["seal"];

/** Before the first write. */
export const NO_LEASES: OwnLeases = { request: null, leases: {}, past: [], isRejoining: false, seal: NO_SEAL };

/** Decodes the memory from JSON; `source` names it in the error. Throws ConfigError. */
export function parseOwnLeases(text: string, source: string): OwnLeases {
  return decodeJsonConfig(leases, text, source);
}
