/**
 * Whether generated pools have what is wanted of them, in words and for the decision how to go on (docs/subnets.md).
 */
import { CniError, ErrorCode } from "../cni/error.ts";
import { sizeOf, spansOf } from "../core/spans.ts";
import type { Family } from "../net/ip.ts";
import { describePoolOwner } from "../resources/fields/subnet-pool.ts";
import type { IpPool } from "../resources/ip-pool.ts";
import { type FamilyDemand, familyName, type GeneratedDemand } from "./model.ts";
import type { PoolShortage } from "./refusal.ts";

/** `has 3 of 10 addresses wanted (9 replicas and 1 more)`, and why, if that is known. Undefined of a pool that somebody has made by hand. */
export function describeSupply(pool: IpPool): string | undefined {
  const { generated } = pool.spec;
  if (generated === undefined) return undefined;
  if (pool.shortfall !== undefined && !isSupplied(pool)) return pool.shortfall;
  const { wanted, reason } = generated;
  return `has ${addressCount(pool)} of ${wanted} ${wanted === 1 ? "address" : "addresses"} wanted (${reason})`;
}

/** `no pool has been generated for Deployment shop/web out of Subnet "blue" yet` */
export function describeAbsence({ application, wish: { subnets } }: GeneratedDemand): string {
  const names = subnets.map((name) => `"${name}"`).join(" or ");
  return `no pool has been generated for ${describePoolOwner(application)} out of Subnet ${names} yet`;
}

/** Whether addresses are on their way to one of the pools: fewer than wanted, and nothing is known to be in the way. */
export function isGrowing({ candidates }: FamilyDemand): boolean {
  return candidates.some(
    ({ pool, refusal }) =>
      pool !== undefined && refusal === undefined && pool.shortfall === undefined && !isSupplied(pool),
  );
}

/** What one look at a Subnet told. */
export type SubnetState =
  | { readonly kind: "absent" }
  /** `refusal`: why workloads of the namespace may not name it. */
  | {
      readonly kind: "there";
      readonly family: Family;
      readonly isDeleting: boolean;
      readonly refusal?: string | undefined;
    }
  /** With a clause. */
  | { readonly kind: "unseen"; readonly why: string };

/**
 * The last word after the wait. Code 101 when all that the pools are to have is in use, or cannot be had; 11 while they are still to come; what
 * stands against all pools that are there stays code 100.
 */
export function refuseUnsupplied(shortage: PoolShortage, waitedMs: number, sight: SubnetState | undefined): CniError {
  const { demand, details, forLog, message } = shortage;
  const isAbsent = demand.candidates.length === 0;
  if (!isAbsent && !isGrowing(demand)) return shortage;
  const why = isAbsent ? describeObstacle(demand, sight) : `no more have come within ${waitedMs / 1000} s`;
  const text = `${message}: ${why}`;
  return new CniError(ErrorCode.TryAgainLater, text, { details, forLog: forLog && `${forLog}: ${why}` });
}

/** Why there may be no pool for the demand, by a look at the first of its Subnets. */
export function describeObstacle({ family, generated }: FamilyDemand, sight: SubnetState | undefined): string {
  const subnet = `Subnet "${generated?.wish.subnets[0]}"`;
  if (sight === undefined || sight.kind === "unseen") return sight?.why ?? `${subnet} was not asked for`;
  if (sight.kind === "absent") return `${subnet} does not exist`;
  if (sight.isDeleting) return `${subnet} is being deleted`;
  if (sight.family !== family) return `${subnet} is an ${familyName(sight.family)} Subnet, not ${familyName(family)}`;
  if (sight.refusal !== undefined) return `${subnet} ${sight.refusal}`;
  return `${subnet} is there, and the controller has not made one; see whether berth-controller runs`;
}

function isSupplied(pool: IpPool): boolean {
  return addressCount(pool) >= BigInt(pool.spec.generated?.wanted ?? 0);
}

/** All addresses in the pool's ranges, including those that may not be allocated. */
function addressCount({ spec: { ranges } }: IpPool): bigint {
  return sizeOf(spansOf(ranges));
}
