import { describe, expect, it } from "vitest";
import { MetricSet } from "../../../host/metrics/metric.ts";
import {
  collectSubnets,
  MAX_SUBNET_LABELS,
  type MeasuredSubnet,
  SUBNET_METRICS,
} from "../../../host/metrics/subnet-metrics.ts";

function subnet(name: string, family: 4 | 6 = 4): MeasuredSubnet {
  return { name, family, size: 10, states: { free: 6, assigned: 3, withheld: 1 } };
}

async function seriesOf(...rounds: readonly (readonly MeasuredSubnet[])[]): Promise<string[]> {
  const set = new MetricSet(SUBNET_METRICS, () => {});
  for (const subnets of rounds) collectSubnets(set.metrics, subnets);
  return (await set.render()).split("\n").filter((line) => /^berth/.test(line));
}

describe("metrics of Subnets", () => {
  it("have size and states of each", async () =>
    expect((await seriesOf([subnet("tenants"), subnet("six", 6)])).filter((line) => line.includes("six"))).toEqual([
      'berth_subnet_size_addresses{subnet="six",family="IPv6"} 10',
      'berth_subnet_addresses{subnet="six",family="IPv6",state="free"} 6',
      'berth_subnet_addresses{subnet="six",family="IPv6",state="assigned"} 3',
      'berth_subnet_addresses{subnet="six",family="IPv6",state="withheld"} 1',
    ]));

  it("are bounded however many there are, and lose no address", async () => {
    const series = await seriesOf(Array.from({ length: 1_000 }, (_, index) => subnet(`s${index}`)));
    expect(series).toHaveLength((MAX_SUBNET_LABELS + 1) * 4);
    const sizes = series.filter((line) => line.startsWith("berth_subnet_size"));
    expect(sizes.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0)).toBe(10_000);
    expect(sizes.filter((line) => line.includes('subnet="_other"'))).toHaveLength(1);
  });
});
