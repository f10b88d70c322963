/** The blocks of one range by the RangeMembers of a hub, and the block that a cluster takes next. */
import { type Spans, sharedSpans, spansOf, withoutSpans } from "../../../host/core/spans.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixContains, prefixesOverlap } from "../../../host/net/prefix.ts";
import { rangeOfPrefix } from "../../../host/net/range.ts";
import { routersOf } from "../../../host/resources/ip-pool-shape.ts";
import type { AddressRange, AddressRangeSpec } from "../address-range.ts";
import type { BlocksChange, MemberBlock, RangeMember } from "../range-member.ts";
import { chooseBlocks, countBlocks, rangesOfBlocks, requirePrefix } from "./blocks-of-range.ts";
import type { Change, Child, Made, Mark, Parent } from "./lease-server.ts";

export interface HubParent extends Parent {
  readonly range: AddressRange;
  /** All ranges of the hub, by name. */
  readonly ranges: ReadonlyMap<string, AddressRange>;
}

/** Returns the addresses without a pod by the range's own word: those of routers and nodes may answer. */
export function exemptOf({ spec }: Pick<AddressRange, "spec">): AddressRangeSpec["excluded"] {
  const routers = routersOf(spec).map((ip) => ({ first: ip, last: ip }));
  return [...spec.excluded, ...spec.nodes, ...routers];
}

/** Returns the addresses of the blocks that pods may have: of the range alone, since a member may write anything. */
export function givenOf(range: Pick<AddressRange, "spec">, blocks: readonly string[]): Spans {
  const within = sharedSpans(spansOf(rangesOfBlocks(blocks)), spansOf([rangeOfPrefix(range.spec.subnet)]));
  return withoutSpans(within, spansOf(exemptOf(range)));
}

/**
 * Returns the members' blocks of the range, and addresses of it that members of other ranges have. Of others than
 * `self`, by its object's name, only blocks of their own range count: a member may write anything.
 */
export function leasesOn(
  { range: { spec }, ranges }: Pick<HubParent, "range" | "ranges">,
  members: readonly RangeMember[],
  self: string,
): readonly Child[] {
  return members.flatMap(({ name, spec: { range, member }, status }) => {
    const own = ranges.get(range)?.spec;
    if (own?.addressSpace !== spec.addressSpace) return [];
    return Object.entries(status.blocks).flatMap(([block, { pool, request, since, again = false }]): Child[] => {
      const prefix = name === self ? parsePrefix(block) : blockIn(own, block);
      if (prefix === undefined || (name !== self && !prefixesOverlap(prefix, spec.subnet))) return [];
      const mark = { cluster: name, name: member, pool, request, isAgain: again };
      return [{ id: `${name} ${block}`, prefix, created: since, mark }];
    });
  });
}

function blockIn({ subnet, blockSize }: AddressRangeSpec, text: string): Prefix | undefined {
  const prefix = parsePrefix(text);
  const isBlock = prefix?.length === blockSize && formatPrefix(prefix) === text && prefixContains(subnet, prefix.ip);
  return isBlock ? prefix : undefined;
}

/**
 * Returns the members as they are, and others than `self` as `seen` has them, too, where the hub has fewer of their
 * writes, or no such member: it went back in time, or lost them, and they may have no way to it. `seen` is brought up
 * to date.
 */
export function recall(
  seen: Map<string, RangeMember>,
  members: readonly RangeMember[],
  self: string,
): readonly RangeMember[] {
  const now = new Map(members.map((member) => [member.name, member]));
  for (const member of members) {
    const before = seen.get(member.name)?.status.writes ?? 0;
    if (before <= member.status.writes || member.status.isContested) seen.set(member.name, member);
  }
  return [...members, ...[...seen.values()].filter((each) => each.name !== self && now.get(each.name) !== each)];
}

/** Returns blocks without an address of any member, from the cluster's starting block on. */
export function chooseFree(
  { mark, count }: { readonly mark: Mark; readonly count: number },
  { range: { spec }, children }: Pick<HubParent, "range"> & { readonly children: readonly Child[] },
  cluster: string,
): readonly Made[] {
  const same = new Set(children.map(({ prefix }) => formatPrefix(prefix)));
  const others = children.filter(({ prefix }) => prefix.length !== spec.blockSize);
  const isTaken = (block: string): boolean =>
    same.has(block) || others.some(({ prefix }) => prefixesOverlap(prefix, requirePrefix(block)));
  const blocks = chooseBlocks(spec, isTaken, { count, start: startOf(cluster, countBlocks(spec)) });
  return blocks.map((block) => ({ prefix: requirePrefix(block), mark }));
}

/** Returns the change of the member's blocks, within its share; made blocks may replace removed ones. */
export function blocksAfter(
  { remove, make }: Pick<Change, "remove" | "make">,
  { spec, status }: RangeMember,
  since: string,
): BlocksChange {
  const removed = remove.map(({ prefix }) => formatPrefix(prefix));
  const kept = new Set(Object.keys(status.blocks)).difference(new Set(removed));
  const made = make
    .filter(({ prefix }, at) => kept.has(formatPrefix(prefix)) || kept.size + at < spec.maxBlocks)
    .map(({ prefix, mark: { pool, request, isAgain } }): [string, MemberBlock] => [
      formatPrefix(prefix),
      { pool, request, since, ...(isAgain && { again: true }) },
    ]);
  return Object.fromEntries([...removed.map((block) => [block, null] as const), ...made]);
}

/** Clusters begin their search at different blocks, each always at the same. */
function startOf(cluster: string, blocks: number): number {
  const digits = cluster.replaceAll(/[^0-9a-f]/g, "").slice(0, 8);
  return Number.parseInt(digits === "" ? "0" : digits, 16) % blocks;
}
