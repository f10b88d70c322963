/** One pool in words: its owner, the reason for its size, its usage, its obstacles, and its future. */

import { sizeOf, spansOf } from "../../core/spans.ts";
import { addressCount } from "../../ipam/subnet-capacity.ts";
import { listSome } from "../../lib/describe.ts";
import { formatIp } from "../../net/ip.ts";
import { formatPrefix } from "../../net/prefix.ts";
import { formatRange, rangesOverlap } from "../../net/range.ts";
import { describePoolOwner, type SubnetPoolSpec } from "../../resources/fields/subnet-pool.ts";
import type { IpPool } from "../../resources/ip-pool.ts";
import { countBlockStates, describeSource, NO_REPORT, type PoolSource } from "../../resources/pool-source.ts";
import type { LiveFacts, PoolFacts } from "./pool-facts.ts";

/** Most ranges, and most other pools, that one line of `berthctl explain pool` shows. */
const MAX_EXPLAINED_NAMES = 5;

/** Returns lines for a person. */
export function explainPool(facts: PoolFacts): string[] {
  const { name, pool, refusal } = facts;
  return [
    ...whose(name, pool),
    ...(refusal === undefined ? [] : [`allocates nothing: it ${refusal}`]),
    ...(pool === undefined ? [] : explainUsable(pool, facts)),
    ...troubles(facts),
  ];
}

function whose(name: string, pool: IpPool | undefined): string[] {
  const { source, spec: { generated } = {} } = pool ?? {};
  if (source !== undefined) return [`pool "${name}": leases its addresses in blocks of ${describeSource(source)}`];
  if (generated === undefined) return [`pool "${name}": created by hand; its size is fixed`];
  const { subnet, application, interface: ifName } = generated;
  const whom = describePoolOwner(application);
  return [
    `pool "${name}": generated from Subnet "${subnet}" for ${whom}, UID ${application.uid}`,
    `used by: interface ${ifName} of its pods only`,
  ];
}

function explainUsable(pool: IpPool, facts: PoolFacts): string[] {
  const { spec, deleting, source } = pool;
  const { generated, ranges } = spec;
  const which = ranges.length === 0 ? "" : `: ${some(ranges.map(formatRange))}`;
  return [
    ...(deleting ? ["allocates nothing: it is being deleted; it is removed when its last address is free"] : []),
    ...(spec.disable ? ["allocates nothing: spec.disable is true"] : []),
    ...(generated === undefined ? [] : [`wants: ${addresses(generated.wanted)} (${generated.reason})`]),
    `has: ${addresses(addressCount(pool))} of IPv${spec.family} network ${formatPrefix(spec.subnet)}${which}`,
    inUse(facts),
    ...neverAllocated(pool, facts),
    ...(generated === undefined ? [] : supply(pool, generated, facts)),
    ...(source === undefined ? [] : [...blocksOf(source), ...shortfallOf(pool)]),
  ];
}

function blocksOf(source: PoolSource): string[] {
  const { blocks, report = NO_REPORT } = source;
  const { share, others, heard } = report;
  const each = blocks.length === 0 ? "" : `: ${some(blocks.map(({ block, state }) => `${block} ${state}`))}`;
  const most = share === undefined ? "" : `; the cluster may have ${share}`;
  return [
    `blocks: ${countBlockStates(source)}${each}${most}`,
    ...(others.length === 0
      ? []
      : [`other clusters: ${some(others.map(({ member, blocks }) => `${member} ${blocks}`))}`]),
    ...(heard === "" ? [] : [`${source.prefix === undefined ? "hub" : "IPAM of record"}: answered last at ${heard}`]),
  ];
}

function some(names: readonly string[]): string {
  return listSome(names, MAX_EXPLAINED_NAMES);
}

function inUse({ live, counts }: PoolFacts): string {
  if (live?.usage.kind === "there") {
    const { bound, cooling, kept, quarantined, free, total } = live.usage.value;
    const states = `${bound} by pods, ${cooling} cooling, ${kept} kept, ${quarantined} in quarantine`;
    return `in use: ${states}; ${free} of ${total} are free, at the last count of the controller`;
  }
  const { total, free } = counts ?? { total: 0n, free: 0n };
  return `in use: ${total - free}; ${free} of ${total} are free, as far as this node knows`;
}

function neverAllocated({ spec: { addressSpace, ranges } }: IpPool, { exceptions, reserved }: PoolFacts): string[] {
  const own = reserved.filter(({ spec }) => spec.addressSpace === addressSpace);
  const taken = own.flatMap(({ name, spec }) => {
    const inPool = spec.ranges.filter((range) => ranges.some((each) => rangesOverlap(each, range)));
    return inPool.map((range) => `${formatRange(range)} (ReservedIP "${name}" has it)`);
  });
  const all = [...exceptions.map(({ ip, why }) => `${formatIp(ip)} (${why})`), ...taken];
  return all.length === 0 ? [] : [`never allocated: ${some(all)}`];
}

function supply(pool: IpPool, generated: SubnetPoolSpec, { live }: PoolFacts): string[] {
  const { subnet, reclaim, application } = generated;
  const outcome = reclaim
    ? "is deleted when its last address is free (ippool-reclaim is true)"
    : `stays for the next ${describePoolOwner(application)} (ippool-reclaim is false)`;
  return [
    inTheWay(pool, generated),
    ...(live?.subnet === undefined ? [] : [`Subnet "${subnet}": ${describeSubnet(live.subnet)}`]),
    `when ${describePoolOwner(application)} is gone: the pool ${outcome}`,
  ];
}

/** Returns the line that says why the pool has too few addresses; none if no reason is known. */
function shortfallOf({ shortfall }: IpPool): string[] {
  return shortfall === undefined ? [] : [`in the way: ${shortfall}`];
}

function inTheWay(pool: IpPool, { wanted }: SubnetPoolSpec): string {
  const missing = BigInt(wanted) - addressCount(pool);
  const [shortfall] = shortfallOf(pool);
  if (shortfall !== undefined) return shortfall;
  if (missing > 0n) return `in the way: nothing is known; ${missing} more should be added shortly`;
  if (missing === 0n) return "in the way: nothing";
  return `in the way: nothing; ${addresses(-missing)} more than wanted are removed when they are free`;
}

function describeSubnet(subnet: NonNullable<LiveFacts["subnet"]>): string {
  if (subnet.kind === "absent") return "does not exist";
  if (subnet.kind === "unseen") return `cannot be read: ${subnet.why}`;
  const { total, pools, deleting } = subnet.value;
  const sized = pools
    .map(({ name, ips, application }) => ({ name, application, size: sizeOf(spansOf(ips)) }))
    .sort((a, b) => Number(b.size - a.size) || (a.name < b.name ? -1 : 1));
  const assigned = Number(sized.reduce((sum, { size }) => sum + size, 0n));
  const [of, left] =
    total === undefined ? ["", ""] : [` of ${total}`, `, ${Math.max(0, total - assigned)} not assigned`];
  const most = some(sized.map(({ name, application, size }) => `"${name}" (${application}, ${size})`));
  const is = deleting ? "is being deleted; " : "";
  const count = `${pools.length} ${pools.length === 1 ? "pool" : "pools"}`;
  return `${is}${assigned}${of} addresses assigned to ${count}${left}${pools.length === 0 ? "" : `; most have ${most}`}`;
}

/** The troubles that `in the way` and `allocates nothing` do not show. */
function troubles({ live, refusal }: PoolFacts): string[] {
  if (live === undefined) return [];
  if (live.troubles.kind === "unseen") return [`conditions: cannot be read: ${live.troubles.why}`];
  if (live.troubles.kind === "absent") return [];
  const others = live.troubles.value.filter(({ type, message }) => {
    return type !== "Supplied" && message !== "" && !(type === "Ready" && refusal !== undefined);
  });
  return others.map(({ type, message }) => `${type === "Ready" ? "not ready" : type}: ${message}`);
}

function addresses(count: number | bigint): string {
  return `${count} ${count === 1 || count === 1n ? "address" : "addresses"}`;
}
