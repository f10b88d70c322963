/**
 * What an allocation becomes by each action of the table: its whole new specification, for one write with preconditions.
 */
import type { Holder, IpAllocation, IpAllocationSpec } from "../../resources/ip-allocation.ts";
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
