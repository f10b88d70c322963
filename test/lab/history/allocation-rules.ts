/**
 * Rules for a write to an IPAllocation, by the object before and after it alone (docs/develop/allocation.md: the table
 * of states, node rights). Times, live NICs and owners are for allocation-checker.ts.
 */
import { allocationName, type Holder, type IpAllocation, NO_NODE } from "../../../host/resources/ip-allocation.ts";
import type { Workload } from "../../../host/resources/member.ts";

/** Undefined: absent. */
export type Allocation = IpAllocation | undefined;

export type Nic = Pick<Holder, "podUid" | "ifName">;

/**
 * The writer of a revision. `hand`: a person or a test, who may write anything. An agent's `node` is undefined if
 * only its account is known.
 */
export type Writer =
  | { readonly kind: "agent"; readonly node?: string | undefined }
  | { readonly kind: "controller" | "hand" };

/** Kinds of workloads whose pods may share an address while a machine migrates. */
const SHARING = ["VirtualMachine", "VirtualMachineInstance", "IPAMClaim"];

/** Returns the fault of the object by itself. */
export function faultOfObject(name: string, object: Allocation): string | undefined {
  if (object === undefined) return undefined;
  const { ip, addressSpace, state, holders, node, quarantine } = object.spec;
  const wanted = allocationName(ip, addressSpace);
  if (name !== wanted) return `the name is not the address, which is called ${wanted}`;
  if (state === "Bound" && holders.length === 0) return "Bound without a holder";
  if (state !== "Bound" && holders.length > 0) return `${state}, but it has a holder`;
  if ((state === "Quarantined") !== (quarantine !== undefined)) return "a quarantine and its reason go together";
  if (state === "Bound" && !holders.some((holder) => holder.node === node)) return `node ${node} holds none of it`;
  if (holders.length > 1 && !isSharing(object)) return "two holders that are no machine";
  return undefined;
}

/** Of a Node's or a Service's address. */
const isMachines = (object: Allocation): boolean => object?.spec.node === NO_NODE && object.spec.state === "Kept";

/** Returns the fault of going from one to the other in one write. */
export function faultOfTransition(before: Allocation, after: Allocation): string | undefined {
  if (isMachines(after) && (before === undefined || before.spec.state === "Cooling" || isMachines(before)))
    return undefined;
  // By a person: it is made again.
  if (isMachines(before) && after === undefined) return undefined;
  if (before === undefined) {
    const isLegal = after === undefined || after.spec.state === "Bound" || after.spec.state === "Quarantined";
    return isLegal ? undefined : `created as ${after.spec.state}`;
  }
  if (after !== undefined && after.spec.addressSpace !== before.spec.addressSpace) return "another address space";
  const from = before.spec.state;
  const to = after?.spec.state ?? "absent";
  switch (from) {
    case "Bound":
      if (to === "Bound") return faultOfRebinding(before, after);
      return to === "Kept" && !hasSameMember(before, after) ? "kept for a member that did not have it" : undefined;
    case "Cooling":
      return to === "Kept" || to === "Quarantined" ? `from Cooling to ${to}` : undefined;
    case "Kept":
      if (to === "Bound" || to === "Kept") {
        if (!hasSameMember(before, after)) return "kept for another identity";
        return hasSameNic(before, after) ? undefined : "kept for another NIC";
      }
      return to === "Cooling" ? undefined : `from Kept to ${to}`;
    case "Quarantined":
      return faultAfterQuarantine(before, after);
  }
}

/**
 * Bound stays Bound: a second NIC of the holder's, the same identity in a new pod, or a release and the next claim in
 * one write, which only the node of both can do. That the holder before does not live any more is seen by its
 * attachment.
 */
function faultOfRebinding(before: IpAllocation, after: Allocation): string | undefined {
  const isKnown = ({ podUid }: Holder): boolean => before.spec.holders.some((holder) => holder.podUid === podUid);
  if (after?.spec.holders.some(isKnown) || hasSameMember(before, after)) return undefined;
  return before.spec.node === after?.spec.node ? undefined : "another node's pod's while it was Bound";
}

function faultAfterQuarantine(before: IpAllocation, after: Allocation): string | undefined {
  const { quarantine, node } = before.spec;
  const isLost = quarantine?.reason === "NodeLost";
  const to = after?.spec.state;
  if (!isLost) return to === "Kept" || to === "Cooling" ? `a conflict made ${to}` : undefined;
  if (to === "Kept" && !hasSameMember(before, after)) return "from quarantine to Kept for another member";
  if (to !== "Bound" || node === after?.spec.node || hasSameMember(before, after)) return undefined;
  const isBack = after?.spec.holders.some((holder) => holder.podUid === quarantine?.holder?.podUid);
  return isBack ? undefined : "another node's pod's while its node is lost";
}

/** Returns why this writer may not have written it (node-rights). */
export function faultOfWriter(before: Allocation, after: Allocation, writer: Writer): string | undefined {
  const to = after?.spec.state;
  if (isMachines(after) && writer.kind === "agent") return "a machine's record by an agent";
  if (writer.kind === "controller") return to === "Bound" ? "Bound by the controller" : undefined;
  if (writer.kind !== "agent") return undefined;
  const isLoss = after?.spec.quarantine?.reason === "NodeLost" && before?.spec.quarantine?.reason !== "NodeLost";
  if (isLoss) return "taken for lost by an agent";
  const { node } = writer;
  if (node === undefined || after === undefined || after.spec.node === node || before?.spec.node === node)
    return undefined;
  // Of two that share an address, the one that leaves keeps the object for the other.
  return before?.spec.holders.some((holder) => holder.node === node) ? undefined : `of ${after.spec.node}, by ${node}`;
}

export function isBoundTo(object: Allocation, { podUid, ifName }: Nic): boolean {
  if (object?.spec.state !== "Bound") return false;
  return object.spec.holders.some((holder) => holder.podUid === podUid && holder.ifName === ifName);
}

/** Bound to the NIC; or its node is taken for lost, and the record says that the NIC had it. */
export function isRecordOf(object: Allocation, nic: Nic): boolean {
  const lost = object?.spec.quarantine?.holder;
  return isBoundTo(object, nic) || (lost?.podUid === nic.podUid && lost.ifName === nic.ifName);
}

/** Whether the object is of a member whose address no other pod gets: its pod has it, or it waits for the next one. */
export function isRetained(object: Allocation): object is IpAllocation & { spec: { workload: Workload } } {
  const { state, quarantine, workload } = object?.spec ?? {};
  if (workload === undefined) return false;
  return state === "Bound" || state === "Kept" || quarantine?.reason === "NodeLost";
}

export function isSharing(object: Allocation): boolean {
  return SHARING.includes(object?.spec.workload?.kind ?? "");
}

export function hasSameMember(before: Allocation, after: Allocation): boolean {
  const [a, b] = [before?.spec.workload, after?.spec.workload];
  if (a === undefined || b === undefined) return false;
  return a.kind === b.kind && a.namespace === b.namespace && a.uid === b.uid && a.member === b.member;
}

/** Both are for one NIC of one member. An object of an older agent is for any. */
export function hasSameNic(one: Allocation, other: Allocation): boolean {
  const ifNameOf = (object: Allocation) => object?.spec.workload?.ifName ?? object?.spec.holders[0]?.ifName;
  const [a, b] = [ifNameOf(one), ifNameOf(other)];
  const isSame = a === undefined || b === undefined || a === b;
  return isSame && hasSameMember(one, other) && one?.spec.ip.family === other?.spec.ip.family;
}

export function nicOf({ podUid, ifName }: Nic): string {
  return `${ifName} of ${podUid}`;
}

export function describe(object: Allocation): string {
  if (object === undefined) return "absent";
  const { state, holders, workload } = object.spec;
  const whose = [...holders.map(nicOf), ...(workload === undefined ? [] : [workload.member])];
  return whose.length === 0 ? state : `${state} ${whose.join(", ")}`;
}
