/** What a cluster remembers of a prefix of which it takes parts. It is written down before each write of the server. */
import * as z from "zod";
import { decodeJsonConfig } from "../../../../host/config/config-error.ts";

const own = z.object({
  /** The request that is under way; null if none is. */
  request: z
    .object({
      id: z.string(),
      pool: z.string(),
      /** Its prefix overlaps with one that was created later: that one is given a pass to go. */
      isWaiting: z.boolean(),
    })
    .nullable(),
  /** By block: the request by which it was got, and its pool. */
  leases: z.record(z.string(), z.object({ request: z.string(), pool: z.string() })),
  /** Requests whose prefixes were given back, the latest last: what of them comes late is deleted. */
  past: z.array(z.string()),
  /** An administrator has said that this cluster is the one that goes on in its name. */
  isRejoining: z.boolean(),
});

export type OwnPrefixes = Readonly<z.output<typeof own>>;

/** Before the first request. */
export const NO_PREFIXES: OwnPrefixes = { request: null, leases: {}, past: [], isRejoining: false };

/** Decodes what was written down as JSON; `source` names it in the error. Throws ConfigError. */
export function parseOwnPrefixes(text: string, source: string): OwnPrefixes {
  return decodeJsonConfig(own, text, source);
}
