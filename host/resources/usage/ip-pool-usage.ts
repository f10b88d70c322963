/**
 * The resource IPPoolUsage: how much of one pool is in use, and which of its addresses (allocation rule 11). Its name is the pool's. Derived from the
 * allocations, and never more than a hint: nothing is claimed, refused or freed by it. Unknown keys pass: an agent reads what a newer controller wrote.
 */
import { z } from "zod";
import { API_VERSION, decodeBerth, metadata } from "../fields/metadata.ts";

/** Largest bitmap of a pool's usage object: bytes, one bit for each address. Larger pools have free counts for each block instead. @limit */
export const MAX_USAGE_BITMAP_BYTES = 65_536;

/** Most blocks of 4,096 addresses for which a usage object counts what is free. @limit */
export const MAX_USAGE_BLOCKS = 4_096;

/** Addresses in a block of `freePerBlock`. */
export const USAGE_BLOCK = 4_096;

export interface PoolUsage {
  /** Of the ranges that the counts and the bitmap were made for (ordinals.ts). */
  readonly rangesHash: string;
  /** Addresses that may be handed out, and those of them that nobody has: `Number.MAX_SAFE_INTEGER` stands for more. */
  readonly total: number;
  readonly free: number;
  /** Allocations of the pool by state. */
  readonly bound: number;
  readonly cooling: number;
  readonly kept: number;
  readonly quarantined: number;
  /** Of those, addresses that are not in the ranges. */
  readonly outside: number;
  /** Addresses of the ranges that are allocations of other pools. */
  readonly others: number;
  /** Of pools up to 524,288 addresses: ordinal i is bit i mod 8 of byte i / 8, set when the address has an allocation. */
  readonly bitmap?: Uint8Array | undefined;
  /** Of larger ones: free addresses in each block of 4,096 ordinals, of the first 2^24. */
  readonly freePerBlock?: readonly number[] | undefined;
}

export interface IpPoolUsage {
  /** The pool's. */
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Of the pool that owns the object; "" when none does. */
  readonly poolUid: string;
  readonly usage: PoolUsage;
}

const count = (description: string) => z.int().min(0).default(0).meta({ description });

/** Of the bitmap as base64: characters. */
const MAX_BITMAP_TEXT = Math.ceil(MAX_USAGE_BITMAP_BYTES / 3) * 4;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export const ipPoolUsageStatus = z.object({
  rangesHash: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .meta({
      description:
        "Names the ranges that this was made for: FNV-1a, 64 bits. When the pool's are others by now, the bitmap means nothing.",
    }),
  total: count("Addresses that may be handed out; 9,007,199,254,740,991 stands for more."),
  free: count("Addresses that may be handed out and have no allocation."),
  bound: count("Allocations of the pool that pods hold."),
  cooling: count("Allocations of the pool that rest before they are free."),
  kept: count("Allocations of the pool that are kept for a workload whose pod is away."),
  quarantined: count("Allocations of the pool that must not be used."),
  outside: count("Allocations of the pool whose addresses are not in its ranges."),
  others: count("Addresses of the ranges that are allocations of other pools."),
  bitmap: z.string().max(MAX_BITMAP_TEXT).regex(BASE64).optional().meta({
    description:
      "Of pools up to 524,288 addresses, as base64: which addresses have an allocation. The ranges, joined and in order, number the addresses from 0; number i is bit i mod 8 of byte i / 8.",
  }),
  freePerBlock: z.array(z.int32().min(0).max(USAGE_BLOCK)).max(MAX_USAGE_BLOCKS).optional().meta({
    description: "Of larger pools: how many addresses are free in each block of 4,096, of the first 16,777,216.",
  }),
});

const schema = z.object({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("IPPoolUsage"),
  metadata,
  status: ipPoolUsageStatus,
});

/** Throws ConfigError. */
export function decodeIpPoolUsage(value: unknown, source: string): IpPoolUsage {
  const { metadata, status } = decodeBerth(schema, value, source);
  const { bitmap, ...counts } = status;
  const owner = metadata.ownerReferences.find(({ kind, name }) => kind === "IPPool" && name === metadata.name);
  return {
    name: metadata.name,
    uid: metadata.uid ?? "",
    resourceVersion: metadata.resourceVersion ?? "",
    poolUid: owner?.uid ?? "",
    usage: bitmap === undefined ? counts : { ...counts, bitmap: Buffer.from(bitmap, "base64") },
  };
}

export interface UsageMetadata {
  /** The pool's name and UID. */
  readonly name: string;
  readonly poolUid: string;
  /** Both: preconditions of an update. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** The object as the API server takes it. */
export function encodeIpPoolUsage(usage: PoolUsage, { name, poolUid, uid, resourceVersion }: UsageMetadata): object {
  const { bitmap, ...counts } = usage;
  const owner = { apiVersion: API_VERSION, kind: "IPPool", name, uid: poolUid, controller: true };
  return {
    apiVersion: API_VERSION,
    kind: "IPPoolUsage",
    metadata: { name, uid, resourceVersion, ownerReferences: [owner] },
    status: bitmap === undefined ? counts : { ...counts, bitmap: Buffer.from(bitmap).toString("base64") },
  };
}
