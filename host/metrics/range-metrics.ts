/** Metrics of the ranges that clusters share, for a bounded number of pools and blocks. */
import { SOURCE_REASONS } from "../resources/pool-source.ts";
import { counter, gauge, type OpenedMetrics, setGauge, setTotals } from "./metric.ts";
import { MAX_POOL_LABELS } from "./pool-metrics.ts";

/** Most blocks that are counted by name. */
const MAX_PINNED_BLOCKS = 200;

const OTHER_POOLS = "_other";

export const RANGE_METRICS = {
  rangeAnswer: gauge(
    "berth_range_last_answer_timestamp_seconds",
    "When the hub, or the IPAM of record, answered last about the range; it is asked every 15 s.",
    ["range"],
  ),
  rangeBlocked: gauge(
    "berth_range_blocked",
    "Whether the range gives this cluster no further blocks for the reason, a word of the condition `Supplied`: 1 or 0.",
    ["range", "reason"],
  ),
  rangeShare: gauge("berth_range_share_blocks", "Blocks that the cluster may have.", ["range"]),
  rangeHeld: gauge("berth_range_held_blocks", "Blocks that the cluster has.", ["range"]),
  rangeChanges: counter("berth_range_changes_total", "Blocks that were `leased` and `returned`.", ["range", "change"]),
  rangeBlocks: gauge(
    "berth_range_pool_blocks",
    "Blocks of a pool by state: `resting`, `new`, `active`, `draining`, `returning`, `disputed`.",
    ["range", "pool", "state"],
  ),
  rangePinned: gauge("berth_range_pinned_addresses", "Addresses that keep a draining block from being returned.", [
    "range",
    "block",
  ]),
} as const;

export interface MeasuredRange {
  readonly name: string;
  /** Undefined: it has not answered yet. */
  readonly answeredMs: number | undefined;
  /** Undefined: nothing is in the way. */
  readonly reason: string | undefined;
  readonly share: number | undefined;
  readonly held: number | undefined;
  readonly leased: number;
  readonly returned: number;
  readonly pools: readonly { readonly pool: string; readonly states: Readonly<Record<string, number>> }[];
  /** The draining blocks. */
  readonly pinned: readonly { readonly block: string; readonly addresses: number }[];
}

/** Sets the metrics to these ranges. */
export function collectRanges(metrics: OpenedMetrics<typeof RANGE_METRICS>, ranges: readonly MeasuredRange[]): void {
  const known = ranges.map(({ name: range, ...rest }) => ({ range, ...rest }));
  const valued = (of: (range: MeasuredRange) => number | undefined) =>
    ranges.flatMap((each) => {
      const value = of(each);
      return value === undefined ? [] : [[{ range: each.name }, value] as const];
    });
  setGauge(
    metrics.rangeAnswer,
    valued(({ answeredMs }) => answeredMs && answeredMs / 1_000),
  );
  setGauge(
    metrics.rangeBlocked,
    known.flatMap(({ range, reason: now }) =>
      SOURCE_REASONS.map((reason) => [{ range, reason }, Number(reason === now)] as const),
    ),
  );
  setGauge(
    metrics.rangeShare,
    valued(({ share }) => share),
  );
  setGauge(
    metrics.rangeHeld,
    valued(({ held }) => held),
  );
  setTotals(
    metrics.rangeChanges,
    known.flatMap(({ range, leased, returned }) => [
      [{ range, change: "leased" }, leased] as const,
      [{ range, change: "returned" }, returned] as const,
    ]),
  );
  collectBlocks(metrics, ranges);
}

function collectBlocks(metrics: OpenedMetrics<typeof RANGE_METRICS>, ranges: readonly MeasuredRange[]): void {
  metrics.rangeBlocks.reset();
  let left = MAX_POOL_LABELS;
  for (const { name: range, pools } of ranges)
    for (const { pool, states } of pools) {
      const label = left-- > 0 ? pool : OTHER_POOLS;
      for (const [state, count] of Object.entries(states))
        metrics.rangeBlocks.inc({ range, pool: label, state }, count);
    }
  const pinned = ranges.flatMap(({ name: range, pinned }) => pinned.map((each) => ({ range, ...each })));
  setGauge(
    metrics.rangePinned,
    pinned.slice(0, MAX_PINNED_BLOCKS).map(({ range, block, addresses }) => [{ range, block }, addresses] as const),
  );
}
