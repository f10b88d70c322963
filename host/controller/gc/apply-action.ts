/** Writes one decision of the collection with preconditions, so that it fails if the object has changed since it was read. */
import { isConflict, isNotFound } from "../../kubernetes/kube-api.ts";
import type { AllocationObjects } from "../../registry/kubernetes/allocation-objects.ts";
import type { IpAllocation } from "../../resources/ip-allocation.ts";
import { COLLECTION_PATIENCE_MS } from "./check-allocation.ts";
import { type Action, type ChangeTerms, changedSpec } from "./plan-collection.ts";

interface CollectTerms extends ChangeTerms {
  readonly signal: AbortSignal;
}

/** Returns false if the object has changed, or nothing had to be written. Rejects if the API server does not answer, or refuses. */
export async function collect(
  objects: AllocationObjects,
  object: IpAllocation,
  action: Action,
  { signal, ...change }: CollectTerms,
): Promise<boolean> {
  const terms = { lane: "background", patienceMs: COLLECTION_PATIENCE_MS, signal } as const;
  try {
    if (action === "free") {
      await objects.delete(object.name, object, terms);
      return true;
    }
    const spec = changedSpec(object, action, change);
    if (spec === undefined) return false;
    await objects.replace(spec, object, terms);
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}
