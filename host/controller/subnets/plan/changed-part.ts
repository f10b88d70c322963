/** Cuts out the part of a view that must be planned after changes of some Subnets. */
import { equalIp } from "../../../net/ip.ts";
import { prefixesOverlap } from "../../../net/prefix.ts";
import type { CurrentPool, CurrentSubnet, SubnetsView } from "../model.ts";

/**
 * Returns the part that concerns the named Subnets: its plan equals their part of a plan of the whole. Subnets belong
 * together if their networks overlap, if a demand names both, and, where namespaces have limits, if a namespace has
 * pools in both. A pool without its Subnet concerns all.
 */
export function changedPart(view: SubnetsView, changed: ReadonlySet<string>): SubnetsView {
  const { subnets, pools, demands } = view;
  const byName = new Map(subnets.map((subnet) => [subnet.object.name, subnet]));
  if (changed.size > 0 && pools.some((pool) => subnetOf(byName, pool) === undefined)) return view;
  const names = new Set(changed);
  const namespaces = new Set<string>();
  for (let before = -1; before < names.size + namespaces.size; ) {
    before = names.size + namespaces.size;
    spread(view, names, namespaces);
  }
  return {
    ...view,
    subnets: subnets.filter(({ object }) => names.has(object.name)),
    pools: pools.filter(({ generated }) => names.has(generated.subnet)),
    demands: demands.filter((demand) => demand.subnets.some((name) => names.has(name))),
  };
}

/** Adds all Subnets and namespaces that belong together with these. */
function spread(
  { subnets, pools, demands, maxPerNamespace }: SubnetsView,
  names: Set<string>,
  namespaces: Set<string>,
): void {
  const join = (namespace: string, own: readonly string[]): void => {
    if (!namespaces.has(namespace) && !own.some((name) => names.has(name))) return;
    for (const name of own) names.add(name);
    if (maxPerNamespace > 0) namespaces.add(namespace);
  };
  const known = subnets.filter(({ object }) => names.has(object.name));
  for (const subnet of subnets) if (known.some((other) => haveOverlap(subnet, other))) names.add(subnet.object.name);
  for (const { application, subnets: own } of demands) join(application.namespace, own);
  if (maxPerNamespace > 0) for (const { generated } of pools) join(generated.application.namespace, [generated.subnet]);
}

function haveOverlap({ spec: a }: CurrentSubnet, { spec: b }: CurrentSubnet): boolean {
  return a.addressSpace === b.addressSpace && prefixesOverlap(a.subnet, b.subnet);
}

/** Returns a pool's Subnet if it exists and still has the same network. */
export function subnetOf(
  subnets: ReadonlyMap<string, CurrentSubnet>,
  { generated, spec }: CurrentPool,
): CurrentSubnet | undefined {
  const subnet = subnets.get(generated.subnet);
  if (subnet === undefined || subnet.spec.addressSpace !== spec.addressSpace) return undefined;
  const { ip, length } = subnet.spec.subnet;
  return length === spec.subnet.length && equalIp(ip, spec.subnet.ip) ? subnet : undefined;
}
