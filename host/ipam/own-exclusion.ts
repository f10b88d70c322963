import type { Ip } from "../net/ip.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { findExclusion, type PoolSurroundings } from "../resources/locate-address.ts";
import { findReserved } from "../resources/reserved-ip.ts";

/** As findExclusion, for the owner of the address: if a ReservedIP has one, no ReservedIP excludes it. */
export function findOwnExclusion(ip: Ip, pool: IpPool, around: PoolSurroundings): string | undefined {
  const isOwned = findReserved(around.reserved, { space: pool.spec.addressSpace, ip })?.spec.owner !== undefined;
  return findExclusion(ip, pool, isOwned ? { ...around, reserved: [] } : around);
}
