/** The controller's ranges as metrics show them: its record of each, and the blocks in the pools' status. */

import type { Caches } from "../../../host/controller/types.ts";
import { byName } from "../../../host/lib/order.ts";
import type { IpPool } from "../../../host/resources/ip-pool.ts";
import { BLOCK_STATES, isLeaving } from "../../../host/resources/pool-source.ts";
import { groupByBlock } from "../blocks/uses-of-blocks.ts";
import type { MeasuredRange } from "../segment-metrics.ts";
import type { RangeRecords } from "./range-records.ts";
import { keyOfSource } from "./sourced-pools.ts";

export function measureRanges(
  { all }: RangeRecords,
  caches: Pick<Caches, "pools" | "allocations">,
): readonly MeasuredRange[] {
  const pools = [...caches.pools.items.values()].flatMap(({ value }) => (value?.source === undefined ? [] : [value]));
  const byRange = Map.groupBy(pools.sort(byName), keyOfSource);
  return [...all].map(([name, { answered, reason, share, held, leased, returned }]) => {
    const own = byRange.get(name) ?? [];
    return {
      ...{ name, answeredMs: answered?.getTime(), reason, share, held: held?.size, leased, returned },
      pools: own.map((pool) => ({ pool: pool.name, states: statesOf(pool) })),
      pinned: own.flatMap((pool) => pinnedOf(pool, caches)),
    };
  });
}

function statesOf({ source }: IpPool): Readonly<Record<string, number>> {
  const count = (state: string) => source?.blocks.filter((block) => block.state === state).length ?? 0;
  return Object.fromEntries(BLOCK_STATES.map((state) => [state.toLowerCase(), count(state)]));
}

/** All allocations are looked at only while a block leaves. */
function pinnedOf({ spec, source }: IpPool, { allocations }: Pick<Caches, "allocations">): MeasuredRange["pinned"] {
  const leaving = (source?.blocks ?? []).filter(isLeaving).map(({ block }) => block);
  if (leaving.length === 0) return [];
  const uses = groupByBlock(leaving, allocations.items.values(), (each) =>
    each.spec.addressSpace === spec.addressSpace ? each.spec.ip : undefined,
  );
  return leaving.map((block) => ({ block, addresses: uses.get(block)?.length ?? 0 }));
}
