/**
 * Turns hand-cut pools of a range into blocks: the blocks, the addresses gained by it, and all obstacles. Decided from
 * the range, and from the addresses of its segment's clusters.
 */
import { haveShared, joinSpans, rangesOf, type Spans, spansOf, withoutSpans } from "../../../host/core/spans.ts";
import { bitsOf, formatIp, type Ip } from "../../../host/net/ip.ts";
import { formatPrefix, type Prefix } from "../../../host/net/prefix.ts";
import { formatRange, type Range, rangeOfPrefix } from "../../../host/net/range.ts";
import { edgesOf } from "../../../host/resources/fields/address-spec.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { describeSource } from "../../../host/resources/pool-source.ts";
import type { AddressRange } from "../address-range.ts";
import type { RangeMember } from "../range-member.ts";
import { rangesOfBlocks } from "./blocks-of-range.ts";
import type { SharedRange } from "./hub.ts";
import { exemptOf } from "./range-leases.ts";

/** An address that a cluster has given away. */
export interface UsedAddress {
  readonly ip: Ip;
  readonly pool: string;
  /** `pod shop/web-0`, or the other owner that it is kept for. */
  readonly holder: string;
}

/** The pools and addresses of a cluster in the range's subnet and address space. */
export interface ClusterAddresses {
  readonly name: string;
  readonly pools: readonly IpPool[];
  readonly used: readonly UsedAddress[];
}

interface AdoptionFacts extends SharedRange {
  /** The cluster among the members. */
  readonly member: RangeMember;
  /** Names of the pools that are to have blocks. */
  readonly adopted: readonly string[];
  readonly own: ClusterAddresses;
  readonly others: readonly ClusterAddresses[];
}

export interface Adoption {
  /** The blocks with their pools. */
  readonly blocks: Readonly<Record<string, string>>;
  /** Addresses of the blocks that the pools did not have: they must be unused. */
  readonly gained: readonly Range[];
  /** The range's excluded addresses afterwards. */
  readonly excluded: readonly Range[];
  /** Sentences without a full stop; none: it can be done. */
  readonly problems: readonly string[];
}

/** Most addresses that one problem names. */
const MAX_NAMED = 16;

export function planAdoption(facts: AdoptionFacts): Adoption {
  const { range, adopted, own, others } = facts;
  const { family } = range.spec;
  const pools = own.pools.filter(({ name }) => adopted.includes(name));
  const blocks = new Map(
    pools.flatMap((pool) => blocksUnder(range, pool).map((block) => [formatPrefix(block), block])),
  );
  const whole = spansOf([...blocks.values()].map(rangeOfPrefix));
  const cut = joinSpans(pools.flatMap(({ spec }) => spansOf(spec.ranges)));
  const masked = spansOf([...exemptOf(range), ...pools.flatMap(({ spec }) => spec.excluded), ...edgesOfSubnet(range)]);
  const excluded = spansOf(range.spec.excluded);
  // The pools' own exclusions may be the range's: an adoption that broke off has widened the pools.
  const given = withoutSpans(cut, joinSpans(pools.flatMap(({ spec }) => spansOf(spec.excluded))));
  const owners = [...blocks].map(([text, block]): [string, string] => {
    const [pool] = pools.filter(({ spec }) => isIn(spec.ranges, block));
    return [text, pool?.name ?? ""];
  });
  const problems = [
    ...problemsOfRange(facts),
    ...pools.flatMap((pool) => problemsOfPool(range, pool)),
    ...[...blocks].flatMap(([text, block]) => problemsOfBlock(facts, text, block)),
    ...problemsOfShare(facts.member, [...blocks.keys()]),
    ...problemsOfUse(facts, whole, joinSpans([...withoutSpans(excluded, cut), ...spansOf(range.spec.nodes)])),
    ...problemsOfFree(facts, whole, [
      { ...own, pools: own.pools.filter(({ name }) => !adopted.includes(name)) },
      ...others,
    ]),
  ];
  return {
    blocks: Object.fromEntries(owners),
    gained: rangesOf(withoutSpans(withoutSpans(whole, cut), masked), family),
    excluded: rangesOf(withoutSpans(excluded, given), family),
    problems,
  };
}

/** Returns the blocks in which the pool has an address. */
function blocksUnder({ spec: { family, subnet, blockSize } }: AddressRange, pool: IpPool): readonly Prefix[] {
  if (formatPrefix(pool.spec.subnet) !== formatPrefix(subnet)) return [];
  const step = 1n << BigInt(bitsOf(family) - blockSize);
  const found: Prefix[] = [];
  for (const { first, last } of spansOf(pool.spec.ranges))
    for (let value = first - (first % step); value <= last; value += step)
      if (found.at(-1)?.ip.value !== value) found.push({ ip: { family, value }, length: blockSize });
  return found;
}

function isIn(ranges: readonly Range[], block: Prefix): boolean {
  return haveShared(spansOf(ranges), spansOf([rangeOfPrefix(block)]));
}

/** The addresses of the subnet that no pod gets in any case. */
function edgesOfSubnet({ spec: { subnet } }: AddressRange): readonly Range[] {
  return edgesOf(subnet, rangeOfPrefix(subnet)).map((ip) => ({ first: ip, last: ip }));
}

function problemsOfRange({ range, member, adopted, own }: AdoptionFacts): readonly string[] {
  return [
    ...adopted
      .filter((name) => !own.pools.some((pool) => pool.name === name))
      .map((name) => `There is no pool "${name}" in subnet ${formatPrefix(range.spec.subnet)}${ofSpace(range)}`),
    ...(member.status.isContested ? [`"${member.spec.member}" is contested: berthctl blocks rejoin`] : []),
  ];
}

function ofSpace({ spec: { addressSpace } }: AddressRange): string {
  return addressSpace === "" ? "" : ` of address space "${addressSpace}"`;
}

function problemsOfPool({ name }: AddressRange, { name: pool, deleting, spec, source }: IpPool): readonly string[] {
  if (source !== undefined) return [`Pool "${pool}" leases its blocks from ${describeSource(source)} already`];
  if (spec.generated !== undefined)
    return [`Pool "${pool}" is generated from a Subnet, and cannot be of AddressRange "${name}"`];
  return deleting ? [`Pool "${pool}" is being deleted`] : [];
}

/** One block has one pool, of one cluster. */
function problemsOfBlock(
  { members, member, adopted, own, others }: AdoptionFacts,
  text: string,
  block: Prefix,
): readonly string[] {
  const lease = member.status.blocks[text];
  const holders = members.filter((each) => each.name !== member.name && text in each.status.blocks);
  const here = own.pools.filter(({ spec }) => isIn(spec.ranges, block));
  const rivals = others.flatMap((cluster) => {
    const used = cluster.used.filter(({ ip }) => contains(block, ip));
    const cut = cluster.pools.filter(({ spec }) => isIn(spec.ranges, block)).map(({ name }) => `pool "${name}"`);
    return used.length + cut.length === 0 ? [] : [`${cluster.name} (${[...cut, ...listUsed(used)].join(", ")})`];
  });
  const mine = listUsed(own.used.filter(({ ip }) => contains(block, ip)));
  return [
    ...(here.length > 1
      ? [`Block ${text} is of several pools: ${here.map(({ name }) => `"${name}"`).join(", ")}`]
      : []),
    ...holders.map(
      ({ spec }) =>
        `Block ${text} is leased to "${spec.member}"; here ${mine.length === 0 ? "no address of it is in use" : `it has ${mine.join(", ")}`}`,
    ),
    ...(lease !== undefined && !adopted.includes(lease.pool)
      ? [`Block ${text} is leased for pool "${lease.pool}"`]
      : []),
    ...(rivals.length > 0
      ? [
          `Block ${text} is used by two clusters: ${[`${own.name} (${mine.join(", ") || "no address in use"})`, ...rivals].join(" and ")}`,
        ]
      : []),
  ];
}

function problemsOfShare({ spec, status }: RangeMember, blocks: readonly string[]): readonly string[] {
  const total = new Set([...Object.keys(status.blocks), ...blocks]).size;
  return total > spec.maxBlocks
    ? [`"${spec.member}" would have ${total} blocks, and may have ${spec.maxBlocks} (maxBlocks)`]
    : [];
}

/** `barred`: addresses that no pod may have afterwards. */
function problemsOfUse({ adopted, own, others }: AdoptionFacts, whole: Spans, barred: Spans): readonly string[] {
  const outside = own.used.filter(({ ip, pool }) => adopted.includes(pool) && !holds(whole, ip));
  const twice = own.used.flatMap((mine) =>
    others.flatMap((cluster) =>
      cluster.used
        .filter(({ ip }) => ip.value === mine.ip.value)
        .map(
          (theirs) =>
            `Address ${formatIp(mine.ip)} is in use twice: ${own.name}, ${mine.holder}; ${cluster.name}, ${theirs.holder}`,
        ),
    ),
  );
  const excluded = own.used.filter(({ ip }) => holds(whole, ip) && holds(barred, ip));
  return [
    ...twice,
    ...(outside.length > 0 ? [`Addresses outside of the pools' ips are in use: ${listUsed(outside).join(", ")}`] : []),
    ...(excluded.length > 0 ? [`Addresses that the range excludes are in use: ${listUsed(excluded).join(", ")}`] : []),
  ];
}

/** Addresses that others have cut by hand must not be free on the hub. */
function problemsOfFree(
  { range, members }: SharedRange,
  whole: Spans,
  clusters: readonly ClusterAddresses[],
): readonly string[] {
  const { spec } = range;
  const leased = spansOf(rangesOfBlocks(members.flatMap(({ status }) => Object.keys(status.blocks))));
  const safe = joinSpans([...whole, ...leased, ...spansOf(exemptOf(range)), ...spansOf(edgesOfSubnet(range))]);
  return clusters.flatMap(({ name, pools }) =>
    pools
      .filter(({ source }) => source === undefined)
      .flatMap((pool) => {
        const left = withoutSpans(spansOf(pool.spec.ranges), safe);
        const text = rangesOf(left, spec.family).slice(0, MAX_NAMED).map(formatRange).join(", ");
        return left.length === 0
          ? []
          : [`Pool "${pool.name}" of ${name} has ${text}, which any member could lease: exclude it (spec.excludeIPs)`];
      }),
  );
}

function contains(block: Prefix, ip: Ip): boolean {
  return holds(spansOf([rangeOfPrefix(block)]), ip);
}

function holds(spans: Spans, ip: Ip): boolean {
  return haveShared(spans, [{ first: ip.value, last: ip.value }]);
}

function listUsed(used: readonly UsedAddress[]): readonly string[] {
  const named = used.slice(0, MAX_NAMED).map(({ ip, holder }) => `${formatIp(ip)} of ${holder}`);
  return used.length > MAX_NAMED ? [...named, `${used.length - MAX_NAMED} more`] : named;
}
