/** Builds the input for the division of Subnets from the caches. */

import { spansOf } from "../../core/spans.ts";
import type { PoolDemand } from "../../ipam/subnet-pools.ts";
import { messageOf } from "../../lib/describe.ts";
import type { Family } from "../../net/ip.ts";
import { allocationName } from "../../resources/ip-allocation.ts";
import { type Assignments, decodeAssignments } from "../../resources/subnet.ts";
import { settingsOf } from "../caches.ts";
import type { ControlledPool, ControlledSubnet } from "../objects.ts";
import type { Caches, DemandSettings, Liveness } from "../types.ts";
import type { CurrentPool, CurrentSubnet, SubnetsView } from "./model.ts";

/** Name of a pod's first NIC if no Coordinator sets podDefaultCniNic. */
const FIRST_NIC = "eth0";

/** With an overlay, another network plugin provides the first NIC. */
export function demandSettings(caches: Caches): DemandSettings {
  const { enableIPv4, enableIPv6, allowSingleFamily } = settingsOf(caches);
  const { mode, podDefaultCniNic = FIRST_NIC } = caches.coordinators.items.get("default")?.value?.spec ?? {};
  return { enableIPv4, enableIPv6, allowSingleFamily, firstNic: mode === "overlay" ? undefined : podDefaultCniNic };
}

/** Returns undefined for an invalid Subnet: without its assignments, nothing may be assigned. */
export function readSubnet(object: ControlledSubnet): CurrentSubnet | undefined {
  const { value } = object;
  const { assignments } = readStatus(object);
  return value === undefined || assignments === undefined ? undefined : { object, spec: value.spec, assignments };
}

/** Returns why the status of a Subnet with a valid specification is invalid; undefined if it is valid. */
export function faultOfStatus(object: ControlledSubnet): string | undefined {
  return object.value === undefined ? undefined : readStatus(object).fault;
}

function readStatus({ name, status }: ControlledSubnet): { assignments?: Assignments; fault?: string } {
  try {
    return { assignments: decodeAssignments(status, `Subnet "${name}", status`) };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}

function readPool(object: ControlledPool): CurrentPool[] {
  const { spec } = object.value ?? {};
  return spec?.generated === undefined ? [] : [{ object, spec, generated: spec.generated }];
}

export interface ViewParts {
  readonly caches: Caches;
  readonly demands: readonly PoolDemand[];
  readonly pools: readonly ControlledPool[];
  readonly subnets: readonly CurrentSubnet[];
  readonly liveness: ReadonlyMap<string, Liveness>;
  readonly excessMs: SubnetsView["excessMs"];
}

export function viewOf({ caches, demands, pools, subnets, liveness, excessMs }: ViewParts): SubnetsView {
  const { maxGeneratedPoolSize, maxGeneratedAddressesPerNamespace } = settingsOf(caches);
  const byHand = pools.flatMap(({ value }) => (value === undefined || value.spec.generated ? [] : [value.spec]));
  const reserved = [...caches.reserved.items.values()].flatMap(({ value }) => value?.spec ?? []);
  return {
    demands,
    subnets,
    liveness,
    excessMs,
    pools: pools.flatMap(readPool),
    others: [...byHand, ...reserved].map(({ addressSpace, family, ranges }) => ({
      addressSpace,
      family,
      spans: spansOf(ranges),
    })),
    poolNames: new Set(pools.map(({ name }) => name)),
    isHeld: (addressSpace: string, family: Family, value: bigint) =>
      caches.allocations.items.has(allocationName({ family, value }, addressSpace)),
    labelsOf: (namespace) => caches.namespaces.items.get(namespace)?.labels ?? {},
    maxPoolSize: maxGeneratedPoolSize,
    maxPerNamespace: maxGeneratedAddressesPerNamespace,
  };
}
