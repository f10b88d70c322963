import { expect, it } from "vitest";
import { AGENT_METRICS } from "../../../host/metrics/agent-metrics.ts";
import {
  counter,
  foldLabel,
  gauge,
  histogram,
  type MetricDefinition,
  MetricSet,
  setGauge,
  setTotal,
  setTotals,
} from "../../../host/metrics/metric.ts";
import { controllerMetrics } from "../../../scripts/generate/pages/metrics.ts";

const DEFINITIONS = {
  calls: counter("test_calls_total", "Calls.", ["code"]),
  starts: counter("test_starts_total", "Starts."),
  depth: gauge("test_depth", "Depth.", ["queue"]),
  time: histogram("test_time_seconds", "Time.", { buckets: [0.5, 1] }),
} as const;

function open() {
  const failures: string[] = [];
  const set = new MetricSet(DEFINITIONS, (_, error) => failures.push(String(error)));
  return { set, metrics: set.metrics, failures };
}

/** Without comments and empty lines. */
async function seriesOf(set: Pick<MetricSet<typeof DEFINITIONS>, "render">): Promise<string[]> {
  return (await set.render()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

it("renders counters, gauges and histograms", async () => {
  const { set, metrics } = open();
  metrics.calls.inc({ code: "0" });
  metrics.depth.set({ queue: "a" }, 3);
  metrics.time.observe(0.7);
  expect(await seriesOf(set)).toEqual([
    'test_calls_total{code="0"} 1',
    "test_starts_total 0",
    'test_depth{queue="a"} 3',
    'test_time_seconds_bucket{le="0.5"} 0',
    'test_time_seconds_bucket{le="1"} 1',
    'test_time_seconds_bucket{le="+Inf"} 1',
    "test_time_seconds_sum 0.7",
    "test_time_seconds_count 1",
  ]);
});

it("totals and gauges that are counted elsewhere replace those of the last scrape", async () => {
  const { set, metrics } = open();
  for (const round of [1, 2]) {
    setTotals(metrics.calls, [[{ code: `${round}` }, 10 * round]]);
    setTotal(metrics.starts, round);
    setGauge(metrics.depth, [[{ queue: `q${round}` }, round]]);
  }
  const wanted = ['test_calls_total{code="2"} 20', "test_starts_total 2", 'test_depth{queue="q2"} 2'];
  expect((await seriesOf(set)).slice(0, 3)).toEqual(wanted);
});

it("scrapes at once share one collection", async () => {
  const { set, metrics } = open();
  let collected = 0;
  set.onScrape(async () => metrics.depth.set({ queue: "scrapes" }, ++collected));
  const texts = await Promise.all([set.render(), set.render(), set.render()]);
  expect([collected, new Set(texts).size]).toEqual([1, 1]);
});

it("a collector that fails keeps the others' values, and is reported once", async () => {
  const { set, metrics, failures } = open();
  set.onScrape(() => {
    throw new Error("the registry's thread has ended");
  });
  set.onScrape(() => metrics.depth.set({ queue: "a" }, 1));
  expect(await seriesOf(set)).toContain('test_depth{queue="a"} 1');
  expect(failures).toEqual(["Error: the registry's thread has ended"]);
});

it.each([
  ["ADD", "ADD"],
  ["ADD2", "other"],
  ["", "other"],
])("label %j is %j", (value, expected) => expect(foldLabel(value, new Set(["ADD"]))).toBe(expected));

const all = [...Object.values<MetricDefinition>(AGENT_METRICS), ...controllerMetrics].map(
  (each): [string, MetricDefinition] => [each.name, each],
);

it.each(all)("%s has a conventional name and a description", (name, { kind, help, labels }) => {
  expect(name).toMatch(/^(?:berth|process|nodejs)_[a-z0-9_]+$/);
  expect(name.endsWith("_total")).toBe(kind === "counter");
  if (kind === "histogram") expect(name).toMatch(/_seconds$/);
  expect(help).toMatch(/^[A-Z`].*\.$/);
  for (const label of labels)
    expect(["pod", "address", "ip", "namespace", "container", "node", "le"]).not.toContain(label);
});
