/**
 * What to do next so that the object of one address becomes what the journal's row says: one call, or none.
 */
import type { AllocationState, Holder } from "../../resources/ip-allocation.ts";
import type { Allocation } from "../registry.ts";
import { findOthers, isOfSameNic, type KnownObject } from "./known-object.ts";

export type SyncAction =
  /** Nothing is known of the object: ask. */
  | { readonly kind: "look" }
  | { readonly kind: "create" }
  /** Write the row over the object, in this state. `beside`: who has the address as well, and keeps it. */
  | { readonly kind: "replace"; readonly state: AllocationState; readonly beside?: readonly Holder[] | undefined }
  /** Take the row's pod out of the object; the others keep the address. */
  | { readonly kind: "leave"; readonly others: readonly Holder[] }
  /** Another pod of the same member has it: write the row over the object, or beside it, if ours is the live pod. */
  | { readonly kind: "contest" }
  /** This node was taken for lost, and another one asks for the address: it is the row's pod's if that lives. */
  | { readonly kind: "reclaim" }
  | { readonly kind: "delete" }
  /**
   * Somebody else has the address. `isDoubtful`: it would be the row's pod's if nobody answered for it; its node is lost. `predecessorNode`: it will be
   * when the agent of that node has taken it off the NIC of the earlier pod.
   */
  | { readonly kind: "taken"; readonly isDoubtful?: boolean; readonly predecessorNode?: string | undefined }
  /** The object is what the row says. */
  | { readonly kind: "equal" }
  /** Nothing of the row is left in the object, or nothing of it may be touched: the row can go. */
  | { readonly kind: "forget" }
  /** Not now. */
  | { readonly kind: "nothing" };

export interface SyncInputs {
  readonly row: Allocation;
  /** Undefined: nobody has looked yet. */
  readonly object: KnownObject | "absent" | undefined;
  readonly node: string;
  /** Of a Cooling row: its time is over. */
  readonly isDue: boolean;
  /** Of a Cooling row: others may want to take it over. */
  readonly isPublic: boolean;
  /** Of a Cooling row with a workload: the address was new to it, so nothing is kept. */
  readonly isDiscarded: boolean;
  /** Who had the address by this node's own journal before the row's owner: their objects may be written over. */
  readonly former: ReadonlySet<string>;
  /** Of a Quarantined row: its node was lost, and this one was told to ask for the address. */
  readonly isAsked: boolean;
  /** A change or deletion was sent and not answered: what the object says now may not last. */
  readonly isUnanswered: boolean;
  /** Of a Bound row: the resource version of somebody's object that is taken over. */
  readonly replaces: string | undefined;
}

export function decide(found: SyncInputs): SyncAction {
  switch (found.row.state) {
    case "Bound":
      return judgeBound(found);
    case "Cooling":
      return judgeCooling(found);
    case "Quarantined":
      return judgeQuarantined(found);
    case "Kept":
      // A kept address has no row: the object alone keeps it.
      return { kind: "forget" };
  }
}

function judgeBound({ row, object, node, former, isUnanswered, replaces }: SyncInputs): SyncAction {
  // What is shared may have gone to the other's node.
  const mayBeShared = row.workload !== undefined && row.isConfirmed === true;
  if (object === undefined) return { kind: former.size > 0 || isUnanswered || replaces !== undefined || mayBeShared ? "look" : "create" }; // biome-ignore format: one thought
  if (object === "absent") return { kind: "create" };
  // The object would vanish from under a claim. What is answered already gets a new one when it does.
  if (object.deleting === true) return { kind: row.isConfirmed === true ? "equal" : "taken" };
  const bind: SyncAction = { kind: "replace", state: "Bound" };
  const others = object.state === "Bound" ? findOthers(row, object, node) : undefined;
  if (others !== undefined) return isUnanswered ? { ...bind, beside: others } : { kind: "equal" };
  switch (object.state) {
    case "Bound":
      if (object.podUid === row.owner && object.ifName === row.ifName) return object.node === node && !isUnanswered ? { kind: "equal" } : bind; // biome-ignore format: one thought
      if (object.node === node && former.has(object.podUid)) return bind;
      return { kind: isOfSameNic(row, object) ? "contest" : "taken" };
    case "Kept":
      return isOfSameNic(row, object) ? bind : { kind: "taken" };
    case "Cooling":
    case "Quarantined":
      if (object.resourceVersion === replaces) return bind;
      // A confirmed row had the object before: somebody took this node for lost, and it is here.
      if (object.node === node && (former.size > 0 || row.isConfirmed === true)) return bind;
      return { kind: object.lost === node && row.isConfirmed === true ? "reclaim" : "taken" };
  }
}

function judgeCooling(found: SyncInputs): SyncAction {
  const { row, object, node, isDue, isPublic, isDiscarded } = found;
  const isKept = row.workload !== undefined && !isDiscarded;
  if (object === undefined) return { kind: isDue || isKept || isPublic ? "look" : "nothing" };
  if (object === "absent") return { kind: isDue || isKept ? "forget" : "nothing" };
  const others = object.state === "Bound" ? findOthers(row, object, node) : undefined;
  if (others !== undefined && object.deleting !== true) return { kind: "leave", others };
  if (!isOurs(found, object)) return { kind: "forget" };
  // The watch tells when it is gone.
  if (object.deleting === true) return { kind: "nothing" };
  if (isKept) return { kind: "replace", state: "Kept" };
  if (isDue) return { kind: "delete" };
  if (!isPublic || (object.state === "Cooling" && object.node === node)) return { kind: "nothing" };
  return { kind: "replace", state: "Cooling" };
}

function judgeQuarantined({ object, node, isUnanswered, isAsked }: SyncInputs): SyncAction {
  if (object === undefined) return { kind: "look" };
  // Of an address that this node only asks for, others know better that nobody has it.
  if (object === "absent") return { kind: isAsked ? "forget" : "create" };
  // Whoever it was bound to: this node's journal is sure that nobody here has it any more.
  if (object.node !== node || object.state === "Kept") return { kind: "forget" };
  // One for a lost node says who had the address, which no row knows.
  return object.state === "Quarantined" && (!isUnanswered || object.lost !== undefined)
    ? { kind: "equal" }
    : { kind: "replace", state: "Quarantined" };
}

/** Made by this node for the row, or for who had it here before: not what this node has for a pod that the journal does not know. */
function isOurs({ row, node, former }: SyncInputs, object: KnownObject): boolean {
  if (object.node !== node || object.state === "Kept") return false;
  if (object.state !== "Bound" || row.owner === "") return true;
  return object.podUid === row.owner || former.has(object.podUid);
}
