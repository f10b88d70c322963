/**
 * The last look before an ADD gives a pod an address of a leased block. This agent may have chosen the address by
 * outdated knowledge of the pool, and its create may have been late: another cluster may have the block by now. A pool
 * that is read after the address was recorded, and gives addresses of the block, is proof of the opposite: a later
 * return of the block finds the record (docs/decisions/0055).
 */
import { CniError, ErrorCode } from "../../cni/error.ts";
import { findPoolOf } from "../../ipam/nic-result.ts";
import { poolsOf } from "../../ipam/pick.ts";
import { messageOf } from "../../lib/describe.ts";
import { formatIp } from "../../net/ip.ts";
import { rangeContains } from "../../net/range.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { PoolsByName } from "../../resources/pools-by-name.ts";
import type { ClusterIpam } from "./cluster-ipam.ts";
import type { AddressDemand } from "./sources/source.ts";

/** Returns whether an address may be one of a leased block. */
export function mayBeLeased({ nics }: AddressDemand): boolean {
  return nics.some(({ families }) => families.some((each) => poolsOf(each).some(({ source }) => source !== undefined)));
}

interface Given {
  readonly held: readonly Allocation[];
  /** Former addresses of the NIC or its pod's workload: a block with one is not returned. */
  readonly isKnown: (row: Allocation) => boolean;
  readonly pools: PoolsByName;
  readonly signal: AbortSignal;
}

/** Throws CniError 11. */
export async function requireLeased(
  cluster: Pick<ClusterIpam, "readPool"> | undefined,
  { held, isKnown, pools, signal }: Given,
): Promise<void> {
  for (const row of held) {
    const pool = findPoolOf(row, pools);
    if (pool?.source === undefined || isKnown(row) || cluster?.readPool === undefined) continue;
    const now = await cluster.readPool(pool.name, signal).catch((error: unknown) => {
      throw refusal(row, `pool "${pool.name}" cannot be read: ${messageOf(error)}`, error);
    });
    // A pool that has left its range has the addresses of its blocks as ranges.
    if (now === undefined || now.deleting || !now.spec.ranges.some((range) => rangeContains(range, row.ip)))
      throw refusal(row, `pool "${pool.name}" no longer gives addresses of its block`);
  }
}

function refusal({ ip }: Allocation, why: string, cause?: unknown): CniError {
  const text = `Address ${formatIp(ip)} is not given: ${why}; try again`;
  return new CniError(ErrorCode.TryAgainLater, text, cause === undefined ? {} : { cause });
}
