import { expect, it } from "vitest";
import { collectController } from "../../../host/controller/controller-process.ts";
import type { Measurements } from "../../../host/controller/types.ts";
import { CONTROLLER_METRICS } from "../../../host/metrics/controller-metrics.ts";
import { MetricSet } from "../../../host/metrics/metric.ts";

const LEADING: Measurements = {
  pools: () => [{ name: "blue", family: 4, subnet: undefined, size: 4, states: { free: 1, bound: 3 } }],
  subnets: () => [{ name: "tenants", family: 4, size: 9, states: { free: 2, assigned: 6, withheld: 1 } }],
  reservations: () => [[{ state: "taken" }, 3]],
  epoch: { waitingNodes: 2 },
  collection: { candidates: 5, actions: new Map([["free", 7]]) },
};

async function seriesAfter(...rounds: readonly Measurements[]): Promise<string[]> {
  const set = new MetricSet(CONTROLLER_METRICS, () => {});
  for (const measurements of rounds) {
    const watches = { pools: { bytes: 9, lists: 1, watches: 1, events: 4, lastEventMs: 1_500, objects: 1 } };
    const problems = { process: [], usage: ["late"] };
    const isLeading = measurements !== rounds[1];
    collectController(set.metrics, { isLeading, watches, unused: [], problems, measurements });
  }
  const text = await set.render();
  return text.split("\n").filter((line) => /^berth_(?:pool|subnet|reserv|gc|controller|watch|registry)/.test(line));
}

it("the leader's metrics have Subnets, collection and problems", async () =>
  expect((await seriesAfter(LEADING)).filter((line) => !/^berth_(?:pool|watch)/.test(line))).toEqual([
    "berth_registry_epoch_open 1",
    "berth_controller_leader 1",
    'berth_controller_problems{part="process"} 0',
    'berth_controller_problems{part="usage"} 1',
    "berth_registry_epoch_waiting_nodes 2",
    'berth_subnet_size_addresses{subnet="tenants",family="IPv4"} 9',
    'berth_subnet_addresses{subnet="tenants",family="IPv4",state="free"} 2',
    'berth_subnet_addresses{subnet="tenants",family="IPv4",state="assigned"} 6',
    'berth_subnet_addresses{subnet="tenants",family="IPv4",state="withheld"} 1',
    'berth_reservations{state="taken"} 3',
    "berth_gc_candidates 5",
    'berth_gc_actions_total{action="free"} 7',
  ]));

it("a replica that has stopped leading shows no pools and Subnets", async () => {
  const series = await seriesAfter(LEADING, {});
  for (const of of ["controller_leader", "registry_epoch_open", "registry_epoch_waiting_nodes"])
    expect(series).toContain(`berth_${of} 0`);
  const ended = /^berth_(?:pool|subnet|reserv|gc_actions)/;
  expect(series.filter((line) => ended.test(line))).toEqual([]);
});
