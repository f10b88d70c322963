/**
 * Whether generated pools, and those that lease blocks, have as many addresses as they should: for the decision to
 * wait, and for error texts (docs/develop/subnets.md, docs/clusters.md).
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { sizeOf, spansOf } from "../core/spans.ts";
import type { Family } from "../net/ip.ts";
import { describePoolOwner, type SubnetPoolSpec } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { describeSource, type PoolSource, type SourceReason } from "../resources/pool-source.ts";
import type { FamilyDemand } from "./model.ts";
import { poolsOf } from "./pick.ts";
import type { SubnetPoolRequest } from "./subnet-pools.ts";

/** No pool has an address for one demand. With generated pools this may be temporary. */
export class PoolShortage extends CniError {
  declare readonly forLog: string;
  readonly ifName: string;
  readonly demand: FamilyDemand;

  constructor(code: ErrorCode, message: string, of: ShortageFacts) {
    super(code, message, { details: of.details, forLog: of.forLog });
    this.ifName = of.ifName;
    this.demand = of.demand;
  }
}

interface ShortageFacts {
  readonly ifName: string;
  readonly demand: FamilyDemand;
  readonly details: string;
  readonly forLog: string;
}

/**
 * Returns `has 3 of 10 addresses wanted (9 replicas and 1 more)`, or `takes its blocks from AddressRange "seg"`, with
 * the reason if it is known; undefined for a pool with addresses of its own.
 */
export function describeSupply(pool: IpPool): string | undefined {
  const { generated } = pool.spec;
  if (pool.source !== undefined) {
    const { shortfall, source } = pool;
    const why = shortfall === undefined ? "" : `: ${shortfall}${othersOf(source)}`;
    return `takes its blocks from ${describeSource(source)}${why}`;
  }
  if (generated === undefined) return undefined;
  if (pool.shortfall !== undefined && !isSupplied(pool)) return pool.shortfall;
  return describeWanted(addressCount(pool), generated);
}

/** Returns `has 3 of 10 addresses wanted (9 replicas and 1 more)` */
export function describeWanted(
  has: number | bigint,
  { wanted, reason }: Pick<SubnetPoolSpec, "wanted" | "reason">,
): string {
  return `has ${has} of ${addresses(wanted)} wanted (${reason})`;
}

/** `1 address`, `2 addresses` */
export function addresses(count: number | bigint): string {
  return `${count} ${count === 1 || count === 1n ? "address" : "addresses"}`;
}

/** The owners of blocks, for a share that is used up; other reasons need none. */
function othersOf({ blocks, report }: PoolSource): string {
  if (report?.reason !== ("ShareUsedUp" satisfies SourceReason) || report.others.length === 0) return "";
  const counts = report.others.map((other) => `${other.member} ${other.blocks}`).join(", ");
  return `; the pool has ${blocks.length}, other clusters: ${counts}`;
}

/** Returns `no pool has been generated for Deployment shop/web out of Subnet "blue" yet` */
export function describeAbsence({ application, subnets }: SubnetPoolRequest): string {
  const names = subnets.map((name) => `"${name}"`).join(" or ");
  return `no pool has been generated for ${describePoolOwner(application)} out of Subnet ${names} yet`;
}

/** Returns whether one of the pools has too few addresses, without a known reason why it would not get them. */
export function isGrowing(demand: FamilyDemand): boolean {
  return poolsOf(demand).some((pool) => pool.shortfall === undefined && !isSupplied(pool));
}

/** Returns whether a wait for pools may bring an address: some are generated, or lease blocks. */
export function maySupply(demand: FamilyDemand): boolean {
  return demand.generated !== undefined || leasingPools(demand).length > 0;
}

/** Returns the pools of the demand that lease their addresses. */
export function leasingPools(demand: FamilyDemand): readonly IpPool[] {
  return poolsOf(demand).filter(({ spec }) => spec.source !== undefined);
}

/** Returns whether the pool may soon have more addresses: a block rests, or no reason is known why none would come. */
export function isLeasing({ source, shortfall }: IpPool): boolean {
  return source !== undefined && (shortfall === undefined || source.blocks.some(({ state }) => state === "Resting"));
}

/** State of a Subnet as read from the API server. */
export type SubnetState =
  | { readonly kind: "absent" }
  /** `refusal`: why workloads of the namespace may not name it. `waiting`: new pools that wait to be made. */
  | {
      readonly kind: "there";
      readonly family: Family;
      readonly isDeleting: boolean;
      readonly refusal?: string | undefined;
      readonly waiting?: number | undefined;
    }
  /** `why`: a clause that says why the Subnet could not be read. */
  | { readonly kind: "unseen"; readonly why: string };

/**
 * Returns the error of an ADD whose wait for generated pools has ended: code 11 while more addresses may come, else
 * the shortage as it is (101 if all addresses are in use or none can be added, 100 if every pool refuses the NIC).
 */
export function refuseUnsupplied(shortage: PoolShortage, waitedMs: number, status: SubnetState | undefined): CniError {
  const { demand, details, forLog, message } = shortage;
  const isAbsent = demand.candidates.length === 0;
  if (!isAbsent && !isGrowing(demand)) return shortage;
  const why = isAbsent ? describeObstacle(demand, status) : `no more have come within ${waitedMs / 1000} s`;
  const text = `${message}: ${why}`;
  return new CniError(ErrorCode.TryAgainLater, text, { details, forLog: `${forLog}: ${why}` });
}

/** Returns why the demand may have no pool, by its first Subnet; `status`: undefined if it was not read. */
export function describeObstacle({ family, generated }: FamilyDemand, status: SubnetState | undefined): string {
  const subnet = `Subnet "${generated?.subnets[0]}"`;
  if (status === undefined || status.kind === "unseen") return status?.why ?? `${subnet} was not read`;
  if (status.kind === "absent") return `${subnet} does not exist`;
  if (status.isDeleting) return `${subnet} is being deleted`;
  if (status.family !== family) return `${subnet} is an IPv${status.family} Subnet, not IPv${family}`;
  if (status.refusal !== undefined) return `${subnet} ${status.refusal}`;
  const { waiting = 0 } = status;
  if (waiting > 0) {
    const pools = waiting === 1 ? "1 new pool waits" : `${waiting} new pools wait`;
    return `${pools} to be made out of ${subnet}, because all nodes are told of each`;
  }
  return `${subnet} is there, and the controller has not made one; see whether berth-controller runs`;
}

function isSupplied(pool: IpPool): boolean {
  return addressCount(pool) >= BigInt(pool.spec.generated?.wanted ?? 0);
}

/** Returns the number of addresses in the pool's ranges, including those that may not be allocated. */
export function addressCount({ spec: { ranges } }: IpPool): bigint {
  return sizeOf(spansOf(ranges));
}
