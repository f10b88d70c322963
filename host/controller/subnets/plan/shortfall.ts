/** Explains in numbers why a workload lacks addresses, for its event and the log. */

import { sizeOf } from "../../../core/spans.ts";
import type { PoolDemand } from "../../../ipam/subnet-pools.ts";
import { MAX_RANGES } from "../../../resources/fields/address-spec.ts";
import { refuseNamespace } from "../../../resources/subnet.ts";
import { MAX_EXAMPLES } from "../../examples.ts";
import type { Shortfall, SubnetsView } from "../model.ts";
import type { SubnetCapacity } from "./capacity.ts";

interface ShortfallInput {
  readonly demand: PoolDemand;
  readonly capacities: readonly SubnetCapacity[];
  readonly has: number;
  readonly reasons: ReadonlySet<Shortfall["reason"]>;
}

export function explainShortfall(
  {
    subnets,
    labelsOf,
    closedTo,
    maxPoolSize,
    maxPerNamespace,
  }: Pick<SubnetsView, "subnets" | "labelsOf" | "closedTo" | "maxPoolSize" | "maxPerNamespace">,
  { demand, capacities, has, reasons }: ShortfallInput,
): Shortfall {
  const { application, ifName, family, count } = demand;
  const request = `${count} ${count === 1 ? "address" : "addresses"} (${demand.reason}) for ${ifName}, IPv${family}`;
  const known = new Map(subnets.map((subnet) => [subnet.object.name, subnet]));
  const told = demand.subnets.slice(0, MAX_EXAMPLES).map((name) => {
    const capacity = capacities.find(({ subnet }) => subnet.object.name === name);
    if (capacity !== undefined) return describeCapacity(capacity);
    const subnet = known.get(name);
    if (subnet === undefined) return `Subnet "${name}" does not exist or cannot be used`;
    if (subnet.spec.family !== family) return `Subnet "${name}" is not IPv${family}`;
    const asking = { name: application.namespace, labels: labelsOf(application.namespace), closedTo };
    return `Subnet "${name}" ${refuseNamespace(subnet.spec, asking)}`;
  });
  if (demand.subnets.length > told.length) told.push(`and ${demand.subnets.length - told.length} more Subnets`);
  const limits = [
    ...(reasons.has("PoolTooLarge") ? [`a generated pool has at most ${maxPoolSize} (maxGeneratedPoolSize)`] : []),
    ...(reasons.has("TooScattered")
      ? [`a pool has at most ${MAX_RANGES} ranges, and what is free lies scattered`]
      : []),
    ...(reasons.has("NamespaceLimit")
      ? [`namespace "${application.namespace}" may have ${maxPerNamespace} (maxGeneratedAddressesPerNamespace)`]
      : []),
  ];
  const [first] = reasons;
  const isRefused = demand.subnets.some((name) => known.get(name)?.spec.family === family);
  const reason = capacities.length > 0 ? (first ?? "SubnetFull") : isRefused ? "SubnetRefused" : "SubnetMissing";
  const causes = limits.length > 0 ? limits : told;
  return { demand, has, reason, message: `Wants ${request}, and has ${has}: ${causes.join("; ")}` };
}

function describeCapacity({ subnet, total, free, poolCount: pools }: SubnetCapacity): string {
  const { name, deleting } = subnet.object;
  if (deleting) return `Subnet "${name}" is being deleted`;
  return `Subnet "${name}" has ${sizeOf(free.spans)} free of ${total} addresses, and ${pools} ${pools === 1 ? "pool" : "pools"}`;
}
