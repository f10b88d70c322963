/** The parts of one search for addresses: demand, assigned addresses, and sources that may assign more. */

import type { RequestedIp } from "../../../cni/request.ts";
import type { FamilyDemand, NicDemand } from "../../../ipam/model.ts";
import { type Proposal, poolsOf, type Shortage } from "../../../ipam/pick.ts";
import type { PoolCache } from "../../../ipam/pool-cache.ts";
import type { ClaimMetrics } from "../../../metrics/agent-metrics.ts";
import { equalIp } from "../../../net/ip.ts";
import type { AddressSpan, Allocation, Claim, Registry } from "../../../registry/registry.ts";
import type { IpPool } from "../../../resources/ip-pool.ts";
import type { Workload } from "../../../resources/member.ts";
import type { AddDeadline } from "../../request/add-deadline.ts";
import type { ClusterAddresses } from "../cluster-ipam.ts";
import type { TenantLimits } from "../tenant-limits.ts";

export interface AddressDemand {
  readonly nics: readonly NicDemand[];
  readonly requested: readonly RequestedIp[];
  readonly claimant: Omit<Claim, "proposals" | "skipOwnCooling">;
  /** The owners of retained addresses of single NICs, in place of the claimant's. */
  readonly workloads?: ReadonlyMap<string, Workload> | undefined;
  /**
   * Whether the pod has no NIC beside those of the demand: then retained addresses that fit none of them are
   * released. Default: unknown.
   */
  readonly coversPod?: boolean | undefined;
  /** Default: none. */
  readonly limits?: TenantLimits | undefined;
  /** Pods of the same name start their search at the same place. */
  readonly seedText: string;
  /** By name, whether the pool's order is suspended: a machine answers for its first addresses. Default: no. */
  readonly randomize?: (pool: string) => boolean;
  /**
   * Whether a demand whose pools are supplied by a Subnet or a hub, and full according to the cache, is refused at
   * once, because the ADD will wait for their addresses. Default: they are searched.
   */
  readonly skipIfFull?: (demand: FamilyDemand) => boolean;
  /** Whether addresses can be probed on the NIC now; if not, none is taken out of quarantine. Default: they cannot. */
  readonly canProbe?: () => boolean;
  /**
   * Whether the pod's own address that cools is proposed at once, before another one is picked for it. Default: when
   * the registry says that there is one.
   */
  readonly ownFirst?: boolean;
  /** Ends before each attempt to record these addresses; rejects if none may be (registry-epoch). Default: any may. */
  readonly admit?: ((picked: readonly Proposal[]) => Promise<void>) | undefined;
  readonly deadline: AddDeadline;
}

export interface AllocateDeps {
  readonly registry: Registry;
  readonly poolCache: PoolCache;
  /** Default: there are no other nodes. */
  readonly cluster?: ClusterAddresses | undefined;
  /** Default: claims are not counted. */
  readonly metrics?: ClaimMetrics | undefined;
  /** Only of an explanation: nothing is kept from ADDs. */
  readonly view?: ForeseenRows | undefined;
}

/** The records of an explanation's ADDs. */
export interface ForeseenRows {
  readonly foreseen: readonly Allocation[];
}

export interface Search extends AllocateDeps {
  readonly demand: AddressDemand;
  readonly assignments: Assignments;
}

/** Why a claim did not give the pod all its addresses. */
export type Setback =
  /** The pod's own addresses are cooling. */
  | { readonly kind: "cooling"; readonly own: readonly Allocation[] }
  /** Other owners have some of the picked addresses. */
  | {
      readonly kind: "taken";
      readonly by: readonly Allocation[];
      readonly picked: readonly Proposal[];
      readonly nics: readonly NicDemand[];
    }
  /** No pool has a free address for one of the demands, as far as the cache knows. */
  | {
      readonly kind: "short";
      readonly nics: readonly NicDemand[];
      readonly shortage: Shortage;
      /** The pools of the short demand that can hand out addresses at all. */
      readonly pools: readonly IpPool[];
    };

export interface AddressSource {
  /**
   * Assigns an address, waits for one, or corrects the pool cache. Returns whether to claim again; false leaves the
   * setback to the next source.
   */
  next(setback: Setback): Promise<boolean>;
}

/** The addresses that the next claim proposes whatever the pools have free: at most one for each NIC and family. */
export class Assignments {
  all: readonly Proposal[] = [];

  /** Replaces the assignments of the same NICs and families. */
  assign(picked: readonly Proposal[]): void {
    const isReplaced = (old: Proposal): boolean => picked.some((each) => isSameNic(each, old));
    this.all = [...this.all.filter((old) => !isReplaced(old)), ...picked];
  }

  /** Drops the assignment of the address. */
  drop(address: Address): void {
    this.all = this.all.filter((each) => !isSameAddress(each, address));
  }

  find(nic: NicAndFamily): Proposal | undefined {
    return this.all.find((each) => isSameNic(each, nic));
  }

  at(address: Address): Proposal | undefined {
    return this.all.find((each) => isSameAddress(each, address));
  }
}

type Address = Pick<Allocation, "space" | "ip">;

type NicAndFamily = Pick<Proposal, "ifName" | "ip">;

export function isSameAddress(a: Address, b: Address): boolean {
  return a.space === b.space && equalIp(a.ip, b.ip);
}

export function isSameNic(a: NicAndFamily, b: NicAndFamily): boolean {
  return a.ifName === b.ifName && a.ip.family === b.ip.family;
}

export function workloadOf(
  { claimant, workloads }: Pick<AddressDemand, "workloads"> & { readonly claimant: Pick<Claim, "workload"> },
  ifName: string,
): Workload | undefined {
  return workloads?.get(ifName) ?? claimant.workload;
}

/** Whether each demanded family has an address: an answer with one of two would be the pod's for its life. */
export function isServed({ families }: NicDemand, held: readonly Allocation[]): boolean {
  for (const { family } of families) if (!held.some(({ ip }) => ip.family === family)) return false;
  return true;
}

/** Whether addresses may be retained for the pod, or one of its NICs. */
export function hasMember({ claimant, workloads }: Pick<AddressDemand, "claimant" | "workloads">): boolean {
  return claimant.workload !== undefined || (workloads?.size ?? 0) > 0;
}

/** The pools of the demand that can hand out addresses at all. */
export function usablePools(poolCache: PoolCache, demand: FamilyDemand): IpPool[] {
  return poolsOf(demand).filter(({ name }) => (poolCache.counts(name)?.total ?? 0n) > 0n);
}

export function spansOf({ spec: { addressSpace: space, family, ranges } }: IpPool): AddressSpan[] {
  return ranges.map(({ first, last }) => ({ space, family, first: first.value, last: last.value }));
}
