/**
 * The kind IPPoolUsage: the addresses in use of the pool of the same name (exhaustion in docs/develop/allocation.md).
 * The controller derives it from the allocations. It is a hint: no address is claimed, refused or freed because of it.
 * Unknown keys are accepted: newer controllers may have written them.
 */
import * as z from "zod";
import { API_VERSION, decodeBerth, metadata } from "./fields/metadata.ts";

/** Largest bitmap of a usage object: bytes, one bit per address. Larger pools have free counts per block instead. */
export const MAX_USAGE_BITMAP_BYTES = 65_536;

/** Most blocks of 4,096 addresses for which a usage object has free counts. */
const MAX_USAGE_BLOCKS = 4_096;

/** Addresses in a block of `freePerBlock`. */
const USAGE_BLOCK = 4_096;

/** Returns the core's digest of a pool's ranges (docs/develop/wasm-abi.md, Snapshots) as 16 hexadecimal digits. */
export function formatRangesHash(digest: bigint): string {
  return digest.toString(16).padStart(16, "0");
}

export interface IpPoolUsage {
  /** Same as the pool's name. */
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** UID of the pool that owns the object; "" if none does. */
  readonly poolUid: string;
  readonly usage: PoolUsage;
}

const count = (description: string) => z.int().min(0).default(0).meta({ description });

/** Length of the largest bitmap in base64: characters. */
const MAX_BITMAP_TEXT = Math.ceil(MAX_USAGE_BITMAP_BYTES / 3) * 4;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export const ipPoolUsageStatus = z.object({
  rangesHash: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .meta({
      description:
        "FNV-1a hash (64 bits) of the ranges that the status describes. If the pool's ranges have changed since, the bitmap is invalid.",
    }),
  total: count("Addresses that may be allocated. 9,007,199,254,740,991 stands for more."),
  free: count("Addresses that may be allocated and have no allocation."),
  bound: count("Allocations in use by pods."),
  cooling: count("Released allocations whose cooldown has not passed."),
  kept: count("Allocations retained for a workload without a pod at the moment."),
  quarantined: count("Allocations that must not be used."),
  outside: count("Allocations of the pool outside its ranges."),
  others: count("Addresses of the ranges that other pools have allocated."),
  bitmap: z.string().max(MAX_BITMAP_TEXT).regex(BASE64).optional().meta({
    description:
      "Which addresses have an allocation, in base64; for pools up to 524,288 addresses. The joined, sorted ranges number the addresses from 0. Number i is bit i mod 8 of byte i / 8.",
  }),
  freePerBlock: z.array(z.int32().min(0).max(USAGE_BLOCK)).max(MAX_USAGE_BLOCKS).optional().meta({
    description: "Free addresses in each block of 4,096 of the first 16,777,216; for larger pools.",
  }),
});

/** The bitmap as bytes. `rangesHash`: {@link formatRangesHash}. */
export interface PoolUsage extends Readonly<Omit<z.output<typeof ipPoolUsageStatus>, "bitmap">> {
  readonly bitmap?: Uint8Array | undefined;
}

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

interface UsageMetadata {
  readonly name: string;
  readonly poolUid: string;
  /** `uid` and `resourceVersion` are preconditions of an update. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Returns the object in the API's form. */
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
