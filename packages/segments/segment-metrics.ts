/** Metrics of the ranges that clusters share, for a bounded number of pools and blocks, and of the IPAM of record. */

import type { Measurements } from "../../host/controller/types.ts";
import {
  counter,
  gauge,
  type MetricSet,
  type OpenedMetrics,
  setGauge,
  setTotal,
  setTotals,
} from "../../host/metrics/metric.ts";
import { MAX_POOL_LABELS } from "../../host/metrics/pool-metrics.ts";
import { SOURCE_REASONS } from "../../host/resources/pool-source.ts";

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

const RECORD_METRICS = {
  recordEntries: gauge(
    "berth_records_entries",
    "Addresses of pods by how the IPAM of record has them; `foreign`: there is an entry of others.",
    ["state"],
  ),
  recordSuccess: gauge(
    "berth_records_last_success_timestamp_seconds",
    "When the IPAM of record last had all that it should have, but for findings.",
  ),
  recordRequests: counter("berth_records_requests_total", "Requests to the IPAM of record."),
  recordChanges: counter("berth_records_changes_total", "Entries that were created, updated and deleted.", ["action"]),
  recordDrift: counter("berth_records_drift_total", "Own entries that others have changed, deleted or put back."),
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

/** The progress of recording addresses in use on the server of record. */
export interface MeasuredRecords {
  /** Numbers of addresses by state, and of entries still to be deleted, which are pending, too. */
  readonly entries: {
    readonly in_sync: number;
    readonly pending: number;
    /** The server has an entry of others there. */
    readonly foreign: number;
    /** The server takes no entry for it. */
    readonly refused: number;
  };
  /** When a pass last left nothing to do, by the wall clock. */
  readonly succeededAtMs: number;
  readonly requests: number;
  /** Entries that were created, updated and deleted. */
  readonly changes: ReadonlyMap<string, number>;
  /** Entries that others have changed. */
  readonly drift: number;
}

/** Adds all of them to the controller's. */
export function addSegmentMetrics(set: MetricSet, measured: () => Measurements): void {
  const metrics = set.open({ ...RANGE_METRICS, ...RECORD_METRICS });
  set.onScrape(() => {
    const { ranges, records } = measured();
    collectRanges(metrics, ranges?.() ?? []);
    collectRecords(metrics, records);
  });
}

function collectRecords(metrics: OpenedMetrics<typeof RECORD_METRICS>, records: MeasuredRecords | undefined): void {
  const entries = Object.entries(records?.entries ?? {}).map(([state, count]) => [{ state }, count] as const);
  setGauge(metrics.recordEntries, entries);
  metrics.recordSuccess.set((records?.succeededAtMs ?? 0) / 1_000);
  setTotal(metrics.recordRequests, records?.requests ?? 0);
  const changes = [...(records?.changes ?? [])].map(([action, count]) => [{ action }, count] as const);
  setTotals(metrics.recordChanges, changes);
  setTotal(metrics.recordDrift, records?.drift ?? 0);
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
