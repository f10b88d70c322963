import { expect, it } from "vitest";
import { type CallEnd, RequestMeter } from "../../../../host/agent/metrics/request-meter.ts";
import { AGENT_METRICS } from "../../../../host/metrics/agent-metrics.ts";
import { MetricSet } from "../../../../host/metrics/metric.ts";

async function countedAs(...calls: readonly (readonly [plugin: string, command: unknown, end: CallEnd])[]) {
  const set = new MetricSet(AGENT_METRICS, () => {});
  const meter = new RequestMeter(set);
  for (const [plugin, command, end] of calls) meter.begin(plugin, command)(end);
  return (await set.render()).split("\n");
}

it.each<[string, unknown, CallEnd, string]>([
  ["berth", "ADD", 0, 'plugin="berth",command="ADD",code="0"'],
  ["coordinator", "CHECK", 108, 'plugin="coordinator",command="CHECK",code="108"'],
  ["berth", "DEL", "undelivered", 'plugin="berth",command="DEL",code="undelivered"'],
  ["x", "Y", 999, 'plugin="other",command="other",code="other"'],
  ["berth", undefined, 4, 'plugin="berth",command="other",code="4"'],
  ["berth", ["ADD", "DEL"], 4, 'plugin="berth",command="other",code="4"'],
])("%s %j ending with %j is counted as %s", async (plugin, command, end, labels) =>
  expect(await countedAs([plugin, command, end])).toContain(`berth_cni_requests_total{${labels}} 1`),
);

it("calls that are not answered are in progress", async () => {
  const set = new MetricSet(AGENT_METRICS, () => {});
  const meter = new RequestMeter(set);
  const [end] = [meter.begin("berth", "ADD"), meter.begin("berth", "ADD")];
  end(0);
  expect(await set.render()).toContain("\nberth_cni_requests_in_progress 1\n");
});
