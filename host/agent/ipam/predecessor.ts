/** Refusals of a pod whose address an earlier pod of the same member still has. */

import { CniError, ErrorCode } from "../../cni/error.ts";
import { formatIp } from "../../net/ip.ts";
import type { Mac } from "../../net/mac.ts";
import type { Allocation } from "../../registry/registry.ts";
import type { Workload } from "../../resources/member.ts";

/** For a pod whose address is still on the NIC of an earlier, deleted pod of the same member, on another node. */
export function awaitsNode({ ip, namespace, pod, workload, predecessorNode }: Allocation): CniError {
  const text = `Address ${formatIp(ip)} is retained for ${describeWorkload(workload, namespace)}, and its earlier pod ${namespace}/${pod}, which is deleted, still has it on node "${predecessorNode}"; try again when the agent of that node has removed it from the NIC, the sandbox of the pod has ended, or the node is marked as out of service`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

/**
 * For a pod whose address may still be on the NIC of an earlier pod of the same member, on a node that is lost: a
 * machine answers for it.
 */
export function awaitsLostNode(
  { ip, namespace, pod, workload, predecessorNode }: Allocation,
  mac: Mac | undefined,
): CniError {
  const text = `Address ${formatIp(ip)} is retained for ${describeWorkload(workload, namespace)}, whose earlier pod ${namespace}/${pod} was on node "${predecessorNode}", which is lost, and ${mac ?? "a machine"} still answers for it; try again when that node is back or switched off`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

/** For a pod whose address another pod of this node, perhaps of another namespace, tries to claim. */
export function awaitsClaim({ ip }: Allocation): CniError {
  const text = `Address ${formatIp(ip)} is retained for this interface, and another pod's claim of it on this node has not ended; try again`;
  return new CniError(ErrorCode.TryAgainLater, text);
}

function describeWorkload(workload: Workload | undefined, namespace: string): string {
  return `${workload?.kind} "${workload?.namespace ?? namespace}/${workload?.name}"`;
}

/** For a pod whose address another pod of the same member still has. */
export function livesOn({ ip, namespace, pod, workload }: Allocation): CniError {
  const text = `Address ${formatIp(ip)} is retained for ${describeWorkload(workload, namespace)}, and its pod ${namespace}/${pod} still has it; try again when that pod has ended`;
  return new CniError(ErrorCode.TryAgainLater, text);
}
