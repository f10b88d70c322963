/** A pool as the status API answers it and berthctl shows it. */
import * as z from "zod";

/** A decimal number as text: an IPv6 pool has more addresses than a JSON number can count. */
const count = z.string().regex(/^[0-9]{1,39}$/);

const states = z.object({
  Bound: z.int().min(0).optional(),
  Cooling: z.int().min(0).optional(),
  Kept: z.int().min(0).optional(),
  Quarantined: z.int().min(0).optional(),
});

const source = z.object({
  /** The AddressRange from which it leases its blocks. */
  range: z.string(),
  /** This cluster's name in it. */
  member: z.string().default(""),
  /** Why it gets no further blocks, as a sentence without its full stop; "" if it can get more. */
  problem: z.string().default(""),
  /** `problem` as one word. */
  reason: z.string().default(""),
  /** When the hub answered last, RFC 3339; "" while it answers. */
  heard: z.string().default(""),
  /** Most blocks of the cluster; absent if unknown. */
  maxBlocks: z.int().min(0).optional(),
  /** `total`: addresses that may be allocated. */
  blocks: z.array(z.object({ block: z.string(), state: z.string(), total: z.int().min(0) })),
  /** The blocks of other clusters: their number, and their addresses as ranges. */
  others: z.array(z.object({ member: z.string(), blocks: z.int(), ips: z.array(z.string()) })).default([]),
});

/** Newer agents may add keys. Counts are absent if they are unknown. */
export const poolRecord = z.object({
  name: z.string(),
  subnet: z.string().optional(),
  addressSpace: z.string().optional(),
  gateway: z.string().optional(),
  /** Addresses that may be allocated. */
  total: count.optional(),
  used: count.optional(),
  free: count.optional(),
  /** Allocations made from this pool by state. Overlapping pools count each address once. */
  states,
  default: z.boolean().optional(),
  disabled: z.boolean().optional(),
  /** The pool no longer exists, and some of its addresses are in use. */
  gone: z.boolean().optional(),
  /** The pool has been deleted and waits for its last address. */
  deleting: z.boolean().optional(),
  /** The Subnet that the pool was generated from. */
  generatedFrom: z.string().optional(),
  /** The workload that a generated pool serves: `Deployment shop/web`. */
  generatedFor: z.string().optional(),
  /** Why nothing is allocated from the pool: `is refused: …`. */
  refused: z.string().optional(),
  /** Only of a pool that leases its addresses. */
  source: source.optional(),
});

export type PoolRecord = z.output<typeof poolRecord>;
