/** Restores what the attachments of this node lack of what their ADDs left, in the pods' namespaces and on the node: what a check finds as drift. */
import { setImmediate } from "node:timers/promises";
import { CniError } from "../../cni/error.ts";
import { decodePodArgs } from "../../cni/request.ts";
import { ApplyError } from "../../kernel/apply.ts";
import { NetnsError } from "../../kernel/netns.ts";
import { messageOf } from "../../lib/describe.ts";
import { formatOperation } from "../../plan/text.ts";
import type { RepairRecord } from "../../records/check-record.ts";
import { type DriftDeps, type DriftFacts, listQuestions } from "./read-drift.ts";

/** Restores the attachments in order, one in a turn of the event loop; what the kernel refuses is undone. Returns sentences about what is not restored. */
export async function repairDrift(
  deps: DriftDeps,
  facts: DriftFacts,
): Promise<{ repaired: RepairRecord[]; unrepaired: string[] }> {
  const repaired: RepairRecord[] = [];
  const unrepaired: string[] = [];
  for (const { attachment, request, isServed } of await listQuestions(deps, facts)) {
    const { ifName, netns, row } = attachment;
    try {
      const operations = await deps.coordinator.repair(request, isServed);
      const { namespace = "", name = "" } = decodePodArgs(request.args);
      const about = { namespace: row?.namespace ?? namespace, pod: row?.pod ?? name, interface: ifName, netns };
      if (operations.length > 0) repaired.push({ ...about, operations: operations.map(formatOperation) });
    } catch (error) {
      // The namespace is gone, and the attachment with it.
      if (error instanceof NetnsError) continue;
      if (!(error instanceof CniError || error instanceof ApplyError)) throw error;
      unrepaired.push(`Interface ${ifName} in ${netns} is not restored: ${messageOf(error)}`);
    }
    await setImmediate();
  }
  return { repaired, unrepaired };
}
