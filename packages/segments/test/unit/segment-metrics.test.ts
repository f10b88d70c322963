import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Measurements } from "../../../../host/controller/types.ts";
import { MetricSet } from "../../../../host/metrics/metric.ts";
import { SOURCE_REASONS } from "../../../../host/resources/pool-source.ts";
import { addSegmentMetrics, type MeasuredRange } from "../../segment-metrics.ts";

/** Longer than scrapes share a collection: milliseconds. */
const SHARED_MS = 600;

const LAN: MeasuredRange = {
  ...{ name: "lan", answeredMs: 1_500, reason: "ShareUsedUp", share: 4, held: 4, leased: 7, returned: 3 },
  pools: [{ pool: "blue", states: { active: 3, draining: 1 } }],
  pinned: [{ block: "10.6.0.16/28", addresses: 2 }],
};

/** Those of the last round. */
async function measuredBy(...rounds: readonly Measurements[]): Promise<string[]> {
  const set = new MetricSet({}, () => {});
  let now: Measurements = {};
  addSegmentMetrics(set, () => now);
  let text = "";
  for (now of rounds) {
    text = await set.render();
    await sleep(SHARED_MS);
  }
  return text.split("\n").filter((line) => /^berth/.test(line));
}

const seriesOf = async (...rounds: readonly (readonly MeasuredRange[])[]) =>
  (await measuredBy(...rounds.map((ranges) => ({ ranges: () => ranges })))).filter((line) => /_range_/.test(line));

it("have the hub's last answer, share, changes, blocks and their pins", async () => {
  const series = await seriesOf([LAN]);
  expect(series.filter((line) => !line.includes("blocked"))).toEqual([
    'berth_range_last_answer_timestamp_seconds{range="lan"} 1.5',
    'berth_range_share_blocks{range="lan"} 4',
    'berth_range_held_blocks{range="lan"} 4',
    'berth_range_changes_total{range="lan",change="leased"} 7',
    'berth_range_changes_total{range="lan",change="returned"} 3',
    'berth_range_pool_blocks{range="lan",pool="blue",state="active"} 3',
    'berth_range_pool_blocks{range="lan",pool="blue",state="draining"} 1',
    'berth_range_pinned_addresses{range="lan",block="10.6.0.16/28"} 2',
  ]);
});

it("have one reason, and each of the others with 0", async () => {
  const blocked = (await seriesOf([LAN])).filter((line) => line.includes("blocked"));
  expect(blocked).toHaveLength(SOURCE_REASONS.length);
  expect(blocked.filter((line) => line.endsWith(" 1"))).toEqual([
    'berth_range_blocked{range="lan",reason="ShareUsedUp"} 1',
  ]);
});

it("of a hub that has not answered yet have no time, and none of a range that is gone", async () => {
  const unheard = { ...LAN, answeredMs: undefined, share: undefined, held: undefined };
  expect((await seriesOf([LAN], [unheard])).filter((line) => /_(?:answer|share|held)_/.test(line))).toEqual([]);
  expect(await seriesOf([LAN], [])).toEqual([]);
});

it("are bounded, and lose no block", async () => {
  const pools = Array.from({ length: 1_000 }, (_, index) => ({ pool: `p${index}`, states: { active: 2 } }));
  const pinned = Array.from({ length: 1_000 }, (_, index) => ({ block: `b${index}`, addresses: 1 }));
  const series = await seriesOf([{ ...LAN, pools, pinned }]);
  const blocks = series.filter((line) => line.startsWith("berth_range_pool_blocks"));
  expect(blocks).toHaveLength(501);
  expect(blocks.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0)).toBe(2_000);
  expect(series.filter((line) => line.includes("pinned"))).toHaveLength(200);
});

it("of the IPAM of record have entries, requests, changes and drift, and none of a replica that has stopped", async () => {
  const records = {
    entries: { in_sync: 8, pending: 1, foreign: 2, refused: 0 },
    ...{ succeededAtMs: 1_500, requests: 9, changes: new Map([["create", 8]]), drift: 3 },
  };
  expect(await measuredBy({ records })).toEqual([
    'berth_records_entries{state="in_sync"} 8',
    'berth_records_entries{state="pending"} 1',
    'berth_records_entries{state="foreign"} 2',
    'berth_records_entries{state="refused"} 0',
    "berth_records_last_success_timestamp_seconds 1.5",
    "berth_records_requests_total 9",
    'berth_records_changes_total{action="create"} 8',
    "berth_records_drift_total 3",
  ]);
  expect((await measuredBy({ records }, {})).filter((line) => /_(?:entries|changes)/.test(line))).toEqual([]);
});
