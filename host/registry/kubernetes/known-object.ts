/**
 * An IPAllocation object beside a row of the journal: what of it matters, what it should be, and what somebody else's is for the rest of the agent.
 * Called by the other files of this folder.
 * Effects: none.
 */

import type { AllocationState, IpAllocation, IpAllocationSpec, Workload } from "../../resources/ip-allocation.ts";
import type { Allocation } from "../registry.ts";

/** An object as it was when it was last heard of: good for choosing the next call, never for more than its precondition. */
export interface KnownObject {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly state: AllocationState;
  readonly node: string;
  /** Of the first holder; "" without one. */
  readonly podUid: string;
  readonly ifName: string;
  readonly workload?: Workload | undefined;
  /** Somebody's finalizer holds it: it goes when that does, whatever is written until then. */
  readonly deleting?: boolean | undefined;
}

export function knownOf({ uid, resourceVersion, deleting, spec }: IpAllocation): KnownObject {
  const { state, node, holders, workload } = spec;
  const { podUid = "", ifName = "" } = holders[0] ?? {};
  return { uid, resourceVersion, state, node, podUid, ifName, workload, deleting };
}

/** The object that the row asks for, in this state. */
export function specOf(
  row: Allocation,
  state: AllocationState,
  place: { node: string; since: string },
): IpAllocationSpec {
  const { ip, space, prefixLength, pool, namespace, pod, owner, ifName, workload, quarantine } = row;
  const { node, since } = place;
  const holder = { namespace, pod, podUid: owner, ifName, node };
  const { reason, mac = "", parent } = quarantine ?? {};
  return {
    ...{ ip, addressSpace: space, prefixLength, pool, state, node, since },
    holders: state === "Bound" ? [holder] : [],
    ...(workload !== undefined && (state === "Bound" || state === "Kept") ? { workload } : {}),
    ...(state === "Quarantined" ? { quarantine: { reason: reason ?? "Conflict", mac, parent: parent ?? "" } } : {}),
  };
}

/** Somebody else's address. Its version is what a claim gives back in `replaces` to take it over. */
export function foreignOf({ resourceVersion, spec }: IpAllocation, sinceMs: number): Allocation {
  const { ip, addressSpace, prefixLength, pool, state, holders, workload } = spec;
  const { namespace = "", pod = "", podUid = "", ifName = "" } = holders[0] ?? {};
  return {
    ...{ space: addressSpace, ip, prefixLength, pool, state, owner: podUid, ifName, namespace, pod, workload, sinceMs },
    ...{ containerId: "", network: "", isConfirmed: true, version: -Number(resourceVersion) },
  };
}

/** Whoever has an address whose object cannot be understood: nobody may take it from them. */
export function unknownHolder(row: Allocation): Allocation {
  const { space, ip, prefixLength, pool, sinceMs } = row;
  const nobody = { owner: "", ifName: "", containerId: "", network: "", namespace: "", pod: "", isConfirmed: true };
  return { space, ip, prefixLength, pool, sinceMs, ...nobody, state: "Bound", version: -1 };
}

/** Whether both are the same member of the same workload (allocation rule 8). */
export function isSameMember(one: Workload | undefined, other: Workload | undefined): boolean {
  return one !== undefined && one.uid === other?.uid && one.member === other.member;
}

/**
 * Whether somebody changed what the object says: a person may have edited it. Not by taking this node for lost: that stands until
 * the pod is known to be gone (allocation rule 2).
 */
export function isOther(before: KnownObject | undefined, now: KnownObject): boolean {
  if (before === undefined || now.state === "Quarantined") return false;
  return before.state !== now.state || before.podUid !== now.podUid || before.ifName !== now.ifName;
}
