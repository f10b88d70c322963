import { describe, expect, it } from "vitest";
import { MetricSet } from "../../../host/metrics/metric.ts";
import { collectPools, MAX_POOL_LABELS, type MeasuredPool, POOL_METRICS } from "../../../host/metrics/pool-metrics.ts";

function pool(name: string, given: Partial<MeasuredPool> = {}): MeasuredPool {
  return { name, family: 4, subnet: undefined, size: 10, states: { free: 7, bound: 3 }, ...given };
}

async function seriesOf(...rounds: readonly (readonly MeasuredPool[])[]): Promise<string[]> {
  const set = new MetricSet(POOL_METRICS, () => {});
  for (const pools of rounds) collectPools(set.metrics, pools);
  return (await set.render()).split("\n").filter((line) => /^berth/.test(line));
}

describe("metrics of pools", () => {
  it("have size and states of each pool, however large", async () => {
    const series = await seriesOf([pool("blue"), pool("six", { family: 6, size: 2 ** 64, states: { free: 2 ** 64 } })]);
    expect(series[0]).toBe('berth_pools{kind="own"} 2');
    expect(series.filter((line) => line.includes("six"))).toEqual([
      'berth_pool_size_addresses{pool="six",family="IPv6"} 18446744073709552000',
      'berth_pool_addresses{pool="six",family="IPv6",state="free"} 18446744073709552000',
    ]);
  });

  it("sum generated pools by Subnet and family", async () => {
    const generated = (name: string, family: 4 | 6) => pool(name, { subnet: "tenants", family });
    const series = await seriesOf([generated("a", 4), generated("b", 4), generated("c", 6)]);
    expect(series.filter((line) => /size|pools/.test(line))).toEqual([
      'berth_pools{kind="own"} 0',
      'berth_pools{kind="generated"} 3',
      'berth_pool_size_addresses{pool="subnet/tenants",family="IPv4"} 20',
      'berth_pool_size_addresses{pool="subnet/tenants",family="IPv6"} 10',
    ]);
  });

  it("are bounded however many pools and workloads there are, and lose no address", async () => {
    const own = Array.from({ length: 3_000 }, (_, index) => pool(`p${index}`));
    const generated = Array.from({ length: 10_000 }, (_, index) => pool(`g${index}`, { subnet: "tenants" }));
    const series = await seriesOf([...generated, ...own]);
    expect(series).toHaveLength(2 + (MAX_POOL_LABELS + 1) * 3);
    const sizes = series.filter((line) => line.startsWith("berth_pool_size"));
    expect(sizes.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0)).toBe(130_000);
    expect(sizes.filter((line) => line.includes('pool="_other"'))).toHaveLength(1);
  });
});
