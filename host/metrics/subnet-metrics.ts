/** Metrics of Subnets: how much of each is left for pools, for a bounded number of Subnets. */
import { byName } from "../lib/order.ts";
import { gauge, type OpenedMetrics, setGauge } from "./metric.ts";

/**
 * Most names in the label `subnet`. Subnets beyond, in the order of their names, are counted together as `_other`.
 * @limit
 */
export const MAX_SUBNET_LABELS = 200;

const OTHER_SUBNETS = "_other";

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

/** Sets the metrics to these Subnets. */
export function collectSubnets(metrics: OpenedMetrics<typeof SUBNET_METRICS>, subnets: Iterable<MeasuredSubnet>): void {
  const sums = new Map<string, { labels: { subnet: string; family: string }; size: number; states: number[] }>();
  const sorted = [...subnets].sort(byName);
  for (const [at, { name, family, size, states }] of sorted.entries()) {
    // An underscore is in no name of a Subnet.
    const labels = { subnet: at < MAX_SUBNET_LABELS ? name : OTHER_SUBNETS, family: `IPv${family}` };
    const key = `${labels.family} ${labels.subnet}`;
    const sum = sums.get(key) ?? { labels, size: 0, states: STATES.map(() => 0) };
    sum.size += size;
    sum.states = STATES.map((state, index) => (sum.states[index] ?? 0) + states[state]);
    sums.set(key, sum);
  }
  setGauge(
    metrics.subnetSize,
    [...sums.values()].map(({ labels, size }) => [labels, size]),
  );
  setGauge(
    metrics.subnetAddresses,
    [...sums.values()].flatMap(({ labels, states }) =>
      STATES.map((state, index) => [{ ...labels, state }, states[index] ?? 0] as const),
    ),
  );
}

const STATES = ["free", "assigned", "withheld"] as const;
