/**
 * Picks an address for each family of each demanded NIC from the pool cache, all or nothing, and reserves it there: one
 * that the NIC may have. A guess: only the registry decides whether the addresses are free.
 */
import type { NetConf } from "../cni/net-conf.ts";
import { equalIp, type Family, formatIp, type Ip } from "../net/ip.ts";
import { firstIp } from "../net/prefix.ts";
import { rangeContains } from "../net/range.ts";
import type { SourceName } from "../records/audit-line.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { routersOf } from "../resources/ip-pool-shape.ts";
import type { Workload } from "../resources/member.ts";
import type { OccupiedIp } from "../resources/occupied-ips.ts";
import { countBlockStates, type PoolSource } from "../resources/pool-source.ts";
import type { FamilyDemand, NicDemand } from "./model.ts";
import type { PoolCache } from "./pool-cache.ts";

/** An address of a pool for a NIC: the part of a row that is known before the claim. */
export interface PoolAddress {
  readonly space: string;
  readonly ip: Ip;
  /** Prefix length of the pool's subnet when the address was claimed; outlives the pool. */
  readonly prefixLength: number;
  /** Name of the pool. */
  readonly pool: string;
  /**
   * As in {@link IpAllocationSpec.routers}; undefined until the address is picked, in an object of another node, and
   * where it was adopted.
   */
  readonly routers?: readonly string[] | undefined;
  readonly ifName: string;
}

/** An address to claim for a NIC, and how. */
export interface Proposal extends PoolAddress {
  /** The address owner, in place of the claim's. */
  readonly workload?: Workload | undefined;
  /** Version of the Cooling or Quarantined allocation to take over. Default: the address must be free. */
  readonly replaces?: number;
  /** By name: an address that was claimed for the NIC and never attached gives way to it. */
  readonly requested?: boolean;
  /**
   * A pod on a lost node may still answer for the address: it is Bound as if it came from quarantine ({@link
   * Allocation.quarantine}).
   */
  readonly needsProbe?: boolean;
  /** Default: it was free, or requested. */
  readonly source?: SourceName;
}

export function proposalOf(
  { name: pool, spec }: IpPool,
  chosen: Omit<Proposal, "space" | "prefixLength" | "pool">,
): Proposal {
  return { ...chosen, space: spec.addressSpace, prefixLength: spec.subnet.length, pool };
}

/** A family of a NIC for which no pool has a free address, with the reason by pool name. */
export interface Shortage {
  readonly nic: NicDemand;
  readonly demand: FamilyDemand;
  readonly reasons: ReadonlyMap<string, string>;
}

/** `reserved`: addresses that are reserved in the cache. */
export type Picked = { readonly reserved: readonly Proposal[] } & (
  | { readonly kind: "picked"; readonly picked: readonly Proposal[] }
  | { readonly kind: "short"; readonly shortage: Shortage }
);

interface PickOptions {
  readonly nics: readonly NicDemand[];
  /** Returns where the search in a pool starts: a hash of the pod, so that nodes do not collide. */
  readonly seedOf: (ifName: string, family: Family) => number;
  /** Addresses that were chosen before: requested, or to be taken over. */
  readonly assigned: readonly Proposal[];
  /** The address owners of single NICs, in place of the claim's. */
  readonly workloads?: ReadonlyMap<string, Workload> | undefined;
  /** Returns whether the pool is searched from the seed even if its selection is ascending. Default: false. */
  readonly randomize?: ((pool: string) => boolean) | undefined;
}

interface SearchStart extends Pick<PickOptions, "randomize"> {
  readonly seed: number;
}

/** An `assigned` address counts as picked for its NIC and family. */
export function pickAddresses(poolCache: PoolCache, options: PickOptions): Picked {
  const { nics, seedOf, assigned, workloads, randomize } = options;
  const picked: Proposal[] = [];
  const reserved: Proposal[] = [];
  for (const nic of nics) {
    for (const demand of nic.families) {
      const given = assigned.find(({ ifName, ip }) => ifName === nic.ifName && ip.family === demand.family);
      const found = given ?? pickOne(poolCache, nic, demand, { seed: seedOf(nic.ifName, demand.family), randomize });
      if (found === undefined) {
        poolCache.cancel(reserved);
        const shortage = { nic, demand, reasons: explainShortage(poolCache, nic, demand) };
        return { kind: "short", shortage, reserved: [] };
      }
      if (given === undefined) reserved.push(found);
      const spec = poolCache.find(found.pool)?.spec;
      const routers = spec === undefined ? [] : routersOf(nic.cleanGateway ? { ...spec, gateway: undefined } : spec);
      const workload = workloads?.get(nic.ifName);
      picked.push({ ...found, routers: [...new Set(routers.map(formatIp))], workload });
    }
  }
  return { kind: "picked", picked, reserved };
}

function pickOne(poolCache: PoolCache, nic: NicDemand, demand: FamilyDemand, start: SearchStart): Proposal | undefined {
  for (const { pool, refusal } of demand.candidates) {
    if (refusal !== undefined) continue;
    const ip = takeFor(poolCache, nic, pool, start);
    if (ip !== undefined) return proposalOf(pool, { ifName: nic.ifName, ip });
  }
  return undefined;
}

/**
 * Takes the first address that the NIC may have; of a block that is being drained only if there is no other one. Those
 * before it stay free.
 */
function takeFor(poolCache: PoolCache, nic: NicDemand, pool: IpPool, { seed, randomize }: SearchStart): Ip | undefined {
  const { addressSpace: space, selection } = pool.spec;
  const isSpread = selection === "ascending" && randomize?.(pool.name) === true;
  const passedOver: { space: string; ip: Ip }[] = [];
  let last: Ip | undefined;
  let ip = poolCache.take(pool, seed, isSpread);
  for (; ip !== undefined; ip = poolCache.take(pool, seed, isSpread)) {
    const isWithheld = findWithholding(nic, pool, ip) !== undefined;
    if (!isWithheld && (pool.source && poolCache.blockStateOf({ space, ip })) !== "Draining") break;
    if (isWithheld || last !== undefined) passedOver.push({ space, ip });
    else last = ip;
  }
  if (ip !== undefined && last !== undefined) passedOver.push({ space, ip: last });
  poolCache.cancel(passedOver);
  return ip ?? last;
}

/**
 * Returns whether the main plugin gives itself an address where the result names no gateway: `bridge` as gateway
 * takes the first one after the network's (`calcGatewayIP` of the reference plugin).
 */
export function takesFirstAddress({ type, raw }: Pick<NetConf, "type" | "raw">): boolean {
  return type === "bridge" && (raw.isGateway === true || raw.isDefaultGateway === true);
}

/** Returns the addresses of the pool's ranges that the NIC may not have, although others may, with the reasons. */
export function withheldFrom(
  { takesFirst = false, cleanGateway, refused = [] }: NicDemand,
  { spec: { subnet, gateway, addressSpace, ranges } }: IpPool,
): readonly OccupiedIp[] {
  const isTaking = takesFirst && (cleanGateway || gateway === undefined);
  const first = { family: subnet.ip.family, value: firstIp(subnet).value + 1n };
  const all = [
    ...(isTaking ? [{ ip: first, why: "the main plugin bridge takes it, because it is told no gateway" }] : []),
    ...refused
      .filter(({ space }) => space === addressSpace)
      .map(({ ip, why }) => ({ ip, why: `the coordinator refused it for this pod: ${why}` })),
  ];
  return all.filter(({ ip }) => ranges.some((range) => rangeContains(range, ip)));
}

/** Returns why the NIC may not have the pool's address, a clause; undefined if it may. */
export function findWithholding(nic: NicDemand, pool: IpPool, ip: Ip): string | undefined {
  return withheldFrom(nic, pool).find((each) => equalIp(each.ip, ip))?.why;
}

/** Returns the pools that were not passed over, in order. */
export function poolsOf(demand: FamilyDemand): IpPool[] {
  return demand.candidates.flatMap((candidate) => (candidate.refusal === undefined ? [candidate.pool] : []));
}

function explainShortage(poolCache: PoolCache, nic: NicDemand, demand: FamilyDemand): Map<string, string> {
  return new Map(
    poolsOf(demand).map((pool) => {
      const { name } = pool;
      const counts = poolCache.counts(name);
      if (pool.source !== undefined && (counts?.total ?? 0n) === 0n)
        return [name, describeBlocks(pool.source, poolCache.findDoubt(pool))];
      if (counts === undefined || counts.total === 0n) {
        const [exception] = poolCache.exceptionsOf(name);
        const why = exception === undefined ? "" : `; ${formatIp(exception.ip)} is none: ${exception.why}`;
        return [name, `has no address that may be handed out${why}`];
      }
      const [withheld] = withheldFrom(nic, pool);
      const left = withheld === undefined ? "" : `; ${formatIp(withheld.ip)} is not for this NIC: ${withheld.why}`;
      return [name, `has no free address (${counts.total - counts.free} of ${counts.total} in use or cooling)${left}`];
    }),
  );
}

/** Returns why a pool has no address of its blocks to give. */
function describeBlocks(source: PoolSource, doubt: string | undefined): string {
  if (source.blocks.length === 0) return "has leased no block yet";
  if (doubt !== undefined) return `gives no address ${doubt}`;
  return `has no block that gives addresses (${countBlockStates(source)})`;
}

/** FNV-1a, 32 bits: spreads names over a pool; not for security. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash;
}
