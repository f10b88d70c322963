/** A problem of a node, a host or a cluster: the record of `check`, and of every other report of problems. */
import * as z from "zod";

export const findingRecord = z.object({
  /** The finding's id: docs/findings.md has a row for each. */
  kind: z.string(),
  /**
   * `error`: pods get no network, or lose it, or an address is lost; a warning does not count for the exit code;
   * `unknown`: state that could not be read, of which no finding says more.
   */
  level: z.enum(["error", "warning", "unknown"]).default("error"),
  /** `IPPool blue`, if the API server's object itself is wrong; else empty. */
  object: z.string().default(""),
  /** Empty if the finding is about no node. */
  node: z.string().default(""),
  /** `10.0.0.7`, `10.0.0.7/lab`; empty if it is about no address. */
  address: z.string().default(""),
  pool: z.string().default(""),
  /** Empty if no pod is known. */
  namespace: z.string().default(""),
  pod: z.string().default(""),
  interface: z.string().default(""),
  /** Owner in the address's record: pod UID, or container ID; empty without a record. */
  owner: z.string().default(""),
  /** Container in the address's record; empty without one. */
  container: z.string().default(""),
  /** The problem: a clause, or a sentence without a full stop. */
  text: z.string(),
  /** The remedy: a sentence without a full stop, which ends in a colon if commands follow. */
  remedy: z.string(),
  /** For a shell of root on the node, in this order; absent if the remedy needs none. */
  commands: z.array(z.string()).optional(),
  /** Whether `berthctl release --from-report` may release the address. */
  isReleasable: z.boolean().default(false),
});

export type Finding = z.output<typeof findingRecord>;
