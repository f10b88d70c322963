/**
 * Whether a recorded address has leaked: its pod is gone, or finished, and no DEL has come for it (leak).
 *
 *   pod under the row's name          first time   max(grace, cooldown) later
 *   absent, or has another UID        observe      collect
 *   the owner, finished               collect
 *   the owner, finished, terminating  observe      collect
 *   the owner                         keep: what was observed before is forgotten
 *   cannot be read                    wait: what was observed before stands
 *   any but that, and the NIC that the address was given to still has it: keep, whatever the API server says
 *   of a workload that keeps addresses, absent or of another UID: it is fenced first ({@link isOrphan}), and collected at once
 */
import type { AllocationState } from "../resources/ip-allocation.ts";
import { CONFIG_HASH, type Pod } from "../resources/pod.ts";

/** A recorded address, as far as it matters here. */
export interface LeakRow {
  readonly state: AllocationState;
  readonly owner: string;
  readonly containerId: string;
  readonly namespace: string;
  readonly pod: string;
}

/** Who is known under the namespace and name of a pod. */
export interface PodFacts {
  readonly uid: string | undefined;
  /** Of the annotation `kubernetes.io/config.hash`; undefined unless a file of the node made the pod. */
  readonly configHash: string | undefined;
  /** `status.phase` */
  readonly phase?: string | undefined;
  readonly deleting: boolean;
}

/** The pod of a row's name, as the API server has just said it. */
export type PodStatus =
  | { readonly kind: "unknown" }
  | { readonly kind: "absent" }
  | { readonly kind: "present"; readonly pod: PodFacts };

/** Whether the network namespace of the attachment is still there under its path; `inUse`: and its NIC has the address. */
export type NetnsStatus = "inUse" | "there" | "gone" | "unknown";

export interface LeakQuestion {
  readonly row: LeakRow;
  readonly pod: PodStatus;
  readonly netns: NetnsStatus;
  /** When the row, in its present version, was first seen without its pod; undefined when it was not. */
  readonly observedAtMs: number | undefined;
  /** Of the same monotonic clock. */
  readonly nowMs: number;
  /** How far two observations must be apart: {@link settleMs}. */
  readonly settleMs: number;
}

export type LeakVerdict =
  | { readonly kind: "keep" }
  | { readonly kind: "wait" }
  | { readonly kind: "observe" }
  | { readonly kind: "collect"; readonly reason: "finished" | "gone" };

const KEEP: LeakVerdict = { kind: "keep" };

export function podFacts({ uid, annotations, phase, deleting }: Pod): PodFacts {
  return { uid, configHash: annotations[CONFIG_HASH], phase, deleting };
}

/** The kubelet's configuration hash, which CNI_ARGS has instead of a UID for a static pod. */
const STATIC_OWNER = /^[0-9a-f]{32}$/;

/** The rule static-pods: the owner's name for a static pod, of which the API server may know nothing. */
export function isStaticOwner(owner: string): boolean {
  return STATIC_OWNER.test(owner);
}

/** The rule static-pods: a static pod is known under its UID and under its configuration hash. */
export function isOwner(owner: string, { uid, configHash }: Pick<PodFacts, "uid" | "configHash">): boolean {
  return owner !== "" && (uid === owner || configHash === owner);
}

/** None of its containers runs or will run again. */
export function isFinished({ phase }: Pick<PodFacts, "phase">): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

/** The grace counts once, from the first observation to the second. */
export function settleMs(graceMs: number, cooldownMs: number): number {
  return Math.max(graceMs, cooldownMs);
}

/**
 * Kept, Cooling and Quarantined end by other ways, and what was never attached by the rule unattached. A row that names no pod, or whose owner is the
 * container, has no pod that could be missed.
 */
export function mayLeak({ state, owner, containerId, namespace, pod }: LeakRow): boolean {
  return state === "Bound" && containerId !== "" && owner !== containerId && namespace !== "" && pod !== "";
}

/**
 * Whether the row's pod is an orphan: the API server has no such pod any more, and the workload that keeps the address may have made the next one.
 * Nothing is known of a static pod's object, so it never is one.
 */
export function isOrphan(row: LeakRow & { readonly workload?: unknown }, pod: PodStatus): boolean {
  if (row.workload === undefined || !mayLeak(row) || isStaticOwner(row.owner)) return false;
  if (pod.kind !== "present") return pod.kind === "absent";
  return pod.pod.uid !== undefined && !isOwner(row.owner, pod.pod);
}

/** What a sweep does with a row. */
export function decideLeak(question: LeakQuestion): LeakVerdict {
  const { row, pod, netns } = question;
  if (!mayLeak(row)) return KEEP;
  if (pod.kind === "unknown") return { kind: "wait" };
  // The kubelet may be down: a pod that was deleted by force, or evicted, answers on its address until its sandbox goes.
  if (netns === "inUse") return KEEP;
  if (pod.kind === "present" && isOwner(row.owner, pod.pod)) return judgeOwner(question, pod.pod);
  if (isStaticOwner(row.owner) && !isStaticGone(pod, netns)) return KEEP;
  return observed(question, "gone");
}

function judgeOwner(question: LeakQuestion, pod: PodFacts): LeakVerdict {
  if (!isFinished(pod)) return KEEP;
  // The kubelet is about to send its DEL; a finalizer may hold the object for ever.
  return pod.deleting ? observed(question, "finished") : { kind: "collect", reason: "finished" };
}

/**
 * A mirror pod may not exist yet, or have been deleted by hand, while its static pod runs. What tells is the network namespace; where
 * its path is not known, a mirror pod of another configuration: the kubelet starts that one only when the one before has ended.
 */
function isStaticGone(pod: PodStatus, netns: NetnsStatus): boolean {
  if (netns !== "unknown") return netns === "gone";
  return pod.kind === "present" && pod.pod.configHash !== undefined;
}

function observed({ observedAtMs, nowMs, settleMs }: LeakQuestion, reason: "finished" | "gone"): LeakVerdict {
  const isSettled = observedAtMs !== undefined && nowMs - observedAtMs >= settleMs;
  return isSettled ? { kind: "collect", reason } : { kind: "observe" };
}
