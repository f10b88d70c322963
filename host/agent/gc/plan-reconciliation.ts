/**
 * Where this node's journal and the API server's objects disagree, what is to be done about it (allocation rules 2, 4 and 5).
 *
 *   object that names this node, journal has no row of it
 *     Bound, its NIC has no address of the family    adopt it
 *     Bound, its NIC has another                     release it at the second observation
 *     Bound, its NIC has another that was adopted    the same, but only when the pod is gone: nobody knows which of them is on the NIC
 *     Cooling; Quarantined for a conflict            adopt it as it is
 *     Quarantined because this node was lost         when the pod that had it lives, adopt it Bound; else release it at the second observation,
 *                                                    which leaves it to what keeps it: this is the confirmation (rule 2)
 *     Quarantined because another node was lost      adopt it, to ask for it (rule 12)
 *     Kept; being deleted; of another node           leave it
 *   row, and no object, or one that says something else
 *     Bound or Quarantined, confirmed                publish it again (rule 5)
 *     Bound, and this node was taken for lost        publish it again when its pod is not known to be gone (rule 2)
 *     anything else                                  leave it: whoever made it so is at work
 */
import type { Family } from "../../net/ip.ts";
import { parseMac } from "../../net/mac.ts";
import { type Adoption, UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Holder, IpAllocation } from "../../resources/ip-allocation.ts";

export type StrangerVerdict =
  | { readonly kind: "leave" }
  | { readonly kind: "adopt"; readonly adoption: Adoption }
  /** Cooling. `ifPodGone`: of whom to ask before; undefined: of nobody. */
  | { readonly kind: "release"; readonly adoption: Adoption; readonly ifPodGone: boolean }
  /** Of a pod of this node, which was taken for lost: `adoption` while that pod is not gone, `ended` when it is. */
  | { readonly kind: "confirm"; readonly adoption: Adoption; readonly ended: Adoption };

export interface StrangerQuestion {
  readonly object: IpAllocation;
  readonly node: string;
  /** All that the journal has of the object's holder on this node, of every NIC and state. */
  readonly ownRows: readonly Allocation[];
  readonly nowMs: number;
}

const LEAVE = { kind: "leave" } as const;

/** The pod of this node that the object names; undefined when it names none. */
export function holderOf({ spec }: IpAllocation, node: string): Holder | undefined {
  return spec.holders.find((holder) => holder.node === node);
}

/** The same; of what was put in quarantine because this node was lost, the pod that had it. */
export function claimantOf(object: IpAllocation, node: string): Holder | undefined {
  const lost = object.spec.quarantine?.holder;
  return holderOf(object, node) ?? (lost?.node === node ? lost : undefined);
}

/** An object of which the journal has no row. */
export function judgeStranger({ object, node, ownRows, nowMs }: StrangerQuestion): StrangerVerdict {
  const { spec, deleting } = object;
  if (spec.node !== node || deleting) return LEAVE;
  if (spec.state === "Bound") return judgeBound(object, node, ownRows);
  if (spec.state === "Cooling") return { kind: "adopt", adoption: adoptionOf(object, node) };
  if (spec.state !== "Quarantined") return LEAVE;
  if (spec.quarantine?.reason !== "Conflict") return judgeLost({ object, node, ownRows, nowMs });
  const { reason, mac, parent } = spec.quarantine;
  const quarantine = { reason, mac: parseMac(mac), parent, nextProbeAtMs: nowMs };
  return { kind: "adopt", adoption: { ...adoptionOf(object, node), quarantine } };
}

function judgeLost({ object, node, ownRows, nowMs }: StrangerQuestion): StrangerVerdict {
  const { quarantine: { holder } = {}, ...spec } = object.spec;
  if (holder === undefined) return { kind: "release", adoption: coolingOf(object, node), ifPodGone: false };
  if (holder.node !== node) {
    // Whoever answers is another machine. What kept the address is gone, else nobody would be told to ask for it.
    const quarantine = { reason: "Conflict" as const, mac: undefined, parent: "", nextProbeAtMs: nowMs };
    return { kind: "adopt", adoption: { ...adoptionOf(object, node), quarantine, workload: undefined } };
  }
  const bound: IpAllocation = { ...object, spec: { ...spec, state: "Bound", holders: [holder] } };
  const verdict = judgeBound(bound, node, ownRows);
  if (verdict.kind !== "adopt") return verdict;
  return { kind: "confirm", adoption: verdict.adoption, ended: { ...verdict.adoption, state: "Cooling" } };
}

function judgeBound(object: IpAllocation, node: string, ownRows: readonly Allocation[]): StrangerVerdict {
  const holder = holderOf(object, node);
  if (holder === undefined) return { kind: "release", adoption: coolingOf(object, node), ifPodGone: false };
  const others = ownRows.filter((row) => isOnNic(row, holder.ifName, object.spec.ip.family));
  if (others.length === 0) return { kind: "adopt", adoption: adoptionOf(object, node) };
  const isUncertain = others.every(({ containerId }) => containerId === UNKNOWN_CONTAINER);
  return { kind: "release", adoption: coolingOf(object, node), ifPodGone: isUncertain };
}

function isOnNic({ state, ifName, ip }: Allocation, nic: string, family: Family): boolean {
  return state === "Bound" && ifName === nic && ip.family === family;
}

function adoptionOf(object: IpAllocation, node: string): Adoption {
  const { addressSpace, ip, prefixLength, pool, state, workload } = object.spec;
  const { podUid = "", ifName = "", namespace = "", pod = "" } = holderOf(object, node) ?? {};
  return { space: addressSpace, ip, prefixLength, pool, state, owner: podUid, ifName, namespace, pod, workload };
}

/** What is nobody's any more: the publisher deletes the object when the row has cooled. */
function coolingOf(object: IpAllocation, node: string): Adoption {
  return { ...adoptionOf(object, node), state: "Cooling", workload: undefined };
}

/** Whether a row has to be published again; `object` is what the watch has of its address. */
export function needsPublishing(row: Allocation, object: IpAllocation | undefined, node: string): boolean {
  if (row.isConfirmed === false) return false;
  if (row.state === "Quarantined") return object?.spec.state !== "Quarantined";
  if (row.state !== "Bound") return false;
  // The node was taken for lost. The address is nobody else's; it goes when its pod is known to be gone (rule 2).
  if (object?.spec.state === "Quarantined") return false;
  return object === undefined || !isObjectOf(row, object, node);
}

/** Whether the row's object is in quarantine because this node was lost: its pod may live. */
export function isTakenForLost(
  { state, isConfirmed }: Allocation,
  object: IpAllocation | undefined,
  node: string,
): boolean {
  if (state !== "Bound" || isConfirmed === false || object?.spec.node !== node) return false;
  return object.spec.state === "Quarantined" && object.spec.quarantine?.reason === "NodeLost";
}

/** Whether the object says that the row's pod has the address on this node. */
export function isObjectOf({ owner, ifName }: Allocation, { spec }: IpAllocation, node: string): boolean {
  if (spec.state !== "Bound" || spec.node !== node) return false;
  return spec.holders.some((holder) => holder.podUid === owner && holder.ifName === ifName);
}
