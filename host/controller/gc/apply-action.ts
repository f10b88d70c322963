/**
 * One write of the collection: the object as the table wants it, if nobody has written to it since it was read.
 * Effects: one PUT or DELETE with preconditions.
 */
import { isConflict, isNotFound } from "../../kubernetes/kube-api.ts";
import type { AllocationObjects } from "../../registry/kubernetes/allocation-objects.ts";
import type { Holder, IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";
import { COLLECTION_PATIENCE_MS } from "./check-allocation.ts";
import type { Action } from "./plan-collection.ts";

export interface ChangeTerms {
  /** Of `ask`: who is told. */
  readonly prober?: string | undefined;
  /** RFC 3339. */
  readonly since: string;
}

/** The holder that the object's node answers for; of a quarantine for a lost node the one that had the address. */
export function lastHolder({ spec }: IpAllocation): Holder | undefined {
  const { holders, node, quarantine } = spec;
  return quarantine?.holder ?? holders.find((holder) => holder.node === node) ?? holders[0];
}

/** Undefined where there is nothing to write, or the object goes. */
export function changedSpec(object: IpAllocation, action: Action, terms: ChangeTerms): IpAllocationSpec | undefined {
  const { ip, addressSpace, prefixLength, pool, node, workload, quarantine } = object.spec;
  const { since, prober } = terms;
  const base = { ip, addressSpace, prefixLength, pool, node, holders: [], since };
  const holder = lastHolder(object);
  switch (action) {
    case "quarantine": {
      const lost = { reason: "NodeLost" as const, mac: "", parent: "", ...(holder === undefined ? {} : { holder }) };
      // What keeps the address stays known: the next pod of that member asks for it, and takes it over.
      return { ...base, state: "Quarantined", ...(workload === undefined ? {} : { workload }), quarantine: lost };
    }
    case "ask":
      if (prober === undefined || quarantine === undefined) return undefined;
      // The link was the other node's.
      return {
        ...{ ...base, node: prober, state: "Quarantined", quarantine: { ...quarantine, parent: "" } },
        ...(workload === undefined ? {} : { workload }),
      };
    case "preserve": {
      if (workload === undefined) return undefined;
      const { ifName = holder?.ifName } = workload;
      return { ...base, state: "Kept", workload: { ...workload, ...(ifName === undefined ? {} : { ifName }) } };
    }
    case "cool":
      return { ...base, state: "Cooling" };
    case "free":
    case "keep":
    case "wait":
      return undefined;
  }
}

export interface CollectTerms extends ChangeTerms {
  readonly signal: AbortSignal;
}

/** False when somebody was faster, or there was nothing to write. Rejects when the API server does not answer, or refuses. */
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
