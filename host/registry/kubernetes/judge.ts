/**
 * What to do next so that the object of one address becomes what the journal's row says: one call, or none.
 * Called by publisher.ts, again after each call, until nothing is left to do.
 * Effects: none.
 */
import type { AllocationState } from "../../resources/ip-allocation.ts";
import type { Allocation } from "../registry.ts";
import { isSameMember, type KnownObject } from "./known-object.ts";

export type Verdict =
  /** Nothing is known of the object: ask. */
  | { readonly kind: "look" }
  | { readonly kind: "create" }
  /** Write the row over the object, in this state. */
  | { readonly kind: "replace"; readonly state: AllocationState }
  /** An earlier pod of the same member has it: write the row over the object if ours is the live pod of that name. */
  | { readonly kind: "contest" }
  | { readonly kind: "delete" }
  /** Somebody else has the address. */
  | { readonly kind: "taken" }
  /** The object is what the row says. */
  | { readonly kind: "equal" }
  /** Nothing of the row is left in the object, or nothing of it may be touched: the row can go. */
  | { readonly kind: "forget" }
  /** Not now. */
  | { readonly kind: "nothing" };

export interface Case {
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
  /** A change or deletion was sent and not answered: what the object says now may not last. */
  readonly isUnanswered: boolean;
  /** Of a Bound row: the resource version of somebody's object that is taken over. */
  readonly replaces: string | undefined;
}

export function judge(found: Case): Verdict {
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

function judgeBound({ row, object, node, former, isUnanswered, replaces }: Case): Verdict {
  if (object === undefined) return { kind: former.size > 0 || isUnanswered || replaces !== undefined ? "look" : "create" }; // biome-ignore format: one thought
  if (object === "absent") return { kind: "create" };
  // The object would vanish from under a claim. What is answered already gets a new one when it does.
  if (object.deleting === true) return { kind: row.isConfirmed === true ? "equal" : "taken" };
  const bind: Verdict = { kind: "replace", state: "Bound" };
  switch (object.state) {
    case "Bound":
      if (object.podUid === row.owner && object.ifName === row.ifName) return object.node === node && !isUnanswered ? { kind: "equal" } : bind; // biome-ignore format: one thought
      if (object.node === node && former.has(object.podUid)) return bind;
      return { kind: isSameMember(row.workload, object.workload) ? "contest" : "taken" };
    case "Kept":
      return isSameMember(row.workload, object.workload) ? bind : { kind: "taken" };
    case "Cooling":
    case "Quarantined":
      if (object.resourceVersion === replaces) return bind;
      // A confirmed row had the object before: somebody took this node for lost, and it is here.
      return object.node === node && (former.size > 0 || row.isConfirmed === true) ? bind : { kind: "taken" };
  }
}

function judgeCooling(found: Case): Verdict {
  const { row, object, node, isDue, isPublic, isDiscarded } = found;
  const isKept = row.workload !== undefined && !isDiscarded;
  if (object === undefined) return { kind: isDue || isKept || isPublic ? "look" : "nothing" };
  if (object === "absent") return { kind: isDue || isKept ? "forget" : "nothing" };
  if (!isOurs(found, object)) return { kind: "forget" };
  // The watch tells when it is gone.
  if (object.deleting === true) return { kind: "nothing" };
  if (isKept) return { kind: "replace", state: "Kept" };
  if (isDue) return { kind: "delete" };
  if (!isPublic || (object.state === "Cooling" && object.node === node)) return { kind: "nothing" };
  return { kind: "replace", state: "Cooling" };
}

function judgeQuarantined({ object, node, isUnanswered }: Case): Verdict {
  if (object === undefined) return { kind: "look" };
  if (object === "absent") return { kind: "create" };
  // Whoever it was bound to: this node's journal is sure that nobody here has it any more.
  if (object.node !== node || object.state === "Kept") return { kind: "forget" };
  return object.state === "Quarantined" && !isUnanswered
    ? { kind: "equal" }
    : { kind: "replace", state: "Quarantined" };
}

/** Made by this node for the row, or for who had it here before: not what this node has for a pod that the journal does not know. */
function isOurs({ row, node, former }: Case, object: KnownObject): boolean {
  if (object.node !== node || object.state === "Kept") return false;
  if (object.state !== "Bound" || row.owner === "") return true;
  return object.podUid === row.owner || former.has(object.podUid);
}
