/**
 * Decides the next step by which the object of an address becomes equal to the journal's row: one call to the API
 * server, or none. If two pods claim the address, {@link takeOver} and {@link reclaim} decide by the state of the
 * pods and nodes.
 */
import type { HolderStatus, NodeStatus } from "../../ipam/retention.ts";
import { invariant } from "../../lib/invariant.ts";
import type { AllocationState, Holder, IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { MAX_HOLDERS } from "../../resources/ip-allocation.ts";
import { isOfMachine } from "../../resources/machine.ts";
import { isRecreated, type Workload } from "../../resources/member.ts";
import { isUnused } from "../claims.ts";
import type { Allocation } from "../registry.ts";
import {
  findLostNode,
  findOtherHolders,
  isBehind,
  isCurrent,
  isHolderOf,
  isOfSameNic,
  isRecorded,
  rowVersionOf,
} from "./known-object.ts";

export type SyncAction =
  /** Nothing is known of the object. */
  | { readonly kind: "read" }
  | { readonly kind: "create" }
  /** Write the row over the object, in this state. `sharers`: other pods that keep the address. */
  | { readonly kind: "replace"; readonly state: AllocationState; readonly sharers?: readonly Holder[] | undefined }
  /** Remove the row's pod from the object; the other holders keep the address. */
  | { readonly kind: "leave"; readonly others: readonly Holder[] }
  /** Another pod of the same member has the object: {@link takeOver} decides. */
  | { readonly kind: "takeOver" }
  /** The object names another pod of this node than the answered one: {@link reclaim} decides. */
  | { readonly kind: "reclaim"; readonly otherwise: "taken" | "wait"; readonly isPast: boolean }
  /** This node was taken for lost, and another node is to probe the address: {@link recover} decides. */
  | { readonly kind: "recover" }
  | { readonly kind: "delete" }
  /**
   * Another pod has the address. `needsProbe`: the row's pod gets it if no machine answers for it, because the other
   * pod's node is lost. `predecessor`: the row's pod gets it as soon as the agent of that pod's node has taken it off
   * the NIC. `by`: another pod that keeps it. `isUnreadable`: it is not known which pod has it.
   */
  | {
      readonly kind: "taken";
      readonly needsProbe?: boolean;
      readonly predecessor?: Holder;
      readonly by?: Holder;
      readonly isUnreadable?: boolean;
    }
  /** The object matches the row. */
  | { readonly kind: "synced" }
  /** The object has nothing of the row, or nothing that may be changed: the row can be deleted. */
  | { readonly kind: "forget" }
  /** Nothing to do at this time. */
  | { readonly kind: "wait" };

export interface SyncInputs {
  readonly row: Allocation;
  /** As this sync has found it; undefined if nothing is known of it. */
  readonly object: IpAllocation | "absent" | undefined;
  /** Whether the object is older than its known state: the registry went back in time. */
  readonly isPast: boolean;
  /** Whether this node was told to probe the address on behalf of a lost one. */
  readonly isProber: boolean;
  /** Whether a change or deletion was sent that had no answer: only a write after it makes its precondition fail. */
  readonly isSent: boolean;
  /** This node. */
  readonly node: string;
  /** The machine that this agent runs on; undefined if it is unknown. */
  readonly machine?: string | undefined;
  /** For a Cooling row: whether its cooldown is over. */
  readonly isDue: boolean;
  /** For a Cooling row: whether other nodes may want to take it over (cooling-visibility). */
  readonly isPublic: boolean;
  /** For a Cooling row of an address owner: whether that was seen; undefined as long as it could not be read. */
  readonly isOwnerSeen: boolean | undefined;
  /** For a Bound row: as in {@link Proposal}. */
  readonly replaces: number | undefined;
}

export function decide(inputs: SyncInputs): SyncAction {
  switch (inputs.row.state) {
    case "Bound":
      return decideBound(inputs);
    case "Cooling":
      return decideCooling(inputs);
    case "Quarantined":
      return decideQuarantined(inputs);
    case "Kept":
      // A retained address has no row, only the object.
      return { kind: "forget" };
  }
}

function decideBound({ row, object, isPast, node, machine, isSent, replaces }: SyncInputs): SyncAction {
  const hadBefore = (row.claim?.earlier.length ?? 0) > 0;
  if (object === undefined) {
    // A shared object may name the other holder's node.
    const mayBeShared = row.workload !== undefined && row.isConfirmed === true;
    const mayExist = hadBefore || isSent || replaces !== undefined || mayBeShared;
    return { kind: mayExist ? "read" : "create" };
  }
  if (object === "absent") return { kind: "create" };
  // The object would vanish after the claim was answered. If it was answered already, the pod gets a new object when
  // this one vanishes.
  if (object.deleting) return { kind: row.isConfirmed === true ? "synced" : "taken" };
  const bind: SyncAction = { kind: "replace", state: "Bound" };
  const { spec } = object;
  // Another machine that had this node's name may still have the address, also for a pod of the same UID.
  const isHere = isOf(spec, node, machine);
  switch (spec.state) {
    case "Bound":
      return decideBoundTwice(row, spec, { node, isPast, isHere, isSent });
    case "Kept":
      return isOfSameNic(row, spec) ? bind : { kind: "taken" };
    case "Cooling":
    case "Quarantined":
      if (rowVersionOf(object) === replaces) return bind;
      // A confirmed row had the object before: this node was taken for lost, but is alive.
      if (isHere && (hadBefore || row.isConfirmed === true)) return bind;
      return { kind: findLostNode(spec) === node && row.isConfirmed === true ? "recover" : "taken" };
  }
}

/** A claim of the row's NIC that is not the row's is an older or a late one, and gives way. */
function decideBoundTwice(
  row: Allocation,
  spec: IpAllocationSpec,
  { node, isPast, isHere, isSent }: Pick<SyncInputs, "node" | "isPast" | "isSent"> & { readonly isHere: boolean },
): SyncAction {
  const bind: SyncAction = { kind: "replace", state: "Bound" };
  const { holders, workload } = spec;
  const others = holders.length > 1 ? findOtherHolders(row, holders, node) : undefined;
  if (others !== undefined) {
    const isOwn = (holder: Holder): boolean => !others.includes(holder) && isCurrent(row, holder.claim);
    return !isSent && holders.some(isOwn) ? { kind: "synced" } : { ...bind, sharers: others };
  }
  const [holder] = holders;
  if (isHolderOf(row, holder)) {
    const isOld = row.workload && (isRecreated(workload, row.workload) || isBehind(row, spec));
    if (isHere && !isSent && !isOld && isCurrent(row, holder?.claim)) return { kind: "synced" };
    // This node had another name, unless the row is new: static pods of two nodes may have one UID, which their file
    // gives them.
    if (isHere || (spec.node !== node && row.isConfirmed === true)) return bind;
  }
  // An address that this node's earlier pod shares is not this row's alone.
  if (isHere && holders.length === 1 && isRecorded(row, holder?.claim)) return bind;
  if (isOfSameNic(row, spec)) return { kind: "takeOver" };
  return isHere && row.isConfirmed === true ? { kind: "reclaim", otherwise: "taken", isPast } : { kind: "taken" };
}

function decideCooling(inputs: SyncInputs): SyncAction {
  const { row, object, isPast, node, machine, isDue, isPublic, isOwnerSeen } = inputs;
  const isRetained = row.workload !== undefined && isOwnerSeen !== false && !isUnused(row);
  if (object === undefined) return { kind: isDue || isRetained || isPublic ? "read" : "wait" };
  // An address collected from a member's pod is the member's, also if the registry went back (registry-epoch).
  if (object === "absent" && isRetained) return { kind: isOwnerSeen === undefined ? "wait" : "create" };
  if (object === "absent") return { kind: isDue ? "forget" : "wait" };
  const { spec, deleting } = object;
  const others = spec.state === "Bound" ? findOtherHolders(row, spec.holders, node) : undefined;
  if (others !== undefined && !deleting) return { kind: "leave", others };
  const isHere = isOf(spec, node, machine);
  // Until it is known whose it is.
  if (machine === undefined && spec.node === node && !isHere) return { kind: "wait" };
  if (!isOurs(inputs, spec)) {
    // The registry may have gone back to an earlier pod of this node.
    if (!isRetained || spec.state !== "Bound" || !isHere || isOfSameNic(row, spec)) return { kind: "forget" };
    // An address collected from a member's pod is the member's, whatever the registry says (registry-epoch).
    return isOwnerSeen === undefined ? { kind: "wait" } : { kind: "reclaim", otherwise: "wait", isPast };
  }
  // The watch reports its end.
  if (deleting) return { kind: "wait" };
  // An address that the member no longer retains does not come back with an older journal.
  if (isRetained && (spec.state !== "Cooling" || isPast)) {
    if (isOwnerSeen === undefined) return { kind: "wait" };
    if (spec.state === "Cooling") return { kind: "reclaim", otherwise: "wait", isPast };
    // A retained address keeps its workload: the recreated one is written first.
    const isOutdated = spec.state === "Bound" && isRecreated(spec.workload, row.workload);
    return { kind: "replace", state: isOutdated ? "Bound" : "Kept" };
  }
  if (isDue) return { kind: "delete" };
  if (!isPublic || spec.state === "Cooling") return { kind: "wait" };
  return { kind: "replace", state: "Cooling" };
}

function decideQuarantined({ row, object, node, machine, isProber, isSent }: SyncInputs): SyncAction {
  if (object === undefined) return { kind: "read" };
  // It was there, Bound or in quarantine: another node has found the address silent while this one was lost. If this
  // node only probes the address for a lost node, it is known to be free; otherwise its own next probe decides.
  if (object === "absent") return { kind: isProber ? "forget" : "wait" };
  const { spec } = object;
  // This holds for any pod it was bound to: the journal knows that no pod here has it.
  if (spec.node !== node || spec.state === "Kept") return { kind: "forget" };
  if (spec.state === "Bound" && !isOf(spec, node, machine)) return { kind: "forget" };
  // The object of a lost node names the pod that had the address, which the row does not.
  const written = spec.quarantine?.mac;
  const { mac = written } = row.quarantine ?? {};
  return spec.state === "Quarantined" && (findLostNode(spec) !== undefined || (!isSent && written === mac))
    ? { kind: "synced" }
    : { kind: "replace", state: "Quarantined" };
}

/** Returns whether the object is of this node, and of this machine if a holder here, or the former one, names it. */
function isOf({ node: of, holders, quarantine }: IpAllocationSpec, node: string, machine: string | undefined): boolean {
  const here = [...holders, quarantine?.holder].find((holder) => holder?.node === node);
  return of === node && isOfMachine(here ?? {}, machine);
}

/**
 * Returns whether this node made the object for the row or for an earlier one of the address, and not for a pod that
 * the journal does not know or on another machine, nor to be probed on behalf of a lost node.
 */
function isOurs({ row, node, machine }: SyncInputs, spec: IpAllocationSpec): boolean {
  if (spec.node !== node || spec.state === "Kept") return false;
  // Without an owner it was adopted to be probed, and was found silent.
  if (!isOf(spec, node, machine)) return spec.state === "Quarantined" && row.owner === "";
  // Without an owner it was in quarantine here, and was found silent.
  if (row.owner === "") return true;
  if (spec.state !== "Bound") return spec.state === "Cooling" || (findLostNode(spec) || node) === node;
  const [holder] = spec.holders;
  return holder?.podUid === row.owner || isRecorded(row, holder?.claim);
}

/** {@link takeOver}, {@link reclaim} and {@link recover} have decided. */
export type ResolvedAction = Exclude<SyncAction, { readonly kind: "recover" | "reclaim" }>;

/** This node, and live reads of pods and nodes. */
export interface LiveStatus {
  /** This node's name. */
  readonly node: string;
  /** Returns the machine that this agent runs on; undefined while it is unknown. Default: it is. */
  readonly machine?: (() => string | undefined) | undefined;
  /**
   * Resolves when {@link machine} is known as well as it will be, undefined: it is. The rows of an earlier agent wait
   * for it: the journal may be another machine's.
   */
  readonly identified?: (() => Promise<void> | undefined) | undefined;
  /** Returns whether the pod with this UID is the present one of its name (retention). */
  readonly isLivePod: (namespace: string, pod: string, uid: string) => Promise<boolean>;
  /**
   * Reads another pod of the row's member that has the address (retention): whether it is gone, runs the same
   * machine, which migrates, or is alive. Default: it is gone.
   */
  readonly readHolderStatus?:
    | ((row: Pick<Allocation, "namespace" | "pod">, holder: Holder) => Promise<HolderStatus>)
    | undefined;
  /**
   * Returns the address owner that the watched pod of the row shows now; undefined if the pod is not watched any more,
   * or does not show it. Default: it does not.
   */
  readonly findOwnerOf?: ((row: Allocation) => Workload | undefined) | undefined;
  /**
   * Reads the node of an earlier pod of the row's member (node-lost, retention); it is lost if another machine has its
   * name. Default: it is off.
   */
  readonly readNodeStatus?: ((node: string, machine: string | undefined) => Promise<NodeStatus>) | undefined;
  /** Reads whether there is such an address owner. Default: there is, whatever it is. */
  readonly readOwner?: ((owner: Workload) => Promise<boolean>) | undefined;
}

/**
 * Decides between two pods of one member at one address (retention), by the object as it is now. The live one gets it
 * once the other one's NIC has lost it; two that run the same machine, which migrates, share it; a pod that is alive
 * keeps it.
 */
export async function takeOver(deps: LiveStatus, row: Allocation, { spec }: IpAllocation): Promise<ResolvedAction> {
  const { isLivePod, readHolderStatus = async () => "gone" } = deps;
  if (!(await isLivePod(row.namespace, row.pod, row.owner))) return { kind: "taken" };
  const sharers: Holder[] = [];
  const gone: Holder[] = [];
  for (const holder of spec.holders) {
    if (holder.ifName !== row.ifName) return { kind: "taken" };
    const status = await readHolderStatus(row, holder);
    if (status === "alive") return { kind: "taken", by: holder };
    (status === "migrating" ? sharers : gone).push(holder);
  }
  if (sharers.length >= MAX_HOLDERS) return { kind: "taken" };
  // A NIC that has the address already keeps it. A row with a quarantine was probed.
  const isProbed = row.quarantine !== undefined;
  const terms = { isProbed, isShared: sharers.length > 0 };
  const obstacle = row.isConfirmed === true ? undefined : await findObstacle(deps, gone, terms);
  if (obstacle !== undefined) return obstacle;
  return { kind: "replace", state: "Bound", sharers };
}

/** Returns why a deleted pod's NIC may still have the address. The journal answers that for this machine's pods. */
async function findObstacle(
  { readNodeStatus, node, machine }: LiveStatus,
  gone: readonly Holder[],
  { isProbed, isShared }: { readonly isProbed: boolean; readonly isShared: boolean },
): Promise<ResolvedAction | undefined> {
  let needsProbe = false;
  for (const holder of gone) {
    const isHere = holder.node === node && isOfMachine(holder, machine?.());
    const status = isHere ? "off" : ((await readNodeStatus?.(holder.node, holder.machine)) ?? "off");
    // The pod may still run on a lost node, unseen (node-lost). No probe can tell: a pod that shares the address
    // answers for it legitimately.
    if (status === "there" || (status === "lost" && isShared)) return { kind: "taken", predecessor: holder };
    needsProbe ||= status === "lost" && !isProbed;
  }
  return needsProbe ? { kind: "taken", needsProbe } : undefined;
}

/**
 * Decides whether the object of this node is a record that a backup has brought back (recreate). The journal says
 * which pod was answered with the address; the object, as it is now, gives way if it is of the past or its own pod is
 * gone, and the row's is alive or was a member's.
 */
export async function reclaim(
  { isLivePod, node }: Pick<LiveStatus, "isLivePod" | "node">,
  row: Allocation,
  { spec }: IpAllocation,
  { otherwise, isPast }: Extract<SyncAction, { readonly kind: "reclaim" }>,
): Promise<Extract<SyncAction, { readonly kind: "replace" | "delete" | "taken" | "wait" }>> {
  for (const { namespace, pod, podUid, node: other } of spec.holders)
    if (other !== node || (!isPast && (await isLivePod(namespace, pod, podUid)))) return { kind: otherwise };
  // No policy lets a node keep another pod's object for its own pod: it is recreated.
  if (row.state !== "Bound") return { kind: "delete" };
  const isLive = await isLivePod(row.namespace, row.pod, row.owner);
  return isLive ? { kind: "replace", state: "Bound" } : { kind: otherwise };
}

/**
 * Decides whether the row's pod lives on this node, which was taken for lost (node-lost). If not, garbage collection
 * releases the row.
 */
export async function recover(
  { isLivePod }: Pick<LiveStatus, "isLivePod">,
  { namespace, pod, owner }: Allocation,
): Promise<Extract<SyncAction, { readonly kind: "replace" | "wait" }>> {
  return (await isLivePod(namespace, pod, owner)) ? { kind: "replace", state: "Bound" } : { kind: "wait" };
}

/**
 * Returns the object without the row's pod: of the node that it names, unless only that pod was there. `own` is the
 * object that the row demands.
 */
export function specWithout(
  own: IpAllocationSpec,
  { node: before, workload, number = 0 }: IpAllocationSpec,
  others: readonly Holder[],
): IpAllocationSpec {
  const [first] = others;
  invariant(first !== undefined, "A shared object has another holder");
  const node = others.some((holder) => holder.node === before) ? before : first.node;
  const rest = { ...own, node, holders: others };
  if (workload === undefined) return rest;
  return { ...rest, workload: { ...workload, ifName: first.ifName }, number: Math.max(own.number ?? 0, number) };
}
