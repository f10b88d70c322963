/** Finds allocations that are where they should not be, in one pass over all of them with two searches each. */

import { joinRanges, rangesContain } from "../../core/spans.ts";
import { PROXY_ARP_ADDRESSES } from "../../ipam/conflict.ts";
import { compareText } from "../../lib/order.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { type PoolShape, poolShape } from "../../resources/ip-pool-shape.ts";
import type { ReservedIp } from "../../resources/reserved-ip.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { Examples } from "../examples.ts";
import { SpacesIndex } from "../usage/range-search.ts";

export interface PoolInUse {
  /** All allocations of the pool. */
  readonly all: Examples;
  /** Allocations whose addresses the pool no longer gives out: outside its ranges, excluded, its gateway. */
  readonly outside: Examples;
  /** Quarantined allocations by the MAC address that answered. */
  readonly byMac: Map<string, Examples>;
}

export interface InUse {
  /** By name, including deleted pools. */
  readonly pools: ReadonlyMap<string, PoolInUse>;
  /** Reserved addresses that pods have, by the name of the ReservedIP. */
  readonly reserved: ReadonlyMap<string, Examples>;
}

interface InUseView {
  readonly pools: readonly IpPool[];
  readonly reserved: readonly ReservedIp[];
  readonly allocations: Iterable<CachedAllocation>;
}

export function planInUse({ pools, reserved, allocations }: InUseView): InUse {
  const shapes = new Map(
    pools.map((pool) => [pool.name as string, { space: pool.spec.addressSpace, ...poolShape(pool, []) }]),
  );
  const index = new SpacesIndex(
    reserved.map(({ name, spec }) => ({
      space: spec.addressSpace,
      value: name,
      ranges: joinRanges(spec.ranges, spec.family),
    })),
  );
  const inPools = new Map<string, PoolInUse>();
  const inReserved = new Map<string, Examples>();
  for (const { spec } of allocations) {
    const found = inPools.get(spec.pool) ?? { all: new Examples(), outside: new Examples(), byMac: new Map() };
    inPools.set(spec.pool, found);
    found.all.add(spec);
    noteMac(found, spec);
    if (spec.state === "Cooling") continue;
    const shape = shapes.get(spec.pool);
    if (shape !== undefined && !isHandedOut(shape, spec)) found.outside.add(spec);
    if (spec.state === "Quarantined") continue;
    for (const name of index.find(spec.addressSpace, spec.ip)) noteIn(inReserved, name, spec);
  }
  return { pools: inPools, reserved: inReserved };
}

/** Returns the MAC address with so many quarantined addresses of the pool that it counts as proxy ARP (conflict). */
export function findProxy({ byMac }: PoolInUse): { readonly mac: string; readonly found: Examples } | undefined {
  const suspects = [...byMac].flatMap(([mac, found]) => (found.count >= PROXY_ARP_ADDRESSES ? [{ mac, found }] : []));
  return suspects.sort((a, b) => compareText(a.mac, b.mac))[0];
}

function isHandedOut(shape: PoolShape & { readonly space: string }, { ip, addressSpace }: CachedAllocation["spec"]) {
  return shape.space === addressSpace && rangesContain(shape.ranges, ip) && !rangesContain(shape.masked, ip);
}

function noteMac({ byMac }: PoolInUse, spec: CachedAllocation["spec"]): void {
  const mac = spec.quarantine?.reason === "Conflict" ? spec.quarantine.mac : "";
  if (spec.state === "Quarantined" && mac !== "") noteIn(byMac, mac, spec);
}

function noteIn(groups: Map<string, Examples>, key: string, spec: CachedAllocation["spec"]): void {
  const examples = groups.get(key) ?? new Examples();
  groups.set(key, examples);
  examples.add(spec);
}
