/** Builds the input for the division of Subnets from the caches. */

import type { Labels } from "../../config/label-selector.ts";
import { closedTo } from "../../config/vendor-conf.ts";
import { joinSpans, rangesContain, rangesOf, type Spans, sizeOf, spansOf } from "../../core/spans.ts";
import { messageOf } from "../../lib/describe.ts";
import { FAMILIES, parseIp } from "../../net/ip.ts";
import { COORDINATOR_NAME } from "../../resources/coordinator.ts";
import type { AddressSpec } from "../../resources/fields/address-spec.ts";
import { type PoolOwner, poolOwnerKey } from "../../resources/fields/subnet-pool.ts";
import { allocationName, NO_NODE } from "../../resources/ip-allocation.ts";
import { routersOf } from "../../resources/ip-pool-shape.ts";
import { type Assignments, decodeAssignments } from "../../resources/subnet.ts";
import type { CachedAllocation } from "../cached-allocation.ts";
import { firstNicOf, settingsOf } from "../caches.ts";
import { claimantsOf } from "../claimants.ts";
import { type ControlledPool, type ControlledSubnet, valuesOf } from "../objects.ts";
import type { Caches, DemandSettings } from "../types.ts";
import type { CurrentPool, CurrentSubnet, SubnetsView } from "./model.ts";

/** With an overlay, another network plugin provides the first NIC. */
export function demandSettings(caches: Caches): DemandSettings {
  const { enableIPv4, enableIPv6, allowSingleFamily } = settingsOf(caches);
  const { mode } = caches.coordinators.items.get(COORDINATOR_NAME)?.value?.spec ?? {};
  const firstNic = mode === "overlay" ? undefined : firstNicOf(caches);
  return { enableIPv4, enableIPv6, allowSingleFamily, firstNic };
}

/** Returns undefined for an invalid Subnet: without its assignments, nothing may be assigned. */
export function readSubnet(object: ControlledSubnet): CurrentSubnet | undefined {
  const { value } = object;
  const { assignments } = readStatus(object);
  return value === undefined || assignments === undefined ? undefined : { object, spec: value.spec, assignments };
}

/** Returns why a Subnet cannot be used; undefined if it can. */
export function faultOf(object: ControlledSubnet): string | undefined {
  return object.value === undefined ? (object.fault ?? "it cannot be decoded") : readStatus(object).fault;
}

/** The assignments in the status of Subnets, which may list thousands of pools: decoded once for each version. */
const decoded = new WeakMap<ControlledSubnet, Assignments>();

function readStatus(object: ControlledSubnet): { assignments?: Assignments; fault?: string } {
  try {
    const assignments = decoded.get(object) ?? decodeAssignments(object.status, `Subnet "${object.name}", status`);
    decoded.set(object, assignments);
    return { assignments };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}

function readPool(object: ControlledPool): CurrentPool | undefined {
  const { spec } = object.value ?? {};
  return spec?.generated === undefined ? undefined : { object, spec, generated: spec.generated };
}

type Other = SubnetsView["others"][number];

type OtherSpec = Pick<AddressSpec, "addressSpace" | "family" | "ranges"> &
  Partial<Pick<AddressSpec, "subnet" | "gateway" | "routes">>;

function readOther({ addressSpace, family, ranges, subnet, gateway, routes = [] }: OtherSpec): Other {
  const named = subnet === undefined ? [] : routersOf({ subnet, gateway, routes });
  const routers = named.map(({ value }) => ({ first: value, last: value }));
  return { addressSpace, family, spans: joinSpans([...spansOf(ranges), ...routers]) };
}

/** Returns the addresses of the cluster's machines in each of these address spaces. */
function readMachines(caches: Caches, spaces: ReadonlySet<string>): readonly Other[] {
  const ips = claimantsOf(caches).flatMap(({ addresses }) => addresses.flatMap((text) => parseIp(text) ?? []));
  const others = [...spaces].flatMap((addressSpace) =>
    FAMILIES.map((family): Other => {
      const own = ips.filter((ip) => ip.family === family);
      return { addressSpace, family, spans: joinSpans(own.map(({ value }) => ({ first: value, last: value }))) };
    }),
  );
  return others.filter(({ spans }) => spans.length > 0);
}

const NO_LABELS: Labels = {};

/** Returns the names of the allocations of pods in the workload's pools that end with it. */
export function boundOf({ pools, allocations }: Caches, application: PoolOwner): string[] {
  const key = poolOwnerKey(application);
  return [...pools.items.values()].flatMap((pool) => {
    const { generated } = pool.value?.spec ?? {};
    if (pool.deleting || generated?.reclaim !== true || poolOwnerKey(generated.application) !== key) return [];
    return boundIn(pool, allocations).map(({ name }) => name);
  });
}

/** Returns the pods' allocations of the pool, without addresses that have left it. */
export function boundIn({ name, value }: ControlledPool, allocations: Caches["allocations"]): CachedAllocation[] {
  if (value === undefined) return [];
  const found = allocationsIn(spansOf(value.spec.ranges), value.spec, allocations);
  return found.filter(({ spec }) => spec.state === "Bound" && spec.pool === name);
}

/** Returns those in the spans. Walks the shorter list: a range that was written by hand may be endless. */
function allocationsIn(
  spans: Spans,
  { addressSpace, family }: Pick<AddressSpec, "addressSpace" | "family">,
  { items }: Caches["allocations"],
): CachedAllocation[] {
  if (sizeOf(spans) > items.size) {
    const ranges = rangesOf(spans, family);
    const isIn = ({ spec: { ip, addressSpace: space } }: CachedAllocation): boolean =>
      space === addressSpace && ip.family === family && rangesContain(ranges, ip);
    return [...items.values()].filter(isIn);
  }
  const found: CachedAllocation[] = [];
  for (const { first, last } of spans)
    for (let value = first; value <= last; value++) {
      const allocation = items.get(allocationName({ family, value }, addressSpace));
      if (allocation !== undefined) found.push(allocation);
    }
  return found;
}

interface ViewParts
  extends Pick<SubnetsView, "demands" | "subnets" | "livenessOf" | "successorOf" | "excessMs" | "isRefused"> {
  readonly caches: Caches;
  readonly pools: readonly ControlledPool[];
}

export function viewOf({ caches, pools, ...given }: ViewParts): SubnetsView {
  const settings = settingsOf(caches);
  const byHand = valuesOf(pools).filter(({ spec }) => spec.generated === undefined);
  const reserved = valuesOf(caches.reserved.items.values());
  const spaces = new Set(given.subnets.map(({ spec }) => spec.addressSpace));
  return {
    ...given,
    faultOf: (name) => {
      const object = caches.subnets.items.get(name);
      return object && faultOf(object);
    },
    pools: pools.flatMap((object) => readPool(object) ?? []),
    others: [...[...byHand, ...reserved].map(({ spec }) => readOther(spec)), ...readMachines(caches, spaces)],
    poolNames: new Set(pools.map(({ name }) => name)),
    // Addresses of a Node or a Service need not stay in the pool.
    holdersIn: (spans, place) =>
      allocationsIn(spans, place, caches.allocations).flatMap(({ spec: { node, ip, pool } }) =>
        node === NO_NODE ? [] : [{ address: ip.value, pool }],
      ),
    labelsOf: (namespace) => caches.namespaces.items.get(namespace)?.labels ?? NO_LABELS,
    closedTo: closedTo(settings),
    maxPoolSize: settings.maxGeneratedPoolSize,
    maxPerNamespace: settings.maxGeneratedAddressesPerNamespace,
  };
}
