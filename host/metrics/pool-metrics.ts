/** Metrics of pools: counts per pool, for a bounded number of pools. */
import { gauge, type OpenedMetrics, setGauge } from "./metric.ts";

/**
 * Most names in the label `pool`. Pools beyond, in the order of their names, are counted together as `_other`.
 * Generated pools, whose number workloads decide, are counted together per Subnet in any case. @limit
 */
export const MAX_POOL_LABELS = 500;

const OTHER_POOLS = "_other";

const POOL_NOTE = "Generated pools are summed as `subnet/NAME`, those beyond 500 as `_other`.";

export const POOL_METRICS = {
  pools: gauge("berth_pools", "IPPools: written by administrators (`own`), or `generated`.", ["kind"]),
  poolSize: gauge("berth_pool_size_addresses", `Addresses that a pool may hand out. ${POOL_NOTE}`, ["pool", "family"]),
  poolAddresses: gauge(
    "berth_pool_addresses",
    `Addresses of a pool by state: \`free\`, \`bound\`, \`cooling\`, \`retained\` (Kept), \`quarantined\`. ${POOL_NOTE}`,
    ["pool", "family", "state"],
  ),
} as const;

/** The value of the label `state` for each state of the API. */
export const STATE_LABELS = {
  Bound: "bound",
  Cooling: "cooling",
  Kept: "retained",
  Quarantined: "quarantined",
} as const;

/** All of them are there, so that a query finds 0 instead of nothing. */
export const NO_STATES = { bound: 0, cooling: 0, retained: 0, quarantined: 0 } as const;

export interface MeasuredPool {
  readonly name: string;
  readonly family: 4 | 6;
  /** The Subnet that the pool was generated out of; undefined for others. */
  readonly subnet: string | undefined;
  readonly size: number;
  /** By the value of the label: at least `free`. */
  readonly states: Readonly<Record<string, number>>;
}

/** Sets the metrics to these pools. */
export function collectPools(metrics: OpenedMetrics<typeof POOL_METRICS>, pools: Iterable<MeasuredPool>): void {
  const all = [...pools];
  const generated = all.filter(({ subnet }) => subnet !== undefined).length;
  metrics.pools.set({ kind: "own" }, all.length - generated);
  metrics.pools.set({ kind: "generated" }, generated);
  const sums = sumPools(all);
  setGauge(
    metrics.poolSize,
    sums.map(({ pool, family, size }) => [{ pool, family }, size]),
  );
  setGauge(
    metrics.poolAddresses,
    sums.flatMap(({ pool, family, states }) =>
      [...states].map(([state, count]) => [{ pool, family, state }, count] as const),
    ),
  );
}

interface PoolSum {
  readonly pool: string;
  readonly family: "IPv4" | "IPv6";
  size: number;
  readonly states: Map<string, number>;
}

/** Returns one entry for each label and family. */
function sumPools(pools: readonly MeasuredPool[]): readonly PoolSum[] {
  const labels = [...new Set(pools.map(labelOf))].sort();
  const named = new Set(labels.slice(0, MAX_POOL_LABELS));
  const sums = new Map<string, PoolSum>();
  for (const each of pools) {
    const label = labelOf(each);
    const pool = named.has(label) ? label : OTHER_POOLS;
    const family = each.family === 4 ? "IPv4" : "IPv6";
    const key = `${family} ${pool}`;
    const sum = sums.getOrInsertComputed(key, () => ({ pool, family, size: 0, states: new Map() }));
    sum.size += each.size;
    for (const [state, count] of Object.entries(each.states)) {
      sum.states.set(state, (sum.states.get(state) ?? 0) + count);
    }
  }
  return [...sums.values()];
}

/** A slash and an underscore are in no name of a pool. */
function labelOf({ name, subnet }: MeasuredPool): string {
  return subnet === undefined ? name : `subnet/${subnet}`;
}
