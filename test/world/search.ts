/** One search for addresses, with pools in a pool cache and a registry with given answers. */

import type { ClusterIpam } from "../../host/agent/ipam/cluster-ipam.ts";
import { type AddressDemand, Assignments, type Search, type Setback } from "../../host/agent/ipam/sources/source.ts";
import { PoolCache } from "../../host/ipam/pool-cache.ts";
import { formatIp } from "../../host/net/ip.ts";
import type { Allocation, Registry } from "../../host/registry/registry.ts";
import type { IpPool } from "../../host/resources/ip-pool.ts";
import { TestClock } from "./clock.ts";
import { clusterIpam } from "./cluster-ipam.ts";
import { demandOf, type NicRequest, openCore, pool, poolsByName } from "./subjects.ts";
import { ip } from "./values.ts";

export const BLUE = pool("blue", "10.6.0.0/24");
export const SIX = pool("six", "fd00:6::/64");
export const WEB = { kind: "StatefulSet", namespace: "shop", name: "web", uid: "w1", member: "web-0" };
export const TWO_NICS = [
  { ifName: "eth0", pools: [["blue"], ["six"]] },
  { ifName: "net1", pools: [["blue"]] },
];
const POD = { owner: "u1", namespace: "shop", pod: "web-0" };
export const CLAIMANT = { ...POD, ifName: "eth0", containerId: "c1", network: "lab" };

interface SearchOptions {
  readonly pools: readonly IpPool[];
  /** Default: eth0 with the first pool. */
  readonly nics?: readonly NicRequest[];
  readonly registry?: Partial<Registry>;
  readonly demand?: Partial<AddressDemand>;
  readonly cluster?: Partial<ClusterIpam>;
  /** There are no other nodes. */
  readonly isAlone?: boolean;
  /** The search is an explanation's. */
  readonly view?: Search["view"];
}

export function openSearch(options: SearchOptions) {
  const { pools, nics, registry = {}, demand = {}, cluster = {}, isAlone = false, view } = options;
  const clock = new TestClock({ isHasty: true });
  const poolCache = new PoolCache(openCore());
  poolCache.apply(poolsByName(...pools), []);
  const wanted = nics ?? [{ ifName: "eth0", pools: [[pools[0]?.name ?? ""]] }];
  const search: Search = {
    registry: registry as Registry,
    poolCache,
    view,
    cluster: isAlone ? undefined : clusterIpam(cluster),
    demand: {
      nics: wanted.map((nic) => demandOf(nic, poolsByName(...pools))),
      ...{ requested: [], claimant: CLAIMANT, seedText: "seed" },
      deadline: { clock, signal: new AbortController().signal },
      ...demand,
    },
    assignments: new Assignments(),
  };
  return { search, clock };
}

/** The assignments of the search: `eth0 10.6.0.9 7 own`, with the replaced version and the source. */
export function assignedOf({ assignments }: Search): string[] {
  return assignments.all.map(({ ifName, ip, replaces, source }) => `${ifName} ${formatIp(ip)} ${replaces} ${source}`);
}

/** A row of the pod's NIC eth0. */
export function rowOf(address: string, rest: Partial<Allocation> = {}): Allocation {
  return {
    ...{ space: "", ip: ip(address), prefixLength: 24, pool: "blue", state: "Bound", owner: "u1", ifName: "eth0" },
    ...{
      containerId: "c1",
      network: "lab",
      namespace: "shop",
      pod: "web-0",
      isConfirmed: true,
      sinceMs: 0,
      version: 7,
    },
    ...rest,
  };
}

/** No pool has a free address for the first NIC. */
export function shortOf({ demand }: Search, pools: readonly IpPool[]): Setback {
  const [nic] = demand.nics;
  const [family] = nic?.families ?? [];
  if (nic === undefined || family === undefined) throw new Error("The search has no NIC");
  return { kind: "short", nics: demand.nics, shortage: { nic, demand: family, reasons: new Map() } as never, pools };
}
