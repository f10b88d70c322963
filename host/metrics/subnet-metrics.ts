/** Metrics of Subnets: the capacity left for pools, for a bounded number of Subnets. */
import { gauge, type OpenedMetrics } from "./metric.ts";
import { sumSeries } from "./pool-metrics.ts";

/**
 * Most names in the label `subnet`. Subnets beyond, in the order of their names, are counted together as `_other`.
 * @limit
 */
export const MAX_SUBNET_LABELS = 200;

const SUBNET_NOTE = "Subnets beyond the first 200 are summed as `_other`.";

export const SUBNET_METRICS = {
  subnetSize: gauge(
    "berth_subnet_size_addresses",
    `Addresses that a Subnet offers to generated pools, whoever has them. ${SUBNET_NOTE}`,
    ["subnet", "family"],
  ),
  subnetAddresses: gauge(
    "berth_subnet_addresses",
    `Addresses of a Subnet by state: \`free\`, \`assigned\` to generated pools, \`withheld\` (reserved, or in pools made by hand). ${SUBNET_NOTE}`,
    ["subnet", "family", "state"],
  ),
} as const;

export interface MeasuredSubnet {
  readonly name: string;
  readonly family: 4 | 6;
  readonly size: number;
  readonly states: { readonly free: number; readonly assigned: number; readonly withheld: number };
}

export function collectSubnets(metrics: OpenedMetrics<typeof SUBNET_METRICS>, subnets: Iterable<MeasuredSubnet>): void {
  metrics.subnetSize.reset();
  metrics.subnetAddresses.reset();
  const series = [...subnets].map((each) => ({ ...each, label: each.name }));
  for (const { label: subnet, family, size, states } of sumSeries(series, MAX_SUBNET_LABELS)) {
    metrics.subnetSize.set({ subnet, family }, size);
    for (const [state, count] of Object.entries(states)) metrics.subnetAddresses.set({ subnet, family, state }, count);
  }
}
