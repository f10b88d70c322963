/** The blocks of pools that lease their addresses, and those of other clusters, as rows of a table; and each range. */

import { describeOwner } from "../../../../host/cli/allocation-table.ts";
import type { Line } from "../../../../host/cli/output.ts";
import { byName, compareText } from "../../../../host/lib/order.ts";
import { parseIp } from "../../../../host/net/ip.ts";
import type { AllocationRecord } from "../../../../host/records/allocation-record.ts";
import type { PoolRecord } from "../../../../host/records/pool-record.ts";
import { describeSource, isLeaving } from "../../../../host/resources/pool-source.ts";
import { groupByBlock } from "../../blocks/uses-of-blocks.ts";

type Source = NonNullable<PoolRecord["source"]>;

/** A block of this cluster, or addresses of another one's blocks. */
export interface BlockRow {
  readonly range: string;
  /** `10.6.0.16/28`; of another cluster `10.6.0.32-10.6.0.63`. */
  readonly block: string;
  /** Name of the cluster that has it; "" if the hub has not said it yet. */
  readonly member: string;
  /** This and the following keys: only for this cluster's blocks. */
  readonly pool?: string;
  readonly state?: string;
  readonly used?: number;
  readonly free?: number;
  /** The addresses that keep a draining block from being returned, and their owners. */
  readonly pinnedBy?: readonly { readonly address: string; readonly state: string; readonly owner: string }[];
}

interface RangeRow extends Pick<Source, "member" | "problem" | "reason" | "heard" | "maxBlocks"> {
  readonly name: string;
  /** Number of this cluster's blocks. */
  readonly blocks: number;
  readonly others: readonly { readonly member: string; readonly blocks: number }[];
}

interface BlockList {
  readonly ranges: readonly RangeRow[];
  readonly blocks: readonly BlockRow[];
}

export function listBlocks(pools: readonly PoolRecord[], allocations: readonly AllocationRecord[]): BlockList {
  const leasing = pools.flatMap((pool) => (pool.source === undefined ? [] : [{ ...pool, source: pool.source }]));
  const ranges = [...Map.groupBy(leasing, ({ source }) => source.range)].sort(([a], [b]) => compareText(a, b));
  return {
    ranges: ranges.map(([name, own]) => rangeRow(name, own)),
    blocks: ranges.flatMap(([range, own]) => [
      ...own.sort(byName).flatMap((pool) => ownRows(pool, allocations)),
      ...freshest(own).others.flatMap(({ member, ips }) => ips.map((block): BlockRow => ({ range, block, member }))),
    ]),
  };
}

interface LeasingPool extends PoolRecord {
  readonly source: Source;
}

/** Pools of one range are written one after the other; one with a problem is the most informative. */
function freshest(pools: readonly LeasingPool[]): Source {
  const sources = pools.map(({ source }) => source);
  return sources.find(({ problem }) => problem !== "") ?? (sources[0] as Source);
}

function rangeRow(name: string, pools: readonly LeasingPool[]): RangeRow {
  const { member, problem, reason, heard, maxBlocks, others } = freshest(pools);
  const blocks = pools.reduce((sum, { source }) => sum + source.blocks.length, 0);
  const counts = others.map((each) => ({ member: each.member, blocks: each.blocks }));
  const share = maxBlocks === undefined ? {} : { maxBlocks };
  return { name, member, blocks, ...share, problem, reason, heard, others: counts };
}

function ownRows(
  { name: pool, addressSpace = "", source: { range, member, blocks } }: LeasingPool,
  allocations: readonly AllocationRecord[],
): BlockRow[] {
  const uses = groupByBlock(
    blocks.map(({ block }) => block),
    allocations,
    (record) => (record.addressSpace === addressSpace ? parseIp(record.address) : undefined),
  );
  return blocks.map(({ block, state, total }) => {
    const own = uses.get(block) ?? [];
    const row = { range, block, member, pool, state, used: own.length, free: Math.max(0, total - own.length) };
    return isLeaving({ state }) ? { ...row, pinnedBy: own.flatMap(pinOf) } : row;
  });
}

function pinOf(record: AllocationRecord): NonNullable<BlockRow["pinnedBy"]> {
  const { address, state } = record;
  return [{ address, state, owner: describeOwner(record) }];
}

/** Returns the lines about a range above its blocks. */
export function describeRange({ name, member, blocks, maxBlocks, problem, heard, others }: RangeRow): Line {
  const share =
    maxBlocks === undefined ? `${blocks} ${blocks === 1 ? "block" : "blocks"}` : `${blocks} of ${maxBlocks} blocks`;
  const whose = member === "" ? "this cluster" : `this cluster, ${member},`;
  const rest = others.map((other) => `${other.member} ${other.blocks}`).join(", ");
  const about = `${describeSource({ range: name })}: ${whose} has ${share}${rest === "" ? "" : `; others: ${rest}`}`;
  if (problem === "") return about;
  return { text: `${about}\n  ${problem}${heard === "" ? "" : `; it answered last at ${heard}`}`, style: "red" };
}
