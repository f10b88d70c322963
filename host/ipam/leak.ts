/**
 * Decides whether an address has leaked: its pod is gone or finished, and no DEL has come (leak in
 * docs/develop/allocation.md).
 *
 *   pod under the row's name          first time   max(grace, cooldown) later
 *   absent, or has another UID        observe      collect
 *   the owner, finished               collect
 *   the owner, finished, terminating  observe      collect
 *   the owner                         keep; the first observation is discarded
 *   cannot be read                    wait; the first observation stays
 *   any other, while a link of its namespace still has the address: keep, whatever the API server says
 *   absent or another UID, and a machine may have the address inside: wait until its namespace is gone, or fenced
 *   absent or another UID, and the address is retained: fenced first ({@link isOrphan}), then collected at once
 */
import type { AllocationState } from "../resources/ip-allocation.ts";
import { CONFIG_HASH, type Pod } from "../resources/pod.ts";

/** The fields of a row on which the decision depends. */
export interface LeakRow {
  readonly state: AllocationState;
  readonly owner: string;
  readonly containerId: string;
  readonly namespace: string;
  readonly pod: string;
}

/** The pod that exists under a namespace and name. */
export interface PodFacts {
  readonly uid: string | undefined;
  /** The annotation `kubernetes.io/config.hash`; undefined unless it is a static pod. */
  readonly configHash: string | undefined;
  /** `status.phase` */
  readonly phase?: string | undefined;
  readonly deleting: boolean;
}

/** The pod with the row's name, just read from the API server. */
export type PodStatus =
  | { readonly kind: "unknown" }
  | { readonly kind: "absent" }
  | { readonly kind: "present"; readonly pod: PodFacts };

/** Returns the status of the pod of one of the rows whose pods were read. */
export type PodsOfRows = (row: Pick<LeakRow, "namespace" | "pod">) => PodStatus;

/** Whether the attachment's network namespace still exists; `inUse`: a link in it also has the address. */
export type NetnsStatus = "inUse" | "there" | "gone" | "unknown";

export interface LeakQuestion {
  readonly row: LeakRow;
  readonly pod: PodStatus;
  readonly netns: NetnsStatus;
  /** A virtual machine may have the address inside, where no link of its pod shows it. Default: none has. */
  readonly isHidden?: boolean;
  /** When this version of the row was first observed without its pod; undefined if it was not. */
  readonly observedAtMs: number | undefined;
  /** On the same monotonic clock. */
  readonly nowMs: number;
  /** Time between the two observations: {@link confirmAfterMs}. */
  readonly confirmAfterMs: number;
}

export type LeakDecision =
  | { readonly kind: "keep" }
  | { readonly kind: "wait" }
  | { readonly kind: "observe" }
  | { readonly kind: "collect"; readonly reason: "finished" | "gone" };

const KEEP: LeakDecision = { kind: "keep" };

export function podFacts({ uid, annotations, phase, deleting }: Pod): PodFacts {
  return { uid, configHash: annotations[CONFIG_HASH], phase, deleting };
}

/** The kubelet's configuration hash, which CNI_ARGS has instead of a UID for a static pod. */
const STATIC_OWNER = /^[0-9a-f]{32}$/;

/** Returns whether the owner is a static pod's configuration hash, which the API server may not know (static-pods). */
export function isStaticOwner(owner: string): boolean {
  return STATIC_OWNER.test(owner);
}

/** Returns whether the pod is the owner: a static pod has both its UID and its configuration hash (static-pods). */
export function isOwner(owner: string, { uid, configHash }: Pick<PodFacts, "uid" | "configHash">): boolean {
  return owner !== "" && (uid === owner || configHash === owner);
}

/** Returns whether none of the pod's containers runs or will run again. */
export function isFinished({ phase }: Pick<PodFacts, "phase">): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

/** Returns the time between the two observations of a leak. The grace counts once. */
export function confirmAfterMs(graceMs: number, cooldownMs: number): number {
  return Math.max(graceMs, cooldownMs);
}

/** Returns whether the row can leak: it is Bound, and names a pod. Other states end in other ways. */
export function mayLeak({ state, owner, containerId, namespace, pod }: LeakRow): boolean {
  return state === "Bound" && owner !== containerId && namespace !== "" && pod !== "";
}

/**
 * Returns whether the row's pod is an orphan: the API server no longer has it, and the owner of the retained address
 * may have created the next one. Static pods never are, because their objects may be missing.
 */
export function isOrphan(row: LeakRow & { readonly workload?: unknown }, pod: PodStatus): boolean {
  if (row.workload === undefined || !mayLeak(row) || isStaticOwner(row.owner)) return false;
  if (pod.kind !== "present") return pod.kind === "absent";
  return pod.pod.uid !== undefined && !isOwner(row.owner, pod.pod);
}

/** Decides about a row in a sweep. */
export function decideLeak(question: LeakQuestion): LeakDecision {
  const { row, pod, netns } = question;
  if (!mayLeak(row)) return KEEP;
  if (pod.kind === "unknown") return { kind: "wait" };
  // The kubelet may be down: a force-deleted or evicted pod answers on its address until its sandbox ends.
  if (netns === "inUse") return KEEP;
  if (pod.kind === "present" && isOwner(row.owner, pod.pod)) return decideOwnersPod(question, pod.pod);
  if (isStaticOwner(row.owner) && !isStaticGone(pod, netns)) return KEEP;
  // Until its links are set down, or its namespace is gone.
  if (question.isHidden === true && netns !== "gone") return { kind: "wait" };
  return collectIfConfirmed(question, "gone");
}

function decideOwnersPod(question: LeakQuestion, pod: PodFacts): LeakDecision {
  if (!isFinished(pod)) return KEEP;
  // The kubelet is about to send its DEL; a finalizer may hold the object for ever.
  return pod.deleting ? collectIfConfirmed(question, "finished") : { kind: "collect", reason: "finished" };
}

/**
 * Returns whether a static pod has ended. A missing mirror pod proves nothing: it may not exist yet, or may have been
 * deleted by hand. Proof is a netns that is gone or, if its path is unknown, a mirror pod with another configuration:
 * the kubelet starts that one only after the previous one has ended.
 */
function isStaticGone(pod: PodStatus, netns: NetnsStatus): boolean {
  if (netns !== "unknown") return netns === "gone";
  return pod.kind === "present" && pod.pod.configHash !== undefined;
}

function collectIfConfirmed(
  { observedAtMs, nowMs, confirmAfterMs }: LeakQuestion,
  reason: "finished" | "gone",
): LeakDecision {
  const isConfirmed = nowMs - (observedAtMs ?? Number.POSITIVE_INFINITY) >= confirmAfterMs;
  return isConfirmed ? { kind: "collect", reason } : { kind: "observe" };
}
