/** The pools that lease their addresses, and which of them share a source: a range of the hub, or a prefix. */

import type { ControlledPool } from "../../../host/controller/objects.ts";
import type { Caches } from "../../../host/controller/types.ts";
import { byName } from "../../../host/lib/order.ts";
import { bitsOf } from "../../../host/net/ip.ts";
import { formatPrefix, maskPrefix, type Prefix, prefixContains, prefixesOverlap } from "../../../host/net/prefix.ts";
import { rangeContains } from "../../../host/net/range.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { isPrefix, type SourceSpec } from "../../../host/resources/pool-source.ts";
import type { SourceView } from "../blocks/block-source.ts";
import { requirePrefix } from "../blocks/blocks-of-range.ts";

export interface SourcedPool {
  readonly object: ControlledPool;
  readonly pool: IpPool;
  readonly source: NonNullable<IpPool["source"]>;
}

/** A source with all that is of it here. */
export interface Followed {
  readonly key: string;
  readonly spec: SourceSpec;
  /** Of its pools; "" for a range, which has its own. */
  readonly addressSpace: string;
  /** By name; none: they are gone, and the cluster has blocks. */
  readonly pools: readonly SourcedPool[];
}

/** Pools of one key share a source; undefined for a pool that has none. */
export function keyOfSource({ source, spec: { addressSpace } }: IpPool): string | undefined {
  return source && (isPrefix(source) && addressSpace !== "" ? `${source.range} ${addressSpace}` : source.range);
}

/** Returns the sources of pools, and the ranges of the hub that the cluster has blocks of. */
export function followedSources(caches: Pick<Caches, "pools">, held: readonly string[]): readonly Followed[] {
  const pools = [...caches.pools.items.values()].sort(byName).flatMap((object): readonly SourcedPool[] => {
    const { value: pool } = object;
    return pool?.source === undefined || object.deleting ? [] : [{ object, pool, source: pool.source }];
  });
  const followed = [...Map.groupBy(pools, ({ pool }) => keyOfSource(pool) ?? "")].flatMap(([key, own]): Followed[] => {
    const [first] = own;
    if (first === undefined) return [];
    const { source: spec, pool } = first;
    const addressSpace = spec.prefix === undefined ? "" : pool.spec.addressSpace;
    return [{ key, spec, addressSpace, pools: own }];
  });
  const known = new Set(followed.map(({ key }) => key));
  const others = new Set(held).difference(known);
  const poolless = [...others].map((range): Followed => {
    return { key: range, spec: { range }, addressSpace: "", pools: [] };
  });
  return [...followed, ...poolless];
}

/** Returns the addresses that are reserved for owners: the cluster keeps their blocks. */
export function ownedAddresses({ reserved }: Pick<Caches, "reserved">) {
  return [...reserved.items.values()].flatMap(({ value }) => {
    const { owner, ranges, addressSpace } = value?.spec ?? { ranges: [], addressSpace: "" };
    return owner === undefined ? [] : ranges.map(({ first: ip }) => ({ ip, addressSpace }));
  });
}

/** Returns the blocks with such addresses that no cluster has. */
export function missingBlocks(caches: Pick<Caches, "reserved">, view: SourceView): readonly string[] {
  const { subnet, addressSpace, size, blocks, disputed, others, excluded } = view;
  const length = bitsOf(subnet.ip.family) - Math.log2(size);
  const had = Object.keys({ ...blocks, ...disputed, ...others }).map(requirePrefix);
  const missing = ownedAddresses(caches).flatMap((each) => {
    const block = maskPrefix({ ip: each.ip, length });
    const isInRange = each.addressSpace === addressSpace && prefixContains(subnet, each.ip);
    const isVain = excluded.some((range) => rangeContains(range, each.ip));
    return isInRange && !isVain && !had.some((other) => prefixesOverlap(other, block)) ? [formatPrefix(block)] : [];
  });
  return [...new Set(missing)];
}

/** Returns why a pool gets no block of its source, a clause; undefined if it may. */
export function findMisfit({ pool: { spec }, source }: SourcedPool, view: SourceView): string | undefined {
  const { subnet, addressSpace, size } = view;
  if (source.prefix !== undefined)
    // A part of the pool's subnet may be all that its blocks are taken of.
    return 2 ** (bitsOf(subnet.ip.family) - source.prefix.blockSize) === size
      ? undefined
      : `another pool takes blocks of another size of prefix ${source.range}; want the same blockSize in all of them`;
  if (formatPrefix(spec.subnet) === formatPrefix(subnet) && spec.addressSpace === addressSpace) return undefined;
  return `its subnet ${nameSubnet(spec.subnet, spec.addressSpace)} is not that of the range, ${nameSubnet(subnet, addressSpace)}`;
}

function nameSubnet(subnet: Prefix, addressSpace: string): string {
  return `${formatPrefix(subnet)}${addressSpace === "" ? "" : ` of address space "${addressSpace}"`}`;
}
