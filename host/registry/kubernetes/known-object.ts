/**
 * An IPAllocation object beside a row of the journal: what of it matters, what it should be, and what somebody else's is for the rest of the agent.
 */

import {
  type AllocationState,
  type Holder,
  type IpAllocation,
  type IpAllocationSpec,
  isSameMember,
  type Workload,
} from "../../resources/ip-allocation.ts";
import type { Allocation, Quarantine } from "../registry.ts";

/** An object as it was when it was last heard of: good for choosing the next call, never for more than its precondition. */
export interface KnownObject {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly state: AllocationState;
  readonly node: string;
  /** Of the first holder; "" without one. */
  readonly podUid: string;
  readonly ifName: string;
  /** Only where there are several: all of them. */
  readonly sharers?: readonly Holder[] | undefined;
  readonly workload?: Workload | undefined;
  /** In quarantine because a node was lost: which one; "" when the object does not say. */
  readonly lost?: string | undefined;
  /** Somebody's finalizer holds it: it goes when that does, whatever is written until then. */
  readonly deleting?: boolean | undefined;
}

export function knownOf({ uid, resourceVersion, deleting, spec }: IpAllocation): KnownObject {
  const { state, node, holders, workload, quarantine } = spec;
  const { podUid = "", ifName = "" } = holders[0] ?? {};
  const isLost = state === "Quarantined" && quarantine?.reason === "NodeLost";
  const lost = isLost ? { lost: quarantine.holder?.node ?? "" } : {};
  const sharers = holders.length > 1 ? { sharers: holders } : {};
  return { uid, resourceVersion, state, node, podUid, ifName, workload, deleting, ...sharers, ...lost };
}

/** The object that the row asks for, in this state. */
export function specOf(
  row: Allocation,
  state: AllocationState,
  place: { node: string; since: string },
): IpAllocationSpec {
  const { ip, space, prefixLength, pool, ifName, workload, quarantine } = row;
  const { node, since } = place;
  const { reason, mac = "", parent } = quarantine ?? {};
  return {
    ...{ ip, addressSpace: space, prefixLength, pool, state, node, since },
    holders: state === "Bound" ? [holderOf(row, node)] : [],
    ...(workload !== undefined && (state === "Bound" || state === "Kept") ? { workload: { ...workload, ifName } } : {}),
    ...(state === "Quarantined" ? { quarantine: { reason: reason ?? "Conflict", mac, parent: parent ?? "" } } : {}),
  };
}

/** The holder that the row is. */
export function holderOf({ namespace, pod, owner, ifName }: Allocation, node: string): Holder {
  return { namespace, pod, podUid: owner, ifName, node };
}

/** Who has the object's address beside the row's pod; undefined when that pod has not, or has it alone. */
export function findOthers(row: Allocation, object: KnownObject, node: string): readonly Holder[] | undefined {
  const isOwn = (holder: Holder): boolean =>
    holder.node === node && holder.podUid === row.owner && holder.ifName === row.ifName;
  return object.sharers?.some(isOwn) ? object.sharers.filter((holder) => !isOwn(holder)) : undefined;
}

/** Of an address that nobody may use who has not asked for it. */
export const DOUBT: Quarantine = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: 0 };

/** Somebody else's address; of a lost node it is in {@link DOUBT}. Its version is what a claim gives back in `replaces` to take it over. */
export function foreignOf({ resourceVersion, spec }: IpAllocation, sinceMs: number): Allocation {
  const { ip, addressSpace, prefixLength, pool, state, holders, workload, quarantine } = spec;
  const isLost = state === "Quarantined" && quarantine?.reason === "NodeLost";
  const {
    namespace = workload?.namespace ?? "",
    pod = "",
    podUid = "",
    ifName = workload?.ifName ?? quarantine?.holder?.ifName ?? "",
  } = holders[0] ?? {};
  return {
    ...{ space: addressSpace, ip, prefixLength, pool, state, owner: podUid, ifName, namespace, pod, workload, sinceMs },
    ...{ containerId: "", network: "", isConfirmed: true, version: -Number(resourceVersion) },
    ...(isLost ? { quarantine: DOUBT } : {}),
  };
}

/** Whether the object is the same member's as the row, for the same NIC: each NIC keeps its own (allocation rule 8). One that an older agent kept does not say for which. */
export function isOfSameNic(
  { workload, ifName }: Allocation,
  object: Pick<KnownObject, "workload" | "ifName">,
): boolean {
  const nic = object.ifName === "" ? object.workload?.ifName : object.ifName;
  return isSameMember(workload, object.workload) && (nic === undefined || nic === ifName);
}

/** Whoever has an address whose object cannot be understood: nobody may take it from them. */
export function unknownHolder(row: Allocation): Allocation {
  const { space, ip, prefixLength, pool, sinceMs } = row;
  const nobody = { owner: "", ifName: "", containerId: "", network: "", namespace: "", pod: "", isConfirmed: true };
  return { space, ip, prefixLength, pool, sinceMs, ...nobody, state: "Bound", version: -1 };
}

/**
 * Whether somebody changed what the object says: a person may have edited it. Not by taking this node for lost: that stands until
 * the pod is known to be gone (allocation rule 2).
 */
export function isOther(before: KnownObject | undefined, now: KnownObject): boolean {
  if (before === undefined || now.state === "Quarantined") return false;
  return before.state !== now.state || before.podUid !== now.podUid || before.ifName !== now.ifName;
}
