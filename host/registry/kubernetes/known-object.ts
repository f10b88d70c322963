/**
 * An IPAllocation object beside a row of the journal: how they compare, the wanted object for a row, and another node's
 * object as a row. An object as last received serves to choose the next call, whose precondition the API server checks.
 */
import {
  type AllocationState,
  allocationName,
  type Holder,
  type IpAllocation,
  type IpAllocationSpec,
} from "../../resources/ip-allocation.ts";
import { isRecreated, isSameMember, type Workload } from "../../resources/member.ts";
import { type Allocation, type Quarantine, UNNAMED } from "../registry.ts";

/** One address of an address space. */
export type AddressKey = Pick<Allocation, "space" | "ip">;

/** Returns the name of the address's object. */
export function nameOf({ space, ip }: AddressKey): string {
  return allocationName(ip, space);
}

/** Returns the object's version as that of a row, of this node or another one: negative. */
export function rowVersionOf({ resourceVersion }: Pick<IpAllocation, "resourceVersion">): number {
  return -Number(resourceVersion);
}

/** Returns the lost node for which the address is in quarantine, "" if the object does not say; else undefined. */
export function findLostNode({ state, quarantine }: IpAllocationSpec): string | undefined {
  return state === "Quarantined" && quarantine?.reason === "NodeLost" ? (quarantine.holder?.node ?? "") : undefined;
}

/** Returns whether the holder is the row's pod, with the same NIC. */
export function isHolderOf({ owner, ifName }: Allocation, holder: Holder | undefined): boolean {
  return holder?.podUid === owner && holder.ifName === ifName;
}

/** Where an object is written, and when. */
interface Place {
  readonly node: string;
  /** Undefined if it is unknown. */
  readonly machine?: string | undefined;
  readonly since: string;
}

/**
 * Returns the object that the row demands, in this state. `before`: the object that it is written over, whose number is
 * higher if the journal is older.
 */
export function specOf(
  row: Allocation,
  state: AllocationState,
  { node, machine, since }: Place,
  before?: Pick<IpAllocationSpec, "workload" | "number">,
): IpAllocationSpec {
  const { ip, space, prefixLength, pool, routers, ifName, workload, claim, quarantine } = row;
  const ofMember = before !== undefined && isSameMember(workload, before.workload) ? (before.number ?? 0) : 0;
  const number = Math.max(claim?.number ?? 1, ofMember);
  const { mac = "", parent = "" } = quarantine ?? {};
  return {
    ip,
    addressSpace: space,
    prefixLength,
    pool,
    ...(routers !== undefined && state === "Bound" ? { routers } : {}),
    state,
    node,
    since,
    holders: state === "Bound" ? [holderOf(row, { node, machine })] : [],
    ...(workload !== undefined && (state === "Bound" || state === "Kept")
      ? { workload: { ...workload, ifName }, number }
      : {}),
    ...(state === "Quarantined" ? { quarantine: { reason: "Conflict" as const, mac, parent } } : {}),
  };
}

/** Returns the last holder of a row that is retained from now on; undefined if the object does not name it. */
export function findLastHolder(row: Allocation, spec: IpAllocationSpec, node: string): Holder | undefined {
  const [holder] = spec.holders;
  // As it is written there, which the API server compares.
  return spec.state === "Bound" && spec.node === node && isHolderOf(row, holder) ? holder : undefined;
}

function holderOf(
  { namespace, pod, owner, ifName, claim }: Allocation,
  { node, machine }: Pick<Place, "node" | "machine">,
): Holder {
  const named = claim === undefined || claim.id === UNNAMED ? {} : { claim: claim.id };
  const place = machine === undefined ? { node } : { node, machine };
  return { namespace, pod, podUid: owner, ifName, ...place, ...named };
}

/** Returns whether the claim of a holder is the row's. An older release, or its definition of the kind, drops it. */
export function isCurrent({ claim }: Pick<Allocation, "claim">, of: string = UNNAMED): boolean {
  return of === UNNAMED || of === (claim?.id ?? UNNAMED);
}

/** Returns whether a member's object does not say that the row's claim came after other records of the member. */
export function isBehind({ claim }: Allocation, { holders: [first], number = 0 }: IpAllocationSpec): boolean {
  return first?.claim !== undefined && claim !== undefined && claim.number > Math.max(number, 1);
}

/** Returns whether the claim is the row's, or one of an earlier row of this node. */
export function isRecorded({ claim }: Pick<Allocation, "claim">, of: string = UNNAMED): boolean {
  return (of !== UNNAMED && of === claim?.id) || claim?.earlier.includes(of) === true;
}

/**
 * Returns the holders that share the address with the row's pod; undefined if there are none. Of a row that cools also
 * those that share it with an earlier pod of this node: a later one has to ask the others first.
 */
export function findOtherHolders(row: Allocation, all: readonly Holder[], node: string): readonly Holder[] | undefined {
  const isEarlier = (claim?: string): boolean => row.state === "Cooling" && isRecorded(row, claim);
  const isOwn = ({ node: of, podUid, ifName, claim }: Holder): boolean =>
    of === node && ifName === row.ifName && (podUid === row.owner || isEarlier(claim));
  const others = all.filter((holder) => !isOwn(holder));
  return others.length > 0 && others.length < all.length ? others : undefined;
}

/**
 * Returns the address owner that a row older than its object lacks: the journal was copied between the row of a claim
 * and the take-over of the owner's former address, which records the owner first. Undefined if the row is not older.
 */
export function findMissingOwner(
  row: Allocation,
  { state, holders, workload, number = 1 }: IpAllocationSpec,
  node: string,
): Workload | undefined {
  if (row.workload !== undefined || row.isConfirmed !== false || state !== "Bound") return undefined;
  const before = row.claim?.number ?? 0;
  // Another attempt of its ADD may have the same number.
  const claim = holders[0]?.claim;
  const isSame = number === before && (number === 0 || claim === undefined || isRecorded(row, claim));
  const isOwn = (each: Holder): boolean => each.node === node && isHolderOf(row, each);
  return number >= before && !isSame && holders.some(isOwn) ? workload : undefined;
}

/**
 * Returns the row's address owner as it was created again around the row's pod; undefined if it was not. `ofPod`:
 * according to that pod, undefined if it is not known. Without it the object decides: the controller has read the pod.
 */
export function findRecreatedOwner(
  row: Allocation,
  object: IpAllocation | "absent" | undefined,
  ofPod: Workload | undefined,
): Workload | undefined {
  const { workload } = row;
  if (workload === undefined) return undefined;
  if (ofPod !== undefined) return isRecreated(workload, ofPod) ? { ...workload, uid: ofPod.uid } : undefined;
  if (typeof object !== "object" || !isHolderOf(row, object.spec.holders[0])) return undefined;
  return isRecreated(workload, object.spec.workload) ? object.spec.workload : undefined;
}

/** The quarantine of an address that must be probed before it is used. */
export const PROBE_FIRST: Quarantine = { reason: "Conflict", mac: undefined, parent: "", nextProbeAtMs: 0 };

/**
 * Returns another node's object as a row. A claim gives its version as `replaces` to take the address over. An address
 * of a lost node is in {@link PROBE_FIRST}. `isOfOther`: so is one of another machine that had this node's name.
 */
export function foreignOf(object: IpAllocation, sinceMs: number, isOfOther = false): Allocation {
  const { createdAt, spec } = object;
  const { ip, addressSpace, prefixLength, pool, state, holders, lastHolder, workload, number, quarantine } = spec;
  const { claim: id = UNNAMED } = holders[0] ?? lastHolder ?? quarantine?.holder ?? {};
  const {
    namespace = workload?.namespace ?? "",
    pod = "",
    podUid = "",
    ifName = workload?.ifName ?? quarantine?.holder?.ifName ?? "",
  } = holders[0] ?? {};
  return {
    space: addressSpace,
    ip,
    prefixLength,
    pool,
    state,
    owner: podUid,
    ifName,
    containerId: "",
    network: "",
    namespace,
    pod,
    workload,
    ...(number === undefined ? {} : { claim: { id, number, earlier: [] } }),
    isConfirmed: true,
    sinceMs,
    version: rowVersionOf(object),
    ...(createdAt === undefined ? {} : { createdAt }),
    ...(findLostNode(spec) !== undefined || isOfOther ? { quarantine: PROBE_FIRST } : {}),
  };
}

/** Returns the unknown owner of an address whose object cannot be decoded: the address must not be taken over. */
export function unreadableOf({ space, ip, prefixLength, pool, sinceMs }: Allocation): Allocation {
  const unknownPod = { owner: "", ifName: "", containerId: "", network: "", namespace: "", pod: "" };
  return { ...unknownPod, space, ip, prefixLength, pool, state: "Bound", isConfirmed: true, sinceMs, version: -1 };
}

/**
 * Returns whether the object belongs to the row's member and NIC: each NIC retains its own addresses (retention). An
 * object that an older agent retained names no NIC.
 */
export function isOfSameNic({ workload, ifName }: Allocation, spec: IpAllocationSpec): boolean {
  const nic = spec.holders[0]?.ifName ?? spec.workload?.ifName;
  return isSameMember(workload, spec.workload) && (nic === undefined || nic === ifName);
}

/**
 * Returns whether another writer changed the object, for example an administrator. Being taken for lost does not
 * count: that stands until the pod is known to be gone (node-lost).
 */
export function hasChanged(before: IpAllocation | undefined, { spec: now }: IpAllocation): boolean {
  if (before === undefined || now.state === "Quarantined") return false;
  const [one, other] = [before.spec.holders[0], now.holders[0]];
  return before.spec.state !== now.state || one?.podUid !== other?.podUid || one?.ifName !== other?.ifName;
}
