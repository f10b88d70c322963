/**
 * Decides where this node's journal and the API server's objects disagree: the tables of docs/develop/allocation.md,
 * "Node lost" and "Undo".
 */
import { parseMac } from "../../net/mac.ts";
import { numberOf } from "../../registry/claims.ts";
import { type Adoption, UNKNOWN_CONTAINER } from "../../registry/journal.ts";
import { findMissingOwner } from "../../registry/kubernetes/known-object.ts";
import { type Allocation, UNNAMED } from "../../registry/registry.ts";
import type { Holder, IpAllocation } from "../../resources/ip-allocation.ts";
import { isOfMachine } from "../../resources/machine.ts";
import { isSameMember } from "../../resources/member.ts";

export type OrphanObjectAction =
  | { readonly kind: "leave" }
  | { readonly kind: "adopt"; readonly adoption: Adoption }
  /** `adoption` is Cooling. `ifPodGone`: only if the pod is gone. */
  | { readonly kind: "release"; readonly adoption: Adoption; readonly ifPodGone: boolean }
  /** Only a probe can tell whether the address is free, when it has been in quarantine for `nodeLost`. */
  | { readonly kind: "probe"; readonly adoption: Adoption }
  /** The pod of this node may have ended unseen: `adoption` unless it is gone, `ended` if it is. */
  | { readonly kind: "confirm"; readonly adoption: Adoption; readonly ended: Adoption };

interface OrphanObjectFacts {
  readonly object: IpAllocation;
  readonly node: string;
  /** The machine that this is; undefined if that is unknown, or not proven, as that of a clone. */
  readonly machine?: string | undefined;
  /** All rows of the object's holder on this node, of every NIC and state. */
  readonly ownRows: readonly Allocation[];
  readonly nowMs: number;
}

const LEAVE = { kind: "leave" } as const;

/** Returns the pod of this node that the object names; undefined if it names none. */
function holderOf({ spec }: IpAllocation, node: string): Holder | undefined {
  return spec.holders.find((holder) => holder.node === node);
}

/** Returns the same; for an address quarantined because this node was lost, the pod that had it. */
export function claimantOf(object: IpAllocation, node: string): Holder | undefined {
  const lost = object.spec.quarantine?.holder;
  return holderOf(object, node) ?? (lost?.node === node ? lost : undefined);
}

/** Decides about an object without a row in the journal. */
export function decideOrphanObject({ object, node, machine, ownRows, nowMs }: OrphanObjectFacts): OrphanObjectAction {
  const { spec, deleting } = object;
  if (deleting) return LEAVE;
  if (!isOfMachine(claimantOf(object, node) ?? {}, machine)) return decideFormerMachine(object, node, nowMs);
  if (spec.node !== node) return decideShared(object, node, ownRows);
  if (spec.state === "Bound") return decideBound(object, node, ownRows);
  // A workload in it only lets another node take it over.
  if (spec.state === "Cooling")
    return { kind: "adopt", adoption: { ...adoptionOf(object, node), workload: undefined } };
  if (spec.state !== "Quarantined") return LEAVE;
  if (spec.quarantine?.reason !== "Conflict") return decideNodeLost(object, { node, ownRows, nowMs });
  const { reason, mac, parent } = spec.quarantine;
  const quarantine = { reason, mac: parseMac(mac), parent, nextProbeAtMs: nowMs };
  return { kind: "adopt", adoption: { ...adoptionOf(object, node), quarantine } };
}

/** An object that names another node, for a pod of this one that shares the address. */
function decideShared(object: IpAllocation, node: string, ownRows: readonly Allocation[]): OrphanObjectAction {
  if (holderOf(object, node) === undefined) return LEAVE;
  return confirmed(decideBound(object, node, ownRows));
}

/** If the pod is gone, the address is released at the second observation. */
function confirmed(action: OrphanObjectAction): OrphanObjectAction {
  if (action.kind !== "adopt") return action;
  return { kind: "confirm", adoption: action.adoption, ended: { ...action.adoption, state: "Cooling" } };
}

/** An object of another machine that had this node's name: this one confirms nothing for it. */
function decideFormerMachine(object: IpAllocation, node: string, nowMs: number): OrphanObjectAction {
  const { state, node: of, workload } = object.spec;
  if (state !== "Quarantined" || of !== node || workload !== undefined) return LEAVE;
  return { kind: "probe", adoption: probedOf(object, node, nowMs) };
}

function decideNodeLost(
  object: IpAllocation,
  { node, ownRows, nowMs }: Pick<OrphanObjectFacts, "node" | "ownRows" | "nowMs">,
): OrphanObjectAction {
  const { quarantine: { holder } = {}, ...spec } = object.spec;
  if (holder === undefined) return { kind: "release", adoption: coolingOf(object, node), ifPodGone: false };
  // The owner that retained the address is gone, else this node would not be asked to probe it.
  if (holder.node !== node) return { kind: "adopt", adoption: probedOf(object, node, nowMs) };
  const bound: IpAllocation = { ...object, spec: { ...spec, state: "Bound", holders: [holder] } };
  return confirmed(decideBound(bound, node, ownRows));
}

function decideBound(object: IpAllocation, node: string, ownRows: readonly Allocation[]): OrphanObjectAction {
  const holder = holderOf(object, node);
  if (holder === undefined) return { kind: "release", adoption: coolingOf(object, node), ifPodGone: false };
  const isOfNic = (row: Allocation): boolean => row.ifName === holder.ifName && row.ip.family === object.spec.ip.family;
  const others = ownRows.filter((row) => isOfNic(row) && (row.state === "Bound" || isOwnBefore(row, object)));
  if (others.length === 0) return { kind: "adopt", adoption: adoptionOf(object, node) };
  const isUncertain = others.every(({ containerId }) => containerId === UNKNOWN_CONTAINER);
  return { kind: "release", adoption: coolingOf(object, node), ifPodGone: isUncertain };
}

/**
 * Returns whether the row cools, because the machine has booted or the sandbox ended, and was the member's before the
 * object was claimed for it.
 */
function isOwnBefore(row: Allocation, { spec }: IpAllocation): boolean {
  const { state, isConfirmed, workload } = row;
  if (state !== "Cooling" || isConfirmed !== true || !isSameMember(workload, spec.workload)) return false;
  return numberOf(row) > (spec.number ?? 1);
}

function adoptionOf(object: IpAllocation, node: string): Adoption {
  const { addressSpace, ip, prefixLength, pool, state, workload, number = 0 } = object.spec;
  const { podUid = "", ifName = "", namespace = "", pod = "", claim: id = UNNAMED } = holderOf(object, node) ?? {};
  const address = { space: addressSpace, ip, prefixLength, pool, state };
  return { ...address, owner: podUid, ifName, namespace, pod, workload, claim: { id, number, earlier: [] } };
}

/** Returns the adoption of an address of a lost node, to be probed: any machine that answers is another one. */
function probedOf(object: IpAllocation, node: string, nowMs: number): Adoption {
  const quarantine = { reason: "Conflict" as const, mac: undefined, parent: "", nextProbeAtMs: nowMs };
  return { ...adoptionOf(object, node), quarantine, workload: undefined };
}

/** Returns the adoption of an address without a pod: the object is deleted when the row has cooled. */
function coolingOf(object: IpAllocation, node: string): Adoption {
  return { ...adoptionOf(object, node), state: "Cooling", workload: undefined };
}

/** Returns whether a row has to be published again; `object` is the watched object of its address. */
export function needsPublishing(row: Allocation, object: IpAllocation | undefined, node: string): boolean {
  if (row.isConfirmed === false) return false;
  if (row.state === "Quarantined") return object?.spec.state !== "Quarantined";
  if (row.state !== "Bound") return false;
  // The node was taken for lost. No other pod has the address; it is released when its pod is known to be gone
  // (node-lost).
  if (object?.spec.state === "Quarantined") return false;
  return object === undefined || !isObjectOf(row, object, node);
}

/** Returns whether the object names an address owner that the row, of a restored journal, lacks (retention). */
export function isOlderThan(row: Allocation, object: IpAllocation | undefined, node: string): boolean {
  return object !== undefined && findMissingOwner(row, object.spec, node) !== undefined;
}

/** Returns whether the row's object is quarantined because this node was lost; its pod may be alive. */
export function isReportedLost(
  { state, isConfirmed }: Allocation,
  object: IpAllocation | undefined,
  node: string,
): boolean {
  if (state !== "Bound" || isConfirmed === false || object?.spec.node !== node) return false;
  return object.spec.state === "Quarantined" && object.spec.quarantine?.reason === "NodeLost";
}

/** Returns whether the object records the address for the row's pod on this node. */
export function isObjectOf({ owner, ifName }: Allocation, { spec }: IpAllocation, node: string): boolean {
  if (spec.state !== "Bound" || spec.node !== node) return false;
  return spec.holders.some((holder) => holder.podUid === owner && holder.ifName === ifName);
}
