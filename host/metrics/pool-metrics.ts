/** Metrics of pools: counts per pool, for a bounded number of pools. */
import { gauge, type OpenedMetrics } from "./metric.ts";

/**
 * Most names in the label `pool`. Pools beyond, in the order of their names, are counted together as `_other`.
 * Generated pools, whose number workloads decide, are counted together per Subnet in any case. @limit
 */
export const MAX_POOL_LABELS = 500;

/** No name of a pool or a Subnet has an underscore. */
const OTHER = "_other";

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

/** All states are present, so that a query finds 0 instead of nothing. */
export const NO_STATES = { bound: 0, cooling: 0, retained: 0, quarantined: 0 } as const;

export interface MeasuredPool {
  readonly name: string;
  readonly family: 4 | 6;
  /** The Subnet that the pool was generated out of; undefined for others. */
  readonly subnet: string | undefined;
  readonly size: number;
  readonly states: Readonly<Record<string, number>>;
}

export function collectPools(metrics: OpenedMetrics<typeof POOL_METRICS>, pools: Iterable<MeasuredPool>): void {
  const all = [...pools];
  const generated = all.filter(({ subnet }) => subnet !== undefined).length;
  metrics.pools.set({ kind: "own" }, all.length - generated);
  metrics.pools.set({ kind: "generated" }, generated);
  metrics.poolSize.reset();
  metrics.poolAddresses.reset();
  const series = all.map((pool) => ({ ...pool, label: labelOf(pool) }));
  for (const { label: pool, family, size, states } of sumSeries(series, MAX_POOL_LABELS)) {
    metrics.poolSize.set({ pool, family }, size);
    for (const [state, count] of Object.entries(states)) metrics.poolAddresses.set({ pool, family, state }, count);
  }
}

type Series = Pick<MeasuredPool, "family" | "size" | "states"> & { readonly label: string };

/** Returns one entry for each label and family; those beyond the first `max` labels are summed as `_other`. */
export function sumSeries(all: readonly Series[], max: number) {
  const named = new Set([...new Set(all.map(({ label }) => label))].sort().slice(0, max));
  const groups = Map.groupBy(all, ({ label, family }) => `IPv${family} ${named.has(label) ? label : OTHER}`);
  return [...groups].map(([key, group]) => {
    const [family = "", label = ""] = key.split(" ");
    const states: Record<string, number> = {};
    for (const [state, count] of group.flatMap((each) => Object.entries(each.states)))
      states[state] = (states[state] ?? 0) + count;
    return { label, family, size: group.reduce((sum, each) => sum + each.size, 0), states };
  });
}

/** A slash is in no name of a pool. */
function labelOf({ name, subnet }: MeasuredPool): string {
  return subnet === undefined ? name : `subnet/${subnet}`;
}
