/**
 * Two pods of one member of a workload at one address (allocation rule 8): who has it, and whether both do while a machine migrates.
 * Effects: looks at pods.
 */

import { invariant } from "../../lib/invariant.ts";
import type { Holder, IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { MAX_HOLDERS } from "../../resources/ip-allocation.ts";
import type { Allocation } from "../registry.ts";
import type { SyncAction } from "./decide.ts";
import type { KnownObject } from "./known-object.ts";
import type { ObjectSyncOptions, SyncTask } from "./task.ts";

type Contested = Exclude<SyncAction, { readonly kind: "reclaim" }>;
type ContestTools = Pick<ObjectSyncOptions, "isLivePod" | "readHolderStatus" | "readNodeStatus" | "node">;

/**
 * Of two pods of one member the live one has the address, once the other one's NIC has lost it; two that run one machine share it; one that
 * lives on keeps it.
 */
export async function takeOver(tools: ContestTools, row: Allocation, task: SyncTask): Promise<Contested> {
  const { isLivePod, readHolderStatus } = tools;
  if (!(await isLivePod(row.namespace, row.pod, row.owner))) return { kind: "taken" };
  const { seen } = task;
  const known = typeof task.object === "object" ? task.object : undefined;
  const beside: Holder[] = [];
  const gone: Holder[] = [];
  if (readHolderStatus !== undefined) {
    if (seen === undefined || seen.resourceVersion !== known?.resourceVersion) return { kind: "look" };
    for (const holder of seen.spec.holders) {
      if (holder.ifName !== row.ifName) return { kind: "taken" };
      const sighting = await readHolderStatus(row, holder);
      if (sighting === "alive") return { kind: "taken" };
      (sighting === "twin" ? beside : gone).push(holder);
    }
    if (beside.length >= MAX_HOLDERS) return { kind: "taken" };
  }
  // Whose NIC has it already goes on with it. What is bound in doubt has been asked for, and a twin answers as it should.
  const isAsked = beside.length > 0 || row.quarantine !== undefined;
  const obstacle = row.isConfirmed === true ? undefined : await findObstacle(tools, gone, isAsked);
  if (obstacle !== undefined) return obstacle;
  return { kind: "replace", state: "Bound", ...(readHolderStatus === undefined ? {} : { beside }) };
}

/** An earlier pod that may still have the address on its NIC. Of this node's own pods the journal tells. */
async function findObstacle(
  { readNodeStatus, node }: ContestTools,
  gone: readonly Holder[],
  isAsked: boolean,
): Promise<Contested | undefined> {
  let isDoubtful = false;
  for (const holder of gone) {
    const sighting = holder.node === node ? "off" : ((await readNodeStatus?.(holder.node)) ?? "off");
    if (sighting === "there") return { kind: "taken", predecessorNode: holder.node };
    // Allocation rule 2: it may run on where nobody can see it.
    isDoubtful ||= sighting === "lost" && !isAsked;
  }
  return isDoubtful ? { kind: "taken", isDoubtful } : undefined;
}

/** Allocation rule 2: this node was taken for lost, and the row's pod may live here. When it does not, the collector sees to the row. */
export async function reclaim(
  { isLivePod }: Pick<ObjectSyncOptions, "isLivePod">,
  { namespace, pod, owner }: Allocation,
): Promise<Extract<SyncAction, { readonly kind: "replace" | "nothing" }>> {
  return (await isLivePod(namespace, pod, owner)) ? { kind: "replace", state: "Bound" } : { kind: "nothing" };
}

/** The object without the row's pod, of the node that had it unless that has let go; `own` is what the row would make of it. */
export function specWithout(own: IpAllocationSpec, object: KnownObject, others: readonly Holder[]): IpAllocationSpec {
  const [first] = others;
  invariant(first !== undefined, "What is left is somebody's");
  const node = others.some((holder) => holder.node === object.node) ? object.node : first.node;
  const workload = object.workload && { ...object.workload, ifName: first.ifName };
  return { ...own, node, holders: others, ...(workload === undefined ? {} : { workload }) };
}
