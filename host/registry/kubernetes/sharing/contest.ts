/**
 * Two pods of one member of a workload at one address (allocation rule 8): who has it, and whether both do while a machine migrates.
 * Called by publisher.ts.
 * Effects: looks at pods.
 */
import { invariant } from "../../../lib/invariant.ts";
import type { Holder, IpAllocationSpec } from "../../../resources/ip-allocation.ts";
import { MAX_HOLDERS } from "../../../resources/limits.ts";
import type { Allocation } from "../../registry.ts";
import type { Verdict } from "../judge.ts";
import type { KnownObject } from "../known-object.ts";
import type { PublisherOptions, Task } from "../task.ts";

/** Of two pods of one member the live one has the address; two that run one machine share it; one that lives on keeps it. */
export async function contest(
  { isLivePod, seeHolder, isNodeLost, node }: Pick<PublisherOptions, "isLivePod" | "seeHolder" | "isNodeLost" | "node">,
  row: Allocation,
  { seen, object }: Task,
): Promise<Exclude<Verdict, { readonly kind: "reclaim" }>> {
  if (!(await isLivePod(row.namespace, row.pod, row.owner))) return { kind: "taken" };
  const known = typeof object === "object" ? object : undefined;
  const beside: Holder[] = [];
  if (seeHolder !== undefined) {
    if (seen === undefined || seen.resourceVersion !== known?.resourceVersion) return { kind: "look" };
    for (const holder of seen.spec.holders) {
      const sighting = await seeHolder(row, holder);
      if (sighting === "alive") return { kind: "taken" };
      if (sighting === "twin") beside.push(holder);
    }
    if (beside.length >= MAX_HOLDERS) return { kind: "taken" };
  }
  // Whose NIC has it already need not ask, and a twin answers as it should.
  const isSure = beside.length > 0 || row.isConfirmed === true || row.quarantine !== undefined;
  // Allocation rule 2: the earlier pod may run on where nobody can see it. Who has bound it in doubt will ask.
  if (!isSure && known !== undefined && known.node !== node && (await isNodeLost?.(known.node)) === true)
    return { kind: "taken", isDoubtful: true };
  return { kind: "replace", state: "Bound", ...(seeHolder === undefined ? {} : { beside }) };
}

/** Allocation rule 2: this node was taken for lost, and the row's pod may live here. When it does not, the collector sees to the row. */
export async function reclaim(
  { isLivePod }: Pick<PublisherOptions, "isLivePod">,
  { namespace, pod, owner }: Allocation,
): Promise<Extract<Verdict, { readonly kind: "replace" | "nothing" }>> {
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
