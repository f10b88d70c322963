/** Whether an administrator may end an address's binding: only with force while its pod may be alive. */
import { isFinished, isOwner, isStaticOwner, type LeakRow, type NetnsStatus, type PodStatus } from "./leak.ts";

export interface OperationFacts {
  readonly row: Pick<LeakRow, "state" | "owner" | "containerId"> & { readonly ifName: string };
  /** Undefined where pods are not known, as in the embedded mode. */
  readonly pod: PodStatus | undefined;
  readonly netns: NetnsStatus;
}

/** `why` is a clause. */
export interface OperationRefusal {
  readonly why: string;
  readonly isForceable: boolean;
  /** Nothing is left to do. */
  readonly isOver?: boolean;
}

/**
 * Returns why a release that a report asks for is not needed any more; undefined if the record is the reported one,
 * or there is no report.
 */
export function refuseReported(
  { state, owner, containerId }: OperationFacts["row"],
  reported: Pick<OperationFacts["row"], "owner" | "containerId"> | undefined,
): OperationRefusal | undefined {
  if (reported === undefined) return undefined;
  const over = (why: string): OperationRefusal => ({ why, isForceable: false, isOver: true });
  if (state !== "Bound") return over(`it is ${state} by now`);
  return owner === reported.owner && containerId === reported.containerId
    ? undefined
    : over("another pod or container has it since the report");
}

/** Returns why the row of a Bound address is not to be ended; undefined if its pod is known to have no use for it. */
function refuseWhileInUse({ row, pod, netns }: OperationFacts): OperationRefusal | undefined {
  const { owner, containerId, ifName } = row;
  if (containerId === "")
    return {
      why: "its NIC is not attached yet; if it never is, the address is freed after two minutes",
      isForceable: false,
    };
  const inUse = (why: string): OperationRefusal => ({ why, isForceable: true });
  if (netns === "inUse") return inUse(`the NIC ${ifName} of its pod still has it`);
  if (pod === undefined)
    return netns === "unknown" ? inUse(`it is unknown whether the NIC ${ifName} still has it`) : undefined;
  if (pod.kind === "unknown") return inUse("the API server did not say whether its pod exists");
  if (pod.kind === "present" && isOwner(owner, pod.pod))
    return isFinished(pod.pod) ? undefined : inUse("its pod exists");
  return isStaticOwner(owner) && netns !== "gone" ? inUse("its static pod may run without a mirror pod") : undefined;
}

/** Returns why the address is not to be released; undefined: it is. */
export function refuseRelease(facts: OperationFacts): OperationRefusal | undefined {
  switch (facts.row.state) {
    case "Bound":
      return refuseWhileInUse(facts);
    case "Cooling":
      return { why: "it is released already, and becomes free by itself", isForceable: false };
    case "Quarantined":
      return { why: 'it is in quarantine; "berthctl quarantine ADDRESS --remove" ends that', isForceable: false };
    case "Kept":
      return { why: "it is retained, and no agent's", isForceable: false };
  }
}

/** Returns why the address must not be quarantined; undefined if it may. `facts`: undefined for a free address. */
export function refuseQuarantine(facts: OperationFacts | undefined): OperationRefusal | undefined {
  if (facts?.row.state === "Bound") return refuseWhileInUse(facts);
  if (facts?.row.state === "Quarantined") return { why: "it is in quarantine already", isForceable: false };
  if (facts?.row.state !== "Kept") return undefined;
  return { why: "it is retained for a member of a workload", isForceable: false };
}
