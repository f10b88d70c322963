/**
 * Tells which pods are one member of a workload (retention in docs/develop/allocation.md). Imports no schema of the
 * kind IPAllocation: the registry's thread has no use for it.
 */

export interface Workload {
  /**
   * `StatefulSet`, `VirtualMachine`, `VirtualMachineInstance`, `IPAMClaim`, or {@link listedKind listed}; `Node` or
   * `Service` if it has the address itself.
   */
  readonly kind: string;
  /** Namespace of the workload and its pods. "" for a Node, and in older agents' Kept objects, without a member. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Identifies one of the workload's pods: the pod's name, which includes the ordinal, or the machine's name. */
  readonly member: string;
  /** The member's NIC for which the address is retained. Undefined for any NIC, and in objects of older agents. */
  readonly ifName?: string | undefined;
}

/** `Node n1`, `Service shop/web` */
export function describeWorkload({ kind, namespace, name }: Pick<Workload, "kind" | "namespace" | "name">): string {
  return `${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`;
}

/** As describeWorkload, with the member if it differs: `StatefulSet shop/web, member web-0`. */
export function describeMember(workload: Pick<Workload, "kind" | "namespace" | "name" | "member">): string {
  const { name, member } = workload;
  return `${describeWorkload(workload)}${member === name ? "" : `, member ${member}`}`;
}

/**
 * Returns the name of a kind of address owners that vendor-conf lists (retainByName): `StatefulSet.apps.kruise.io` of
 * `apps.kruise.io/v1beta1`.
 */
export function listedKind({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  return `${kind}.${apiVersion.split("/")[0]}`;
}

export function isListedKind(kind: string): boolean {
  return kind.includes(".");
}

/** Whether members of an owner of the kind are its pods, by their names. */
export function hasNamedPods(kind: string): boolean {
  return kind === "StatefulSet" || isListedKind(kind);
}

/** Longest UID of a pod or a workload, which must fit into a label's value: characters. */
export const MAX_UID_LENGTH = 63;

/** Longest name of an object or a link in an IPAllocation: characters. */
export const MAX_ALLOCATION_TEXT = 253;

export type Member = Pick<Workload, "namespace" | "uid" | "member">;

/**
 * Returns whether both are the same member of the same workload (retention in docs/develop/allocation.md). A user with
 * the right to create pods can write any UID into their owner references, but only in the user's own namespaces.
 * Comparing the namespace therefore detects forged owners.
 */
export function isSameMember(one: Member | undefined, other: Member | undefined): boolean {
  if (one === undefined || one.namespace === "") return false;
  return one.namespace === other?.namespace && one.uid === other.uid && one.member === other.member;
}

/**
 * Returns whether `now` is the same member of a workload that was recreated, with another UID. Only the pod that has
 * the address proves that it is.
 */
export function isRecreated(before: Workload | undefined, now: Workload | undefined): boolean {
  if (before === undefined || now === undefined || before.namespace === "") return false;
  const { kind, namespace, name, member, uid } = now;
  const isSame = before.kind === kind && before.namespace === namespace && before.name === name;
  return isSame && before.member === member && before.uid !== uid;
}

/** Returns a key that is unique to one member; the search for its addresses starts at the key's hash. */
export function memberKey({ namespace, uid, member }: Member): string {
  return `${namespace}/${uid}/${member}`;
}
