/**
 * Decides which agents must read an allocation again because another writer may have changed it (recreate,
 * docs/decisions/0035).
 *
 *   change of the object                                       told
 *   absent → Bound, for a member                               its holders' nodes, unless the pod exists there:
 *                                                              restored from an old backup (retention)
 *   absent → Quarantined, of no pod                            its node: it is to probe it (conflict)
 *   Kept → Bound                                               the same: carried out late, after its agent's journal
 *                                                              was lost
 *   Bound → absent, with the annotation `force-delete`         its holders' nodes
 *   Bound → absent                                             its holders' nodes, if the pod exists there
 *   Bound → NodeLost; NodeLost → absent                        its holders' nodes
 *   a holder left it, in any other way                         the holder's node, if the pod exists there and is not
 *                                                              terminating
 *   of two holders' nodes it now names the other one           that node: its journal may have been lost meanwhile
 *   Quarantined → absent, or on another node                   its node, which probes it, and that node if it is to
 *                                                              probe
 *   Quarantined → without the owner that retained it           its node: a machine that replaced the lost one probes
 *                                                              it
 *
 * An agent's own release is among them only if the pod outlives it, as with a new sandbox: that costs a write, and
 * nothing else.
 */
import type { CachedAllocation, CachedHolder } from "../cached-allocation.ts";

/** An agent that may need a notice. */
export interface Suspicion {
  readonly node: string;
  /** Only if this pod exists on the node, or the node is not ready. Default: in any case. */
  readonly pod?: Pick<CachedHolder, "namespace" | "pod">;
  /** Only if the pod does not exist on the node. */
  readonly ifAbsent?: boolean;
  /** Whether a pod that is being deleted counts. */
  readonly ifTerminating: boolean;
}

/** `before` is undefined for a new one. */
export function planNotices(
  before: CachedAllocation | undefined,
  after: CachedAllocation | undefined,
): readonly Suspicion[] {
  if (before === undefined || before.spec.state === "Kept") return after === undefined ? [] : planNew(after);
  const lost = claimants(before)
    .filter((holder) => after === undefined || !isHeld(holder, after))
    .flatMap((holder) => suspicionOf(holder, before, after) ?? []);
  const { state, node } = before.spec;
  const hasMoved = after?.spec.node !== node;
  const isHeir = (holder: CachedHolder): boolean =>
    hasMoved && holder.node === after?.spec.node && isHeld(holder, after);
  const heirs = before.spec.holders.filter(isHeir).map((holder) => holder.node);
  const former = hasMoved && state === "Quarantined" ? [node] : [];
  const isLeft = before.spec.workload !== undefined && after?.spec.workload === undefined;
  const isToProbe = after?.spec.state === "Quarantined" && (hasMoved || (state === "Quarantined" && isLeft));
  const prober = isToProbe ? [after.spec.node] : [];
  return [...lost, ...[...heirs, ...former, ...prober].map((each) => ({ node: each, ifTerminating: true }))];
}

/**
 * The next pod of the member waits for the node of an earlier one, which may have lost its record. A plain pod's
 * address never belongs to another pod.
 */
function planNew({ spec: { state, workload, holders, quarantine, node } }: CachedAllocation): readonly Suspicion[] {
  if (state === "Quarantined" && quarantine?.mac === "") return [{ node, ifTerminating: true }];
  if (state !== "Bound" || workload === undefined) return [];
  return holders.map(({ node, namespace, pod }) => ({
    node,
    pod: { namespace, pod },
    ifTerminating: true,
    ifAbsent: true,
  }));
}

function suspicionOf(
  { node, namespace, pod }: CachedHolder,
  before: CachedAllocation,
  after: CachedAllocation | undefined,
): Suspicion | undefined {
  const wasBound = before.spec.state === "Bound";
  const isCertain =
    after === undefined ? before.isForced === true || !wasBound : wasBound && reasonOf(after) === "NodeLost";
  if (isCertain) return { node, ifTerminating: true };
  // The node was asked when it was taken for lost; a conflict is its own finding.
  if (after?.spec.state === "Quarantined") return undefined;
  return { node, pod: { namespace, pod }, ifTerminating: after === undefined };
}

/** Returns the pods that have the address, or had it until their node was lost. */
function claimants(allocation: CachedAllocation): readonly CachedHolder[] {
  const { state, holders, quarantine } = allocation.spec;
  if (state === "Bound") return holders;
  return reasonOf(allocation) === "NodeLost" && quarantine?.holder !== undefined ? [quarantine.holder] : [];
}

function isHeld({ node, namespace, pod, ifName }: CachedHolder, { spec }: CachedAllocation): boolean {
  const isSame = (other: CachedHolder): boolean =>
    other.node === node && other.namespace === namespace && other.pod === pod && other.ifName === ifName;
  return spec.state === "Bound" && spec.holders.some(isSame);
}

function reasonOf(
  allocation: CachedAllocation | undefined,
): NonNullable<CachedAllocation["spec"]["quarantine"]>["reason"] | undefined {
  return allocation?.spec.state === "Quarantined" ? allocation.spec.quarantine?.reason : undefined;
}
