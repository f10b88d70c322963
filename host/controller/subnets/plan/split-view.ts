/**
 * Splits what is to be divided into parts that do not concern one another: planning each by itself gives the plan of
 * the whole. Subnets belong together if their networks overlap, if a demand names them, and, where namespaces have
 * limits, if a namespace has pools in both.
 */
import { equalIp } from "../../../net/ip.ts";
import { type Prefix, prefixesOverlap } from "../../../net/prefix.ts";
import type { CurrentPool, CurrentSubnet, SubnetsView } from "../model.ts";

/** Subnets that belong together, by one of them. */
class Groups {
  readonly #parents = new Map<CurrentSubnet, CurrentSubnet>();

  of(subnet: CurrentSubnet): CurrentSubnet {
    let root = subnet;
    for (let parent = this.#parents.get(root); parent !== undefined; parent = this.#parents.get(root)) root = parent;
    if (root !== subnet) this.#parents.set(subnet, root);
    return root;
  }

  /** Returns the group. */
  join(a: CurrentSubnet, b: CurrentSubnet): CurrentSubnet {
    const [one, other] = [this.of(a), this.of(b)];
    if (one !== other) this.#parents.set(other, one);
    return one;
  }
}

interface Part {
  readonly demands: SubnetsView["demands"][number][];
  readonly subnets: CurrentSubnet[];
  readonly pools: CurrentPool[];
}

/**
 * Each part has all settings, and whatever no Subnet may give. A pool without its Subnet concerns all: then there is
 * one part.
 */
export function splitView(view: SubnetsView): readonly SubnetsView[] {
  const byName = new Map(view.subnets.map((subnet) => [subnet.object.name, subnet]));
  const homes = view.pools.map((pool) => subnetOf(byName, pool));
  if (homes.includes(undefined)) return [view];
  const groups = groupsOf(view, byName, homes as CurrentSubnet[]);
  const parts = new Map<CurrentSubnet | undefined, Part>();
  const partOf = (subnet: CurrentSubnet | undefined): Part => {
    const root = subnet && groups.of(subnet);
    return parts.getOrInsertComputed(root, () => ({ demands: [], subnets: [], pools: [] }));
  };
  for (const subnet of view.subnets) partOf(subnet).subnets.push(subnet);
  for (const [at, pool] of view.pools.entries()) partOf(homes[at]).pools.push(pool);
  for (const demand of view.demands) {
    const known = demand.subnets.find((name) => byName.has(name));
    partOf(known === undefined ? undefined : byName.get(known)).demands.push(demand);
  }
  return [...parts.values()].map((part) => ({ ...view, ...part }));
}

function groupsOf(
  { subnets, pools, demands, maxPerNamespace }: SubnetsView,
  byName: ReadonlyMap<string, CurrentSubnet>,
  homes: readonly CurrentSubnet[],
): Groups {
  const groups = new Groups();
  for (const [at, subnet] of subnets.entries())
    for (const other of subnets.slice(at + 1)) if (haveOverlap(subnet, other)) groups.join(subnet, other);
  const byNamespace = new Map<string, CurrentSubnet>();
  const note = (namespace: string, subnet: CurrentSubnet): void => {
    const other = byNamespace.get(namespace);
    byNamespace.set(namespace, other === undefined ? subnet : groups.join(other, subnet));
  };
  for (const { application, subnets: names } of demands) {
    const [first, ...others] = names.flatMap((name) => byName.get(name) ?? []);
    if (first === undefined) continue;
    for (const other of others) groups.join(first, other);
    if (maxPerNamespace > 0) note(application.namespace, first);
  }
  if (maxPerNamespace > 0)
    for (const [at, { generated }] of pools.entries())
      note(generated.application.namespace, homes[at] as CurrentSubnet);
  return groups;
}

function haveOverlap({ spec: a }: CurrentSubnet, { spec: b }: CurrentSubnet): boolean {
  return a.addressSpace === b.addressSpace && prefixesOverlap(a.subnet, b.subnet);
}

/** Returns the Subnet of a pool if it exists and still has the same network. */
export function subnetOf(
  subnets: ReadonlyMap<string, CurrentSubnet>,
  { generated, spec }: CurrentPool,
): CurrentSubnet | undefined {
  const subnet = subnets.get(generated.subnet);
  if (subnet === undefined || subnet.spec.addressSpace !== spec.addressSpace) return undefined;
  return isSamePrefix(subnet.spec.subnet, spec.subnet) ? subnet : undefined;
}

function isSamePrefix(a: Prefix, b: Prefix): boolean {
  return a.length === b.length && equalIp(a.ip, b.ip);
}
